"""Readers of the official on-disk layouts."""
