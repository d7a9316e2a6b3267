"""Segmentation in context: what is remembered of labelled images, how it votes, and the protocols."""
