"""Entries of the registry: one explicit tuple of frozen specs per family."""
