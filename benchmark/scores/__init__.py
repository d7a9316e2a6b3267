"""From what is stored to scores of every layer, how sure they are, and their records."""
