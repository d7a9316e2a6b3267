"""The ways in which papers average hits of keypoints: per image or per point, over all or over categories."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tasks.metrics.arrays import Integers


@dataclass(frozen=True, slots=True)
class PckAverages:
    """Shares of hits, in their unit; NaN where there is no point.

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


def pck_averages(
    hits: NDArray[np.floating] | NDArray[np.bool_], pair: Integers, categories: Sequence[str]
) -> PckAverages:
    """Averages of the hits of points.

    Args:
        hits: [points] whether each point was hit, or what a hit is worth; averages are in its unit.
        pair: [points] number of the pair of images that each point is of.
        categories: Category of each pair, also of those without a point.

    Raises:
        ValueError: There is not one pair a point, or no category of a pair.
    """
    if hits.shape != pair.shape or (len(pair) and not 0 <= pair.min() <= pair.max() < len(categories)):
        raise ValueError(
            f"expected a pair a point and a category a pair, found {len(pair)} for {len(hits)} points"
        )
    if not len(hits):
        return PckAverages(*[float("nan")] * 5)
    counts, sums = np.bincount(pair), np.bincount(pair, hits)
    there = np.flatnonzero(counts)
    share, points, right = sums[there] / counts[there], counts[there], sums[there]
    category = np.unique(np.asarray(categories, str)[there], return_inverse=True)[1]
    pairs = np.bincount(category)
    by_category = np.bincount(category, right) / np.bincount(category, points)
    return PckAverages(
        image_all=float(share.mean()),
        image_category=float((np.bincount(category, share) / pairs).mean()),
        point_all=float(right.sum() / points.sum()),
        point_category=float(by_category.mean()),
        point_by_pairs=float(np.average(by_category, weights=pairs)),
    )
