"""Passes: images shown once to a backbone, and what is kept of each layer."""
