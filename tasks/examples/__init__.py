"""Examples: the few things of which a task keeps what each layer predicted, so that it can be drawn later."""
