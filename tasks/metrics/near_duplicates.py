"""Near-duplicate images in a collection, by the cosine distances of their vectors in several layers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from layerboard.tasks.metrics.arrays import Features, Floats, Integers
from layerboard.tasks.metrics.neighbours import (
    CACHED_FLOATS,
    Vectors,
    chunks,
    in_threads,
    nearest,
    unit_vectors,
)

FAR = 64  # rank of the neighbour whose distance is the unit of near-duplicates in stored vectors
NEAR = 0.1  # largest distance of near-duplicates, 1 - cosine, in this unit
ASKED = 2000  # most images whose neighbours are searched for this
PAIRED = 20_000  # most images of which all are searched for pairs: products grow with the square


@dataclass(frozen=True, slots=True)
class OtherImages:
    """The other images nearest to some of a collection in one layer, best first."""

    asked: Integers  # [images] index of each in the collection
    index: Integers  # [images others] index of the others there
    distance: Floats  # [images others] 1 - cosine
    usual: float  # median distance to the last of them: the unit of near-duplicates

    @property
    def relative(self) -> Floats:
        """Distances in units of the usual one, [images others]; 1 if that is 0: none is nearer then."""
        return _relative(self.distance, self.usual)


@dataclass(frozen=True, slots=True)
class NearDuplicatePairs:
    """Pairs of near-duplicates, the lower index first, in order."""

    pairs: Integers  # [pairs 2] indices of images
    cosine: Floats  # [pairs] median of the layers


def share_with_near_duplicate(layers: Iterable[Vectors]) -> float:
    """Share of the images, 0 to 1, that have a near-duplicate among the others, by vectors [images dim].

    Each layer measures how far the nearest other image is, in units of the median distance of a far
    neighbour: the `FAR`-th, or one third down the ranks of a small folder, so that series of so many images
    are found, too. An image has a near-duplicate if the median of the layers is at most `NEAR`. Of more than
    `ASKED` images, about so many are asked, evenly spaced. 0 without layers, and for fewer than three images.
    """
    relative = []
    for vectors in layers:
        if len(vectors) < 3:
            return 0.0
        relative.append(_other_images(vectors, every=False).relative[:, 0])
    return float((np.median(relative, axis=0) <= NEAR).mean()) if relative else 0.0


def near_duplicate_pairs(layers: Sequence[Vectors]) -> NearDuplicatePairs:
    """The pairs of images that make `share_with_near_duplicate` what it is, by vectors [images dim].

    The distance of a pair is measured as there, and compared with the same threshold, for every image; of
    more than `PAIRED`, for those that are asked there. An image that has a near-duplicate is in a pair: if
    other images are nearest to it in other layers, so that no pair is near enough, then with the nearest of
    them. No pairs without layers, and for fewer than three images.
    """
    if not layers or len(layers[0]) < 3:
        return NearDuplicatePairs(np.empty((0, 2), np.int64), np.empty(0))
    count = len(layers[0])
    others = [_other_images(vectors, every=count <= PAIRED) for vectors in layers]
    near = [np.nonzero(each.relative <= NEAR) for each in others]  # a pair is so near in some layer
    both = zip(others, near, strict=True)
    ends = [np.stack([each.asked[rows], each.index[rows, ranks]], axis=1) for each, (rows, ranks) in both]
    pairs = _ordered_pairs(ends, count)
    apart = np.stack([_distances(unit_vectors(vectors), pairs) for vectors in layers])
    measured = zip(apart, others, strict=True)
    relative = np.median([_relative(row, each.usual) for row, each in measured], axis=0)
    kept = relative <= NEAR
    counted = np.median([each.relative[:, 0] for each in others], axis=0) <= NEAR
    for image in np.setdiff1d(others[0].asked[counted], pairs[kept]):
        rows = np.flatnonzero((pairs == image).any(axis=1))
        kept[rows[relative[rows].argmin()]] = True
    return NearDuplicatePairs(pairs[kept], np.median(1.0 - apart, axis=0)[kept])


def _other_images(vectors: Vectors, *, every: bool) -> OtherImages:
    """The nearest other images of every image, or of about `ASKED`, which always determine the unit.

    There are `FAR` of each, or a third of the images of a small folder. ``vectors`` are of at least three.
    """
    step = -(-len(vectors) // ASKED)
    asked = np.arange(0, len(vectors), 1 if every else step)
    far = min(FAR, len(vectors) // 3)
    near = nearest(vectors, vectors[asked], far + 1)
    distance = np.where(near.index == asked[:, None], np.inf, 1.0 - near.similarity.astype(np.float64))
    order = np.argsort(distance, axis=1, kind="stable")[:, :far]
    index, distance = (np.take_along_axis(each, order, axis=1) for each in (near.index, distance))
    distance = np.maximum(distance, 0.0)
    return OtherImages(asked, index, distance, float(np.median(distance[:: step if every else 1, -1])))


def _relative(distance: Floats, usual: float) -> Floats:
    return distance / usual if usual > 0 else np.ones_like(distance)


def _distances(unit: Features, pairs: Integers) -> Floats:
    """1 - cosine of pairs of unit vectors [images dim]: [pairs]."""
    apart = np.empty(len(pairs))

    def fill(rows: slice) -> None:
        first, second = (unit[pairs[rows, side]].astype(np.float64) for side in (0, 1))
        apart[rows] = np.maximum(1.0 - np.einsum("nd,nd->n", first, second), 0.0)

    in_threads(fill, chunks(len(pairs), unit.shape[1], CACHED_FLOATS))
    return apart


def _ordered_pairs(pairs: Sequence[Integers], count: int) -> Integers:
    """Distinct pairs of two different indices below ``count``, the lower one first, in order."""
    ends = np.concatenate(pairs)
    first, second = ends.min(axis=1), ends.max(axis=1)
    keys = np.unique((first * count + second)[first < second])
    return np.stack(np.divmod(keys, count), axis=1)
