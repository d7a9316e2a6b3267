"""Datasets as parquet: the files of official layouts as rows, read without unpacking."""
