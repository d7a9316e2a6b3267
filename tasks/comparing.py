"""What compares backbones two by two, from what the passes of each have stored."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from layerboard.tasks.base import Source
from layerboard.tasks.metrics.arrays import Floats
from layerboard.tasks.stored import StoredBackbone
from layerboard.tasks.task import Task
from layerboard.zoo.spec import BackboneSpec, Layer


@dataclass(frozen=True, slots=True)
class PairFindings:
    """What a comparison says of two backbones, which may be one and the same."""

    first: int  # which of the backbones that are compared the rows are of
    second: int  # which of them the columns are of
    metric: str
    layers: tuple[Layer, ...]  # of the rows
    others: tuple[Layer, ...]  # of the columns; `zoo.spec.WHOLE_BACKBONE` for a number of no single one
    value: Floats  # [layers others]; NaN where there is none
    error: Floats  # standard errors, the same shape; NaN where there is none
    reason: str  # why there is no number where there is none
    arrays: Mapping[str, NDArray[np.generic]] = field(default_factory=dict)  # kept beside the records


@dataclass(frozen=True, eq=False)
class ComparisonTask(Task):
    """A task that compares the layers of backbones two by two, by stored vectors and by what was measured."""

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
        """What of the features is compared, each by itself."""

    def compares(self, first: BackboneSpec, second: BackboneSpec) -> bool:
        """Whether it has something to say of two backbones, in whichever order."""
        return True

    @abstractmethod
    def compare(self, backbones: Sequence[StoredBackbone], pooling: str) -> Iterator[PairFindings]:
        """What it says of all pairs of backbones, sorted by name, that it compares, in one of its poolings.

        Nothing is said of a backbone without that pooling.
        """
