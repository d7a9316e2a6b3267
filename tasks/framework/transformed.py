"""Transforms of vectors before scoring, fitted without labels on vectors that are known before any query.

Compressions have fewer dimensions, or codes with few bits per dimension. Compressed vectors are returned
decompressed, as read back from disk, so that every metric of vectors applies to them. Sources: Jégou, Douze
and Schmid, Product Quantization for Nearest Neighbor Search, TPAMI 2011; Johnson and Lindenstrauss, 1984.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from layerboard.tasks.framework.transforms import WAYS, step_of
from layerboard.tasks.metrics.arrays import Floats, lengths
from layerboard.tasks.metrics.neighbours import chunks, unit_vectors

Matrix = NDArray[np.float32]  # vectors, one a row
Vectors = Mapping[str, Matrix]  # vectors of a layer by source name, [images dim] each

SEED = 1234
ITERATIONS = 25  # of k-means, for each part of a vector
BITS = 8  # code size of a part
EDGES = (0.005, 0.995)  # quantiles of a channel at the lowest and the highest of its 255 levels
LEVELS = 127  # number of levels on each side of the middle one
COLUMNS = 64  # channels whose quantiles are computed at a time
STILL = 1e-6  # a channel whose spread relative to its magnitude is below this is constant but for rounding
TOGETHER = 1 << 16  # vectors whose products are summed at a time, in float64

Change = Callable[[Matrix], Matrix]
"""Function that compresses finite vectors [n dim] and returns them decompressed, [n numbers], float32."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean and scale of some vectors, to centre and scale others."""

    mean: Floats  # [dim]
    scale: Floats  # factor of centred vectors: [dim] for each channel, or a matrix [dim dim]

    def of(self, vectors: Matrix) -> Matrix:
        """Matrix [n dim], centred and scaled, float32; rows that contain NaN stay NaN."""
        centred = vectors - self.mean.astype(np.float32)
        scale = self.scale.astype(np.float32)
        changed: Matrix = centred * scale if scale.ndim == 1 else centred @ scale
        return changed


def zscore(vectors: Sequence[Matrix]) -> Spread:
    """The transform that gives each channel of vectors [n dim] mean 0 and standard deviation 1.

    Rows that contain NaN are left out; raises ValueError if none is left. Constant channels become 0.
    """
    mean = _mean(vectors)
    count, squares = 0, np.zeros_like(mean)
    for part in _parts(vectors):
        count += len(part)
        squares += ((part - mean) ** 2).sum(axis=0)
    deviation = np.sqrt(squares / count)
    moves = deviation > STILL * (np.abs(mean) + deviation)
    return Spread(mean, np.where(moves, 1 / np.where(moves, deviation, 1), 0.0))


def whitening(vectors: Sequence[Matrix], shrinkage: float) -> Spread:
    """The transform that whitens vectors [n dim]: unit covariance, up to a shrinkage s.

    The matrix is symmetric (ZCA), the whitening that rotates vectors least. The covariance C is first
    replaced by ``(1 - s) C + s (trace C / dim) 1``, so that directions of little variance are not amplified:
    no variance is divided by less than the share s, above 0 and at most 1, of the mean variance. With s = 1,
    vectors are only centred and scaled by one factor. Vectors that are all equal become 0. Rows that contain
    NaN are left out; raises ValueError if none is left.

    Source: Ledoit and Wolf, J. Multivariate Analysis 2004 (the target of the shrinkage).
    """
    mean, products = covariance(vectors)
    values, directions = np.linalg.eigh(products)
    usual = float(values.mean())
    if usual <= (STILL * float(np.abs(mean).max(initial=0.0))) ** 2:
        return Spread(mean, np.zeros_like(products))
    shrunk = (1 - shrinkage) * np.maximum(values, 0) + shrinkage * usual
    return Spread(mean, (directions / np.sqrt(shrunk)) @ directions.T)


def covariance(vectors: Sequence[Matrix]) -> tuple[Floats, Floats]:
    """Mean [dim] and covariance [dim dim] of the rows [n dim] without NaN; raises ValueError for none."""
    mean = _mean(vectors)
    count, products = 0, np.zeros((len(mean), len(mean)))
    for part in _parts(vectors):
        centred = part - mean
        count += len(part)
        products += centred.T @ centred
    return mean, products / count


def _mean(vectors: Sequence[Matrix]) -> Floats:
    total, count = np.zeros(vectors[0].shape[1]), 0
    for part in _parts(vectors):
        total += part.sum(axis=0)
        count += len(part)
    if not count:
        raise ValueError("expected at least one vector without NaN")
    return total / count


def _parts(vectors: Sequence[Matrix]) -> Iterator[Floats]:
    """Rows without NaN of all vectors, in chunks, float64."""
    for values in vectors:
        for start in range(0, len(values), TOGETHER):
            part = values[start : start + TOGETHER].astype(np.float64)
            yield part[~np.isnan(part).any(axis=1)]


@dataclass(frozen=True, slots=True)
class Levels:
    """Quantisation of each channel to 255 evenly spaced levels."""

    middle: Floats  # value of level 0: [dim]
    step: Floats  # difference between neighbouring levels: [dim], 0 for a constant channel

    def codes(self, vectors: Matrix) -> NDArray[np.int8]:
        """Nearest level of each number [n dim], -127 to 127; halves round to the even level."""
        steps = (vectors - self.middle) / np.where(self.step > 0, self.step, np.inf)
        return np.rint(steps).clip(-LEVELS, LEVELS).astype(np.int8)

    def of(self, vectors: Matrix) -> Matrix:
        return (self.middle + self.step * self.codes(vectors)).astype(np.float32)


def quantisation_levels(known: Matrix) -> Levels:
    """Levels from the 0.5 % to the 99.5 % quantile of each channel of vectors [n dim]."""
    parts = (known[:, start : start + COLUMNS] for start in range(0, known.shape[1], COLUMNS))
    ends = [np.quantile(part.astype(np.float64), EDGES, axis=0) for part in parts]
    low, high = np.concatenate(ends, axis=1)
    return Levels((low + high) / 2, (high - low) / (2 * LEVELS))


def product_codes(known: Matrix, parts: int) -> Change:
    """Product quantisation of unit vectors by faiss's ``IndexPQ``: one of 256 centroids for each part.

    The centroids come from k-means on vectors [n dim], of which at least 256 are needed. ``parts`` must
    divide dim.
    """
    import faiss

    index = faiss.IndexPQ(known.shape[1], parts, BITS)
    clusters = index.pq.cp
    clusters.seed, clusters.niter, clusters.min_points_per_centroid = SEED, ITERATIONS, 1
    with threadpool_limits(limits=1):  # the number of threads must not change a centroid
        index.train(unit_vectors(known))
    return lambda vectors: index.sa_decode(index.sa_encode(unit_vectors(vectors)))


def leading_directions(known: Matrix, count: int) -> Change:
    """Projection on the directions of largest variance of vectors [n dim] (PCA), normalised to length 1.

    The mean is subtracted to find the directions, not from the vectors: with all directions, cosines are
    unchanged.
    """
    _, products = covariance([known])
    directions = np.linalg.eigh(products)[1][:, : -count - 1 : -1]
    return lambda vectors: unit_vectors(vectors.astype(np.float64) @ directions)


def fitted(name: str, number: int, known: Matrix) -> Change:
    """One compression step, fitted on finite vectors [n dim].

    ``pca``: `leading_directions`; ``rp``: ``number`` random directions; ``first``: the first ``number``
    channels; ``int8``: `Levels`; ``binary``: 1 for a channel of at least its mean, otherwise -1, so that the
    cosine falls with the Hamming distance; ``pq``: `product_codes` with ``number`` parts.
    """
    if name == "pca":
        return leading_directions(known, number)
    if name == "rp":
        directions = np.random.default_rng(SEED).standard_normal((known.shape[1], number)) / number**0.5
        return lambda vectors: (vectors.astype(np.float64) @ directions).astype(np.float32)
    if name == "first":
        return lambda vectors: vectors[:, :number]
    if name == "int8":
        return quantisation_levels(known).of
    if name == "binary":
        mean = known.mean(axis=0, dtype=np.float64)
        return lambda vectors: np.where(vectors >= mean, np.float32(1), np.float32(-1))
    return product_codes(known, number)


def applied(change: Change, vectors: Matrix) -> Matrix:
    """Vectors [n dim] after a step, computed in chunks; rows with NaN or infinity become all NaN."""
    rows = np.flatnonzero(np.isfinite(vectors).all(axis=1))
    parts = [*chunks(len(rows), vectors.shape[1])] or [slice(0)]
    changed = np.concatenate([change(vectors[rows[part]]) for part in parts])
    whole = np.full((len(vectors), changed.shape[1]), np.nan, np.float32)
    whole[rows] = changed
    return whole


@dataclass(frozen=True, slots=True)
class TransformConfig:
    """Settings of the transforms of vectors."""

    shrinkage: float  # share of the mean variance that ``whiten`` mixes into each, above 0, at most 1


STANDARD = TransformConfig(shrinkage=0.1)  # for all protocols


def known_rows(vectors: Sequence[Matrix]) -> Matrix:
    """The vectors of all readable images, [n dim]."""
    every = np.concatenate(vectors)
    known: Matrix = every[~np.isnan(every).any(axis=1)]
    return known


def fit_compression(transform: str, known: Sequence[Matrix]) -> Change:
    """A transform of vectors, fitted step by step on vectors [n dim].

    Rows of unreadable images are NaN: they are not used for fitting, and stay NaN.
    """
    changes: list[Change] = []
    for step in transform.split("+"):
        known = [changes[-1](each) for each in known] if changes else known
        if step in WAYS:
            spread = whitening(known, STANDARD.shrinkage) if step == "whiten" else zscore(known)
            changes.append(spread.of)
        else:
            change = fitted(*step_of(step), known_rows(known))
            changes.append(partial(applied, change))
    return lambda vectors: reduce(lambda before, change: change(before), changes, vectors)


def side_by_side(layers: Sequence[Matrix]) -> Matrix:
    """Concatenated vectors [images dim] of layers: each unit (or zero) vector / sqrt(number of layers)."""
    units = []
    for vectors in layers:
        wide = vectors.astype(np.float64)
        units.append((wide / (lengths(wide) * math.sqrt(len(layers)))).astype(np.float32))
    return np.concatenate(units, axis=1)
