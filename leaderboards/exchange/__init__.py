"""Records of several people: merging, checks against a baseline, submissions, repositories."""
