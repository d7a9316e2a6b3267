"""Drawings of analyses: functions from their evidence to blocks. Nothing here imports torch."""
