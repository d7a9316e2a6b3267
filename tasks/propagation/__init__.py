"""Mask propagation through videos: settings, task, and measurers that score a video."""
