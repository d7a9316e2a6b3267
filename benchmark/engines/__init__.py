"""Engines, which carry out the parts of a run, and how they report progress."""
