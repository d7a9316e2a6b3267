"""A task on vectors whose vectors are transformed before they are scored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tasks.base import Device, Outcome, Source, VectorProblem, digest
from tasks.fused import Vectors, score_sets
from tasks.metrics.spread import Spread, whitening, zscore
from tasks.transforms import Transform
from zoo.spec import Layer


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

    def score(self, vectors: Vectors, device: Device = None) -> Outcome:
        """The task's scores of the transformed vectors of one layer and pooling."""
        if reason := self._unfit(vectors):
            return Outcome((), empty=reason)
        return self.plain.score(self._changed(vectors), device)

    def score_sets(
        self, layers: Mapping[Layer, Vectors], sets: Sequence[Layer], device: Device = None
    ) -> list[Outcome]:
        """The task's scores of sets of layers, each of which is transformed by what it is like alone."""
        if reason := self._unfit(next(iter(layers.values()))):
            return [Outcome((), empty=reason) for _ in sets]
        changed = {layer: self._changed(vectors) for layer, vectors in layers.items()}
        return score_sets(self.plain, changed, sets, device)

    def _known(self, vectors: Vectors) -> list[NDArray[np.float32]]:
        return [vectors[source.name] for source in self.fitted_on]

    def _unfit(self, vectors: Vectors) -> str:
        """Why nothing can be fitted; "" if it can."""
        if all(np.isnan(one).any(axis=1).all() for one in self._known(vectors)):
            return f"no image could be read that {self.transform} could be fitted on"
        return ""

    def _changed(self, vectors: Vectors) -> Vectors:
        """The vectors of one layer, transformed."""
        spread = self._fitted(self._known(vectors))
        return {name: spread.of(one) for name, one in vectors.items()}

    def _fitted(self, known: list[NDArray[np.float32]]) -> Spread:
        return zscore(known) if self.transform.name == "zscore" else whitening(known, self.rule.shrinkage)
