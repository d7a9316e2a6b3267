"""What to run: suites, datasets, layers, backbones, and the fewest passes that serve every task."""
