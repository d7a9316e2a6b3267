"""Transforms of vectors before scoring, fitted without labels on some of them; and sets of vectors."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce

import numpy as np
from numpy.typing import NDArray

from layerboard.tasks.framework import compression
from layerboard.tasks.framework.transforms import WAYS, step_of
from layerboard.tasks.metrics.arrays import lengths
from layerboard.tasks.metrics.spread import whitening, zscore

Vectors = Mapping[str, NDArray[np.float32]]  # vectors of a layer by source name, [images dim] each


@dataclass(frozen=True, slots=True)
class TransformConfig:
    """Settings of the transforms of vectors."""

    shrinkage: float  # share of the mean variance that ``whiten`` mixes into each, above 0, at most 1


STANDARD = TransformConfig(shrinkage=0.1)  # for all protocols


def known_rows(vectors: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    """The vectors of all readable images, [n dim]."""
    every = np.concatenate(vectors)
    known: NDArray[np.float32] = every[~np.isnan(every).any(axis=1)]
    return known


def fit_compression(transform: str, known: Sequence[NDArray[np.float32]]) -> compression.Change:
    """A transform of vectors, fitted step by step on vectors [n dim].

    Rows of unreadable images are NaN: they are not used for fitting, and stay NaN.
    """
    changes: list[compression.Change] = []
    for step in transform.split("+"):
        known = [changes[-1](each) for each in known] if changes else known
        if step in WAYS:
            spread = whitening(known, STANDARD.shrinkage) if step == "whiten" else zscore(known)
            changes.append(spread.of)
        else:
            change = compression.fitted(*step_of(step), known_rows(known))
            changes.append(partial(compression.applied, change))
    return lambda vectors: reduce(lambda before, change: change(before), changes, vectors)


def side_by_side(layers: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    """Concatenated vectors [images dim] of layers: each unit (or zero) vector / sqrt(number of layers)."""
    units = []
    for vectors in layers:
        wide = vectors.astype(np.float64)
        units.append((wide / (lengths(wide) * math.sqrt(len(layers)))).astype(np.float32))
    return np.concatenate(units, axis=1)
