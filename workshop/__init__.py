"""What makes and measures, and is not installed: the mini suite, budgets of speed, simulations, the site."""
