"""Packs: the files of official layouts as rows of Arrow tables, read without unpacking."""
