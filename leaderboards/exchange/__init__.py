"""Records of several people: merging, checks against a baseline, and cards for the Hub."""
