"""From stored results to scores of every layer, their uncertainty, and their records."""
