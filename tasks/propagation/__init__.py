"""Mask propagation through videos: the numbers, the task, what measures a video, and what scores it."""
