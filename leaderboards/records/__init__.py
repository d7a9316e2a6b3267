"""Numbers as files: records, and the per-item measurements behind them."""
