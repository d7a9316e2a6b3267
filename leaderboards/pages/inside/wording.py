"""Sentences that several figures of the page need."""

DEPTHS = """\
Columns are blocks by how deep they lie, from the first to the last."""
