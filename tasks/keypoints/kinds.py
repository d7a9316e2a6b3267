"""Kinds of pairs and of points that PCK is taken over one by one, from the same matches."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tasks.datasets.base import KeypointPair

HARD = ("easy", "medium", "hard")
WHICH = ("none", "source", "target", "both")

KINDS = {"viewpoint": HARD, "scale": HARD, "truncation": WHICH, "occlusion": WHICH}
"""By field of `PairFacts`, the names of its levels."""

MISTAKABLE = "geometry-aware"
"""Points whose target image shows another point that stands for the same (Zhang et al., CVPR 2024)."""


def pair_kinds(pairs: Sequence[KeypointPair]) -> Mapping[str, NDArray[np.bool_]]:
    """For each kind, which points of the pairs are of it, [points]; a kind without a point is left out.

    There is none where some annotation does not say of what kind its pair is, and no geometry-aware points
    where of some pair it is not known which points its target image shows.
    """
    facts = [pair.facts for pair in pairs]
    counts = [len(pair.source_points) for pair in pairs]
    there = [one for one in facts if one is not None]
    if len(there) < len(facts):
        return {}
    found = {
        f"{field} {name}": np.repeat([getattr(one, field) == level for one in there], counts)
        for field, names in KINDS.items()
        for level, name in enumerate(names)
    }
    flags = [one.mistakable for one in there if one.mistakable is not None]
    if len(flags) == len(there):
        found[MISTAKABLE] = np.array([flag for one in flags for flag in one], bool)
    return {name: points for name, points in found.items() if points.any()}
