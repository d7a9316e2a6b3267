"""The mini suite's data: a deterministic renderer."""
