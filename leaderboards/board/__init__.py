"""The board: each fact of a suite's records, computed once."""
