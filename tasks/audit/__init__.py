"""Checks of a user's own images: near duplicates, series, and doubtful labels."""
