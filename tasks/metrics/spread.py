"""Changes of vectors: to an even spread around the mean of others, or without what tells their position.

Source of the removal of positions, as an image without content shows them: INSID3 (visinf/INSID3, commit
f1c9622).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from layerboard.tasks.metrics.arrays import Floats

Vectors = NDArray[np.float32]

STILL = 1e-6  # spread of a channel, as a share of its size, below which it is rounding
TOGETHER = 1 << 16  # vectors whose products are summed at once, in float64


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean and scale of vectors, by which others are seen."""

    mean: Floats  # [dim]
    scale: Floats  # by what centred vectors are multiplied: [dim] for each channel, or [dim dim]

    def of(self, vectors: Vectors) -> Vectors:
        """Vectors [n dim] around the mean and scaled, float32; rows that hold NaN stay NaN."""
        centred = vectors - self.mean.astype(np.float32)
        scale = self.scale.astype(np.float32)
        changed: Vectors = centred * scale if scale.ndim == 1 else centred @ scale
        return changed


def zscore(vectors: Sequence[Vectors]) -> Spread:
    """The change by which each channel of vectors [n dim] has mean 0 and standard deviation 1.

    Rows that hold NaN are left out; ValueError where none is left. Channels that are the same in all become
    0.
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
    """The change of vectors [n dim] to covariance 1 in all directions, as far as the shrinkage lets them.

    The matrix is symmetric (ZCA): of all whitenings the one that turns vectors least. The covariance C
    becomes ``(1 - s) C + s (trace C / dim) 1`` first, so directions of little spread are not blown up: no
    variance is divided by less than the share s, above 0 and at most 1, of the mean one; with 1, vectors are
    only centred and scaled as a whole. Vectors that are all equal become 0. Rows that hold NaN are left out;
    ValueError where none is left, or for a shrinkage outside its range.

    Source: Ledoit and Wolf, J. Multivariate Analysis 2004 (the target of the shrinkage).
    """
    if not 0 < shrinkage <= 1:
        raise ValueError(f"expected a shrinkage above 0 and at most 1, found {shrinkage}")
    mean, products = covariance(vectors)
    values, directions = np.linalg.eigh(products)
    usual = float(values.mean())
    if usual <= (STILL * float(np.abs(mean).max(initial=0.0))) ** 2:
        return Spread(mean, np.zeros_like(products))
    shrunk = (1 - shrinkage) * np.maximum(values, 0) + shrinkage * usual
    return Spread(mean, (directions / np.sqrt(shrunk)) @ directions.T)


def covariance(vectors: Sequence[Vectors]) -> tuple[Floats, Floats]:
    """Mean [dim] and covariance [dim dim] of the known rows of vectors [n dim]; ValueError for none."""
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
        raise ValueError("expected vectors of which at least one is known")
    return total / count


def _parts(vectors: Sequence[Vectors]) -> Iterator[Floats]:
    """The known rows of all vectors, a part at a time, float64."""
    for values in vectors:
        for start in range(0, len(values), TOGETHER):
            part = values[start : start + TOGETHER].astype(np.float64)
            yield part[~np.isnan(part).any(axis=1)]


RANK = 1e-6  # share of the largest singular value below which a direction is rounding


def position_basis(blank: Tensor, components: int) -> Tensor:
    """Directions of the position in tokens [tokens dim] of an image without content, orthonormal.

    They, [dim components], are the leading directions of the unit tokens around their mean; fewer come back
    where there are fewer: what is beyond the numerical rank is arbitrary. Raises ValueError for another
    shape, a negative number, or a value that is NaN or infinite.
    """
    if blank.ndim != 2 or not blank.numel() or components < 0:
        shapes = f"{tuple(blank.shape)}, {components}"
        raise ValueError(f"expected tokens [tokens dim] and a number from 0, found {shapes}")
    if not bool(blank.isfinite().all()):
        raise ValueError("tokens must not hold NaN or infinite values")
    tokens = functional.normalize(blank.to(torch.float64), dim=-1)
    left, values, _ = torch.linalg.svd((tokens - tokens.mean(0)).T, full_matrices=False)
    # the spread of unit vectors that are all equal is rounding, whatever its directions
    rank = int((values > RANK * max(float(values[0]), len(tokens) ** 0.5)).sum())
    most = min(components, rank, blank.shape[1], max(0, len(tokens) - 1))
    basis: Tensor = left[:, :most].to(blank.dtype)
    return basis


def debiased(tokens: Tensor, basis: Tensor) -> Tensor:
    """Tokens [... dim] of length 1 without what a basis spans; as they are, bit for bit, if it is empty."""
    if not basis.shape[1]:
        return tokens
    unit = functional.normalize(tokens, dim=-1)
    basis = basis.to(unit)
    return functional.normalize(unit - (unit @ basis) @ basis.T, dim=-1)
