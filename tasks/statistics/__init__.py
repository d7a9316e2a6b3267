"""Intervals, tests and choices of layers from the values of each item; it knows no task."""
