"""Metrics: pure functions of arrays."""
