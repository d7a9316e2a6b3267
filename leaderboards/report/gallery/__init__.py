"""Drawings of what layers predicted: one file for each kind of task."""
