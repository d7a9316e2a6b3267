"""What may be said of the records: which layer is best, honestly chosen, tied, or missing."""
