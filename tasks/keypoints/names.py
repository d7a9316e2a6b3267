"""Names of kinds of pairs and of a metric of keypoints, as in records. Imports nothing."""

HARD = ("easy", "medium", "hard")
WHICH = ("none", "source", "target", "both")

KINDS = {"viewpoint": HARD, "scale": HARD, "truncation": WHICH, "occlusion": WHICH}
"""Names of the levels of each field of `PairFacts`."""

AZIMUTH = {"azimuth": tuple(str(eighths) for eighths in range(5))}
"""Kinds of pairs by eighths of a turn between the two viewpoints, in addition to `KINDS`."""

MISTAKABLE = "geometry-aware"
"""Points whose target image shows an interchangeable point (Zhang et al., CVPR 2024)."""

PULL = "pull"  # mean share of a soft arg-max's weight, in percent, where similarities are set to nearly 0
