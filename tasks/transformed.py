"""A task on vectors whose vectors are transformed before they are scored."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tasks.base import Device, Outcome, Source, VectorProblem, digest
from tasks.metrics.spread import Spread, whitening, zscore
from tasks.transforms import Transform

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class TransformRule:
    """The numbers of transforms of vectors.

    Attributes:
        shrinkage: Share of the mean variance that ``whiten`` gives each direction, above 0 and at most 1.
    """

    shrinkage: float


@runtime_checkable
class Fitting(Protocol):
    """What a task on vectors offers whose vectors may be transformed."""

    @property
    def fitted_on(self) -> tuple[Source, ...]:
        """Sources that a transform is fitted on: images that the task knows before it is asked anything."""
        ...


@dataclass(frozen=True)
class TransformedProblem:
    """A task whose vectors are transformed by what the vectors of `Fitting.fitted_on` are like.

    Attributes:
        plain: The task as it is.
        fitted_on: The sources that the transform is fitted on, without labels.
        transform: ``whiten`` or ``zscore``.
        rule: Its numbers.
    """

    plain: VectorProblem
    fitted_on: tuple[Source, ...]
    transform: Transform
    rule: TransformRule

    @property
    def sources(self) -> tuple[Source, ...]:
        """The sources of the task."""
        return self.plain.sources

    @cached_property
    def fingerprint(self) -> str:
        """Digest of the task's, of the transform and of what it is fitted on."""
        names = [source.name for source in self.fitted_on]
        return digest("transformed", 1, str(self.transform), self.rule, names, self.plain.fingerprint)

    def score(self, vectors: Mapping[str, Vectors], device: Device = None) -> Outcome:
        """The task's scores of the transformed vectors of one layer and pooling."""
        known = [vectors[source.name] for source in self.fitted_on]
        if all(np.isnan(one).any(axis=1).all() for one in known):
            return Outcome((), empty=f"no image could be read that {self.transform} could be fitted on")
        spread = self._fitted(known)
        return self.plain.score({name: spread.of(one) for name, one in vectors.items()}, device)

    def _fitted(self, known: list[Vectors]) -> Spread:
        return zscore(known) if self.transform.name == "zscore" else whitening(known, self.rule.shrinkage)
