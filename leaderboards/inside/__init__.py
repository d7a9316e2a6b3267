"""The page of what is inside the networks: results of the analyses, and drawings of them."""
