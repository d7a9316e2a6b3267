"""Anomaly detection: patches of test images against those of good ones."""
