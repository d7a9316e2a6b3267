"""Keypoint correspondence: the rule of a protocol, where points are, how they are matched, and the scores."""
