"""Numbers that papers have published, with their sources, and how they are read."""
