"""Reading in general: files of folders and packs, tables, masks, names and splits; it knows no dataset."""
