"""Mask propagation through videos: the numbers, the task, and what measures and scores a video."""
