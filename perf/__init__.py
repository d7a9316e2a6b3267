"""Speed compared with alternatives that do the same work: `python -m perf` prints budgets as ratios."""
