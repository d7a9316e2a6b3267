"""Passes: each image goes through a backbone once, and what tasks need of it is stored."""
