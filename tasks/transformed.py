"""Vectors that are transformed before they are scored."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tasks.base import digest
from tasks.metrics.spread import whitening, zscore

Vectors = Mapping[str, NDArray[np.float32]]  # vectors of a layer by name of the source, [images dim] each


@dataclass(frozen=True, slots=True)
class TransformConfig:
    """The numbers of transforms of vectors."""

    shrinkage: float  # share of the mean variance that ``whiten`` gives each direction, above 0 and at most 1


STANDARD = TransformConfig(shrinkage=0.1)  # of all protocols


@dataclass(frozen=True, slots=True)
class VectorTransform:
    """A transform of the vectors of a task by what those of some of its images are like, without labels."""

    transform: str  # ``whiten`` or ``zscore``
    fitted_on: tuple[str, ...]  # names of sources
    config: TransformConfig = STANDARD

    def fingerprint(self, plain: str) -> str:
        """Digest of the transform, of what it is fitted on and of a task's own."""
        return digest("transformed", 1, self.transform, self.config, [*self.fitted_on], plain)

    def refusal(self, vectors: Vectors) -> str:
        """Why nothing can be fitted on the vectors of a layer; "" if it can."""
        if all(np.isnan(vectors[name]).any(axis=1).all() for name in self.fitted_on):
            return f"no image could be read that {self.transform} could be fitted on"
        return ""

    def applied(self, vectors: Vectors) -> Vectors:
        """The vectors of one layer, transformed."""
        known = [vectors[name] for name in self.fitted_on]
        whiten = self.transform == "whiten"
        spread = whitening(known, self.config.shrinkage) if whiten else zscore(known)
        return {name: spread.of(each) for name, each in vectors.items()}
