"""The functions that ``import benchmark`` gives; each imports what is heavy when it is called."""
