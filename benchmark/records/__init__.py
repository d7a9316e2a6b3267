"""Records of a run: where its files are, and whether they are up to date."""
