"""Speed, beside what else would do the same work: `python -m perf` prints budgets as ratios."""
