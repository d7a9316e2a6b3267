"""Mask propagation through videos: rule, problem, what measures a video, and what scores it."""
