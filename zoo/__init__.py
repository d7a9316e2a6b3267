"""Backbones: entries, loading, features of every layer, preprocessing."""
