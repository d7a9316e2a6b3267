"""The parts of a run that an engine carries out, what they depend on, and what went wrong in them."""
