"""What a board says in words: answers, recommendations, paired comparisons, limits."""
