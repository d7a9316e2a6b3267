"""Vectors that are changed before they are scored, by what some of them are like, without labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce

import numpy as np
from numpy.typing import NDArray

from layerboard.tasks.metrics import compression
from layerboard.tasks.metrics.spread import whitening, zscore
from layerboard.tasks.transforms import WAYS, step_of

Vectors = Mapping[str, NDArray[np.float32]]  # vectors of a layer by name of the source, [images dim] each


@dataclass(frozen=True, slots=True)
class TransformConfig:
    """The numbers of transforms of vectors."""

    shrinkage: float  # share of the mean variance that ``whiten`` gives each direction, above 0 and at most 1


STANDARD = TransformConfig(shrinkage=0.1)  # of all protocols


def known_rows(vectors: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    """The vectors of all images that could be read, [n dim]."""
    every = np.concatenate(vectors)
    known: NDArray[np.float32] = every[~np.isnan(every).any(axis=1)]
    return known


def fit(transform: str, known: Sequence[NDArray[np.float32]]) -> compression.Change:
    """A transform of vectors, fitted on vectors [n dim], step by step.

    Rows of images that could not be read are NaN: nothing is fitted on them, and they stay so.
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


def transformed(vectors: Vectors, transform: str, fitted_on: Sequence[str]) -> Vectors:
    """The vectors of one layer, by a transform fitted on those of sources of some names.

    All sources are moved, scaled and compressed alike, also those that nothing may be fitted on.
    """
    change = fit(transform, [vectors[name] for name in fitted_on])
    return {name: change(each) for name, each in vectors.items()}
