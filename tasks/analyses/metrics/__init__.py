"""Numbers of the analyses: of attention, positions, residual streams and filters."""
