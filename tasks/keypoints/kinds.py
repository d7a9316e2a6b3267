"""Kinds of pairs and of points that PCK is taken over one by one, from the same matches."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tasks.datasets.spair import KeypointPair

HARD = ("easy", "medium", "hard")
WHICH = ("none", "source", "target", "both")

KINDS = {"viewpoint": HARD, "scale": HARD, "truncation": WHICH, "occlusion": WHICH}
"""By field of `PairFacts`, the names of its levels."""

AZIMUTH = {"azimuth": tuple(str(eighths) for eighths in range(5))}
"""Eighths of a turn between the viewpoints of the two images, beside `KINDS`."""

MISTAKABLE = "geometry-aware"
"""Points whose target image shows another point that stands for the same (Zhang et al., CVPR 2024)."""


def pair_kinds(pairs: Sequence[KeypointPair]) -> Mapping[str, NDArray[np.bool_]]:
    """For each kind, which points of the pairs are of it, [points]; a kind without a point is left out.

    There are no levels where some annotation does not say of which its pair is, no geometry-aware points
    where of some pair it is not known which points its target image shows, and no azimuth where of some image
    it is not known.
    """
    facts = [pair.facts for pair in pairs]
    counts = [len(pair.source_points) for pair in pairs]
    there = [one for one in facts if one is not None]
    found: dict[str, NDArray[np.bool_]] = {}
    if len(there) == len(facts):
        levels = {field: [getattr(one, field) for one in there] for field in KINDS}
        found |= _by_level(KINDS, levels, counts)
    if all(pair.turn is not None for pair in pairs):
        found |= _by_level(AZIMUTH, {"azimuth": [pair.turn for pair in pairs]}, counts)
    flags = [one.mistakable for one in there if one.mistakable is not None]
    if len(flags) == len(facts):
        found[MISTAKABLE] = np.array([flag for one in flags for flag in one], bool)
    return {name: points for name, points in found.items() if points.any()}


def _by_level(
    names: Mapping[str, Sequence[str]], levels: Mapping[str, Sequence[int | None]], counts: Sequence[int]
) -> dict[str, NDArray[np.bool_]]:
    """Which points are of each level, of pairs with so many points each."""
    return {
        f"{field} {name}": np.repeat([level == place for level in levels[field]], counts)
        for field, each in names.items()
        for place, name in enumerate(each)
    }
