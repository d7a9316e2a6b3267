"""Templates of the report, and the environment that fills them."""
