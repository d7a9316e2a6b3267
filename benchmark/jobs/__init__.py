"""The parts of a run that an engine carries out, their dependencies, and their failures."""
