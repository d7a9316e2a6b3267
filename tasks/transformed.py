"""Vectors that are changed before they are scored, by what some of them are like, without labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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


def known_rows(vectors: Vectors, names: Sequence[str]) -> NDArray[np.float32]:
    """The vectors of the images that could be read, of sources of some names, [n dim]."""
    every = np.concatenate([vectors[name] for name in names])
    known: NDArray[np.float32] = every[~np.isnan(every).any(axis=1)]
    return known


def transformed(vectors: Vectors, transform: str, fitted_on: Sequence[str]) -> Vectors:
    """The vectors of one layer, by the steps of a transform fitted on those of sources of some names.

    Rows of images that could not be read are NaN: nothing is fitted on them, and they stay so. All sources
    are moved, scaled and compressed alike, also those that nothing may be fitted on.
    """
    for step in transform.split("+"):
        if step in WAYS:
            known = [vectors[name] for name in fitted_on]
            spread = whitening(known, STANDARD.shrinkage) if step == "whiten" else zscore(known)
            vectors = {name: spread.of(each) for name, each in vectors.items()}
        else:
            change = compression.fitted(*step_of(step), known_rows(vectors, fitted_on))
            vectors = {name: compression.applied(change, each) for name, each in vectors.items()}
    return vectors
