"""Analyses: tasks whose numbers describe what a network does and rank nothing."""
