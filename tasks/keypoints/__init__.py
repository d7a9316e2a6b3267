"""Keypoint correspondence: the rules of protocols, positions of points, matching, and scores."""
