"""What a board says beside its answers: paired comparisons, published numbers, licences."""
