"""Datasets as parquet: files of official layouts as rows, read where they lie."""
