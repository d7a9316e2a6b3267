"""Speed compared with alternatives that do the same work: `python -m workshop.perf` prints ratios."""
