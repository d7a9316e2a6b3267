"""Stand-alone scorers for features or predictions that any code has exported."""
