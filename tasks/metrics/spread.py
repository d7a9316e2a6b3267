"""Transforms of vectors: standardisation and whitening."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from layerboard.tasks.metrics.arrays import Floats

Vectors = NDArray[np.float32]

STILL = 1e-6  # a channel whose spread relative to its magnitude is below this is constant but for rounding
TOGETHER = 1 << 16  # vectors whose products are summed at a time, in float64


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean and scale of some vectors, to centre and scale others."""

    mean: Floats  # [dim]
    scale: Floats  # factor of centred vectors: [dim] for each channel, or a matrix [dim dim]

    def of(self, vectors: Vectors) -> Vectors:
        """Vectors [n dim], centred and scaled, float32; rows that contain NaN stay NaN."""
        centred = vectors - self.mean.astype(np.float32)
        scale = self.scale.astype(np.float32)
        changed: Vectors = centred * scale if scale.ndim == 1 else centred @ scale
        return changed


def zscore(vectors: Sequence[Vectors]) -> Spread:
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


def whitening(vectors: Sequence[Vectors], shrinkage: float) -> Spread:
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


def covariance(vectors: Sequence[Vectors]) -> tuple[Floats, Floats]:
    """Mean [dim] and covariance [dim dim] of the rows [n dim] without NaN; raises ValueError for none."""
    mean = _mean(vectors)
    count, products = 0, np.zeros((len(mean), len(mean)))
    for part in _parts(vectors):
        centred = part - mean
        count += len(part)
        products += centred.T @ centred
    return mean, products / count


def _mean(vectors: Sequence[Vectors]) -> Floats:
    total, count = np.zeros(vectors[0].shape[1]), 0
    for part in _parts(vectors):
        total += part.sum(axis=0)
        count += len(part)
    if not count:
        raise ValueError("expected at least one vector without NaN")
    return total / count


def _parts(vectors: Sequence[Vectors]) -> Iterator[Floats]:
    """Rows without NaN of all vectors, in chunks, float64."""
    for values in vectors:
        for start in range(0, len(values), TOGETHER):
            part = values[start : start + TOGETHER].astype(np.float64)
            yield part[~np.isnan(part).any(axis=1)]
