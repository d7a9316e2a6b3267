"""Simulations of what is said of scores, and of how often it is wrong."""
