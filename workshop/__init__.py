"""The workshop draws the mini suite's data and trains its backbones; it is in the checkout, not installed."""
