"""The page of analyses: its tables, and the figures of each analysis."""
