"""Tasks that compare pairs of backbones, from the stored results of their passes."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from layerboard.tasks.framework.base import Source
from layerboard.tasks.framework.stored import StoredBackbone
from layerboard.tasks.framework.task import Task
from layerboard.tasks.metrics.arrays import Floats
from layerboard.zoo.spec import BackboneSpec, Layer


@dataclass(frozen=True, slots=True)
class PairFindings:
    """Result of a comparison of two backbones, which may be the same."""

    first: int  # index of the backbone of the rows
    second: int  # index of the backbone of the columns
    metric: str
    layers: tuple[Layer, ...]  # of the rows
    others: tuple[Layer, ...]  # of the columns; `zoo.spec.WHOLE_BACKBONE` for values of no single layer
    value: Floats  # [layers others]; NaN if undefined
    error: Floats  # standard errors, the same shape; NaN if undefined
    reason: str  # why there is no number where there is none
    arrays: Mapping[str, NDArray[np.generic]] = field(default_factory=dict)  # stored next to the records


@dataclass(frozen=True, eq=False)
class ComparisonTask(Task):
    """A task that compares the layers of pairs of backbones, from stored vectors and measurements."""

    needs = "pairs"

    @property
    def source(self) -> Source:
        return self.data.probe  # type: ignore[no-any-return]

    @property
    def vector_sources(self) -> tuple[Source, ...]:
        return (self.source,)

    @property
    @abstractmethod
    def poolings(self) -> tuple[str, ...]:
        """Poolings of the features, each compared separately."""

    def compares(self, first: BackboneSpec, second: BackboneSpec) -> bool:
        """Whether the task compares these two backbones; the order does not matter."""
        return True

    @abstractmethod
    def compare(self, backbones: Sequence[StoredBackbone], pooling: str) -> Iterator[PairFindings]:
        """Results for all pairs of backbones (sorted by name) that it compares, in one pooling.

        Backbones without that pooling are left out.
        """
