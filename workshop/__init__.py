"""The workshop draws the mini suite's data, trains its backbones and measures speed; it is not installed."""
