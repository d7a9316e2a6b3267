"""Packs: the files of official layouts as rows of tables, those of the mini suite and of the Hub."""
