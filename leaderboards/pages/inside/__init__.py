"""The page of analyses: its tables, and for each analysis what is drawn of it."""
