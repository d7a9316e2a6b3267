"""Near-duplicate images in a collection, found by small grey thumbnails and by the cosine of their vectors.

A difference hash finds candidates: one bit for each of 8 x 8 cells, whether it is brighter than its left
neighbour.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from layerboard.tasks.metrics.arrays import Features, Floats, Integers, Mask
from layerboard.tasks.metrics.neighbours import (
    CACHED_FLOATS,
    Neighbours,
    Vectors,
    alike_codes,
    chunks,
    in_threads,
    nearest,
)

BITS = 64
SMALL = (9, 8)  # width and height of the grey thumbnail that is hashed
NEAREST_BITS = 8  # largest Hamming distance between the hashes of copies, of 64 bits
SHARE = 0.3  # copies differ by at most this share of the usual difference of two images (bits or distance)
ALIKE = 0.95  # least correlation of thumbnails with similar hashes that counts as a copy
EQUAL = 3  # grey levels by which the thumbnails of one picture in several files differ
USUAL = 3  # the usual distance is the median distance to this neighbour: few images have so many copies
FAR = 64  # rank of the neighbour whose distance is the unit of near-duplicates in stored vectors
NEAR = 0.1  # largest distance of near-duplicates, 1 - cosine, in this unit
ASKED = 2000  # most images whose neighbours are searched for this
PAIRS = 1 << 16  # random pairs that estimate the usual Hamming distance


def copied_pictures(grey: NDArray[np.uint8]) -> Integers:
    """Index pairs [pairs 2] of grey thumbnails [pictures 8 9] that are copies, the lower index first.

    The hashes of copies nearly agree, and the thumbnails correlate, directly or with one of them mirrored.
    Hashes may differ by `NEAREST_BITS`, or by `SHARE` of the median difference of random pairs if that is
    less, since the hashes of flat pictures all agree. Pictures with the same hash are paired only with the
    first of them.
    """
    both = grey, grey[:, :, ::-1]
    plain, mirrored = ((each[:, :, 1:] > each[:, :, :-1]).reshape(len(grey), BITS) for each in both)
    codes = [np.packbits(each, axis=1) for each in (plain, mirrored)]
    _, first, alike = np.unique(codes[0], axis=0, return_index=True, return_inverse=True)
    random = np.random.default_rng(0).integers(0, len(plain), (2, PAIRS if len(plain) else 0))
    apart = (plain[random[0]] != plain[random[1]]).sum(axis=1)[random[0] != random[1]]
    most = min(NEAREST_BITS, SHARE * np.median(apart)) if len(apart) else 0
    candidates = [np.stack([first[alike], np.arange(len(plain))], axis=1)]
    candidates += [first[alike_codes(codes[0][first], each[first], int(most))] for each in codes]
    pairs = ordered_pairs(np.concatenate(candidates), len(plain))
    units = [_standardised(each) for each in both]
    correlation = [np.einsum("nd,nd->n", units[0][pairs[:, 0]], each[pairs[:, 1]]) for each in units]
    return np.asarray(pairs[np.maximum(*correlation) >= ALIKE])


def equal_pictures(grey: NDArray[np.uint8], pairs: Integers) -> Mask:
    """Whether grey thumbnails [pictures 8 9] of pairs differ by at most `EQUAL` levels anywhere: [pairs]."""
    equal = np.empty(len(pairs), np.bool_)
    for rows in chunks(len(pairs), grey[0].size if len(grey) else 1):
        first, second = (grey[pairs[rows, side]].astype(np.int16) for side in (0, 1))
        equal[rows] = np.abs(first - second).max(axis=(1, 2)) <= EQUAL
    return equal


def _standardised(grey: NDArray[np.uint8]) -> Floats:
    """Pictures as vectors of mean 0 and length 1, or length 0 for constant pictures."""
    values = grey.reshape(len(grey), -1) - grey.mean(axis=(1, 2))[:, None]
    return np.asarray(values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1))


def usual_distance(found: Neighbours) -> float:
    """Median over images of the distance, 1 - cosine, to the `USUAL`-th neighbour, or to the last one.

    Where most images have copies, these are such neighbours; so it is at least `NEAR` / `SHARE` of the median
    distance to a far one: the last that was searched, or one third down the ranks of a small folder.
    """
    if not found.similarity.size:
        return 0.0
    usual, far = (
        float(np.median(1.0 - found.similarity[:, :rank][:, -1]))
        for rank in (USUAL, len(found.index) // 3 + 1)
    )
    return max(usual, far * NEAR / SHARE)


def distances(unit: Features, pairs: Integers) -> Floats:
    """1 - cosine of pairs of unit vectors [images dim]: [pairs]."""
    apart = np.empty(len(pairs))

    def fill(rows: slice) -> None:
        first, second = (unit[pairs[rows, side]].astype(np.float64) for side in (0, 1))
        apart[rows] = np.maximum(1.0 - np.einsum("nd,nd->n", first, second), 0.0)

    in_threads(fill, chunks(len(pairs), unit.shape[1], CACHED_FLOATS))
    return apart


def near_pairs(found: Neighbours, usual: float) -> Integers:
    """Index pairs [pairs 2] of neighbours at most `SHARE` of the usual distance apart, lower index first."""
    rows, ranks = np.nonzero(1.0 - found.similarity <= SHARE * usual)
    return ordered_pairs(np.stack([rows, found.index[rows, ranks]], axis=1), len(found.index))


def clusters_of(count: int, pairs: Sequence[Integers]) -> Integers:
    """Cluster of each of ``count`` items, from 0: connected components of the pairs, [count]."""
    ends = np.concatenate([np.zeros((0, 2), np.int64), *pairs])
    edges = coo_array((np.ones(len(ends), np.int8), (ends[:, 0], ends[:, 1])), shape=(count, count))
    return connected_components(edges, directed=False)[1].astype(np.int64)


def share_with_near_duplicate(layers: Iterable[Vectors]) -> float:
    """Share of the images, 0 to 1, that have a near-duplicate among the others, by vectors [images dim].

    Each layer measures how far the nearest other image is, in units of the median distance of a far
    neighbour: the `FAR`-th, or one third down the ranks of a small folder, so that series of so many images
    are found, too. An image has a near-duplicate if the median of the layers is at most `NEAR`. Of more than
    `ASKED` images, about so many are asked, evenly spaced. 0 without layers, and for fewer than three images.
    """
    relative = []
    for vectors in layers:
        asked = np.arange(0, len(vectors), -(-len(vectors) // ASKED))
        if (far := min(FAR, len(vectors) // 3)) < 1:
            return 0.0
        neighbours = nearest(vectors, vectors[asked], far + 1)
        apart = np.where(
            neighbours.index == asked[:, None], np.inf, 1.0 - neighbours.similarity.astype(np.float64)
        )
        apart = np.maximum(np.sort(apart, axis=1)[:, :far], 0.0)
        usual = np.median(apart[:, -1])
        relative.append(apart[:, 0] / usual if usual > 0 else np.ones(len(asked)))
    return float((np.median(relative, axis=0) <= NEAR).mean()) if relative else 0.0


def ordered_pairs(pairs: Integers, count: int) -> Integers:
    """Distinct pairs of two different indices below ``count``, the lower one first, in order."""
    first, second = pairs.min(axis=1), pairs.max(axis=1)
    keys = np.unique((first * count + second)[first < second])
    return np.stack(np.divmod(keys, count), axis=1)
