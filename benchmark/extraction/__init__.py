"""Passes: images through a backbone once, and what is kept of them on disk."""
