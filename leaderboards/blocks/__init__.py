"""Blocks of pages (headings, text, tables, plots) and the format of names and numbers in them."""
