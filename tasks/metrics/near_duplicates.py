"""Copies of images in a collection: by small grey pictures of them, and by the cosine of their vectors.

A difference hash finds candidates: whether each of 8 x 8 cells is brighter than its left neighbour.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from layerboard.tasks.metrics.arrays import Features, Floats, Integers
from layerboard.tasks.metrics.neighbours import Neighbours, chunks

BITS = 64
SMALL = (9, 8)  # width and height of the grey picture that is hashed
NEAREST_BITS = 8  # bits at most by which the hashes of copies differ, of 64
SHARE = 0.3  # of what is usual between two images, bits or distances, from which on they are no copies
ALIKE = 0.95  # correlation from which on pictures of nearly one hash are copies
USUAL = 3  # the neighbour whose distance is usual, in the median of all images: few have so many copies
PAIRS = 1 << 16  # random pairs that tell by how many bits images differ


def copied_pictures(grey: NDArray[np.uint8]) -> Integers:
    """Pairs [pairs 2], first and second by place, of small grey pictures [pictures 8 9] that are copies.

    Their hashes nearly agree and they correlate, or one and the mirrored other. Hashes differ by at most
    `NEAREST_BITS`, or by `SHARE` of what random pairs do where that is less: hashes of flat pictures all
    agree. Pictures of one hash are each a pair with the first of them alone.
    """
    both = grey, grey[:, :, ::-1]
    plain, mirrored = ((each[:, :, 1:] > each[:, :, :-1]).reshape(len(grey), BITS) for each in both)
    _, first, alike = np.unique(np.packbits(plain, axis=1), axis=0, return_index=True, return_inverse=True)
    signs = [2 * each[first].astype(np.float32) - 1 for each in (plain, mirrored)]
    random = np.random.default_rng(0).integers(0, len(plain), (2, PAIRS if len(plain) else 0))
    apart = (plain[random[0]] != plain[random[1]]).sum(axis=1)[random[0] != random[1]]
    most = min(NEAREST_BITS, SHARE * np.median(apart)) if len(apart) else 0
    candidates = [np.stack([first[alike], np.arange(len(plain))], axis=1)]
    for rows in chunks(len(first), len(first)):
        bits = [(BITS - signs[0][rows] @ each.T) / 2 for each in signs]
        candidates.append(first[np.argwhere(np.minimum(*bits) <= most) + np.array([rows.start, 0])])
    pairs = _ordered(np.concatenate(candidates))
    units = [_standardised(each) for each in both]
    correlation = [np.einsum("nd,nd->n", units[0][pairs[:, 0]], each[pairs[:, 1]]) for each in units]
    return np.asarray(pairs[np.maximum(*correlation) >= ALIKE])


def _standardised(grey: NDArray[np.uint8]) -> Floats:
    """Pictures as vectors of mean 0 and length 1; of length 0 where they are flat."""
    values = grey.reshape(len(grey), -1) - grey.mean(axis=(1, 2))[:, None]
    return np.asarray(values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1))


def usual_distance(found: Neighbours) -> float:
    """The median over images of the distance, 1 - cosine, to the `USUAL`-th neighbour, or the last one."""
    return float(np.median(1.0 - found.similarity[:, :USUAL][:, -1])) if found.similarity.size else 0.0


def distances(unit: Features, pairs: Integers) -> Floats:
    """1 - cosine of pairs of unit vectors [images dim], [pairs]."""
    apart = np.empty(len(pairs))
    for rows in chunks(len(pairs), unit.shape[1]):
        first, second = (unit[pairs[rows, side]].astype(np.float64) for side in (0, 1))
        apart[rows] = np.maximum(1.0 - np.einsum("nd,nd->n", first, second), 0.0)
    return apart


def near_pairs(found: Neighbours, usual: float) -> Integers:
    """Pairs [pairs 2], first and second by place, of neighbours no farther than `SHARE` of usual."""
    rows, ranks = np.nonzero(1.0 - found.similarity <= SHARE * usual)
    return _ordered(np.stack([rows, found.index[rows, ranks]], axis=1))


def clusters_of(count: int, pairs: Sequence[Integers]) -> Integers:
    """The cluster of each of so many items, [count] from 0, where pairs of some kinds stay together."""
    ends = np.concatenate([np.zeros((0, 2), np.int64), *pairs])
    edges = coo_array((np.ones(len(ends), np.int8), (ends[:, 0], ends[:, 1])), shape=(count, count))
    return connected_components(edges, directed=False)[1].astype(np.int64)


def _ordered(pairs: Integers) -> Integers:
    """Pairs of two different places, the lower one first, each once."""
    pairs = np.sort(pairs, axis=1)
    return np.unique(pairs[pairs[:, 0] < pairs[:, 1]], axis=0)
