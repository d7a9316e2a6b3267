"""The answer of each column: its facts, made once from the board, and the words that tell them."""
