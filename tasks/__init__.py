"""Tasks, metrics and readers of datasets."""
