"""The ways in which papers average hits of keypoints: per image or per point, over all or over categories."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class PckAverages:
    """Shares of hits, fractions; NaN where there is no point.

    Attributes:
        image_all: Mean over all pairs of the share of each; pairs without a point are left out.
        image_category: Mean over categories of the mean over their pairs.
        point_all: Share of all points.
        point_category: Mean over categories of the share of their points.
        point_by_pairs: The same, categories weighted by how many pairs they have.
    """

    image_all: float
    image_category: float
    point_all: float
    point_category: float
    point_by_pairs: float


def pck_averages(hits: Sequence[NDArray[np.bool_]], categories: Sequence[str]) -> PckAverages:
    """Averages of the hits of pairs.

    Args:
        hits: Of each pair, whether each of its points was hit.
        categories: Category of each pair.

    Raises:
        ValueError: There are not as many categories as pairs.
    """
    if len(hits) != len(categories):
        raise ValueError(f"expected one category a pair, found {len(categories)} for {len(hits)} pairs")
    there = [(one, name) for one, name in zip(hits, categories, strict=True) if len(one)]
    by_name = {name: [one for one, own in there if own == name] for name in sorted({n for _, n in there})}
    images = {name: [float(one.mean()) for one in own] for name, own in by_name.items()}
    points = {name: float(np.concatenate(own).mean()) for name, own in by_name.items()}
    pairs = [len(own) for own in by_name.values()]
    every = np.concatenate([one for one, _ in there]) if there else np.zeros(0)
    return PckAverages(
        _mean([share for own in images.values() for share in own]),
        _mean([_mean(own) for own in images.values()]),
        _mean(every.tolist()),
        _mean([*points.values()]),
        float(np.average([*points.values()], weights=pairs)) if there else float("nan"),
    )


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else float("nan")
