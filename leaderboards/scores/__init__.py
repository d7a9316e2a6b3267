"""Findings from records: which layer is best, how sure that is, what may be compared."""
