"""Scorers on their own, for features or predictions that were exported by any code."""
