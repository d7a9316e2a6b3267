"""Vectors that are transformed before they are scored, by what some of them are like, without labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from layerboard.tasks.metrics.spread import whitening, zscore

Vectors = Mapping[str, NDArray[np.float32]]  # vectors of a layer by name of the source, [images dim] each


@dataclass(frozen=True, slots=True)
class TransformConfig:
    """The numbers of transforms of vectors."""

    shrinkage: float  # share of the mean variance that ``whiten`` gives each direction, above 0 and at most 1


STANDARD = TransformConfig(shrinkage=0.1)  # of all protocols


def transformed(vectors: Vectors, transform: str, fitted_on: Sequence[str]) -> Vectors:
    """The vectors of one layer, by ``whiten`` or ``zscore`` fitted on those of sources of some names.

    Rows of images that could not be read are NaN: nothing is fitted on them, and they stay so. All sources
    are moved and scaled alike, also those that nothing may be fitted on.
    """
    known = [vectors[name] for name in fitted_on]
    spread = whitening(known, STANDARD.shrinkage) if transform == "whiten" else zscore(known)
    return {name: spread.of(each) for name, each in vectors.items()}
