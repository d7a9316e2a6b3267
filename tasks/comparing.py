"""What compares backbones two by two, from what the passes of each have stored."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from tasks.base import Source
from tasks.stored import StoredBackbone
from tasks.task import FedTask
from zoo.spec import BackboneSpec, Layer

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PairFindings:
    """What a comparison says of two backbones, which may be one and the same."""

    first: int  # which of the backbones that are compared the rows are of
    second: int  # which of them the columns are of
    metric: str  # name of the number
    layers: tuple[Layer, ...]  # layers of the rows
    # layers of the columns; `zoo.spec.WHOLE_BACKBONE` where a number is of no single one
    others: tuple[Layer, ...]
    value: Floats  # [layers others]; NaN where there is none
    error: Floats  # standard errors, the same shape; NaN where there is none
    reason: str  # why there is no number where there is none
    # arrays that are kept beside the records, by name
    arrays: Mapping[str, NDArray[np.generic]] = field(default_factory=dict)

    @classmethod
    def none(
        cls,
        first: int,
        second: int,
        metric: str,
        layers: tuple[tuple[Layer, ...], tuple[Layer, ...]],
        reason: str,
    ) -> "PairFindings":
        """No number of those layers, rows and columns, for that reason."""
        empty = np.full((len(layers[0]), len(layers[1])), np.nan)
        return cls(first, second, metric, *layers, empty, empty, reason)


@dataclass(frozen=True, eq=False)
class ComparisonTask(FedTask):
    """A task that compares the layers of backbones two by two, by stored vectors and by what was measured."""

    needs = "pairs"

    @property
    def vector_sources(self) -> tuple[Source, ...]:
        """The source whose stored vectors it takes, too."""
        return (self.source,)

    @property
    @abstractmethod
    def poolings(self) -> tuple[str, ...]:
        """What of the features is compared, each by itself."""

    @abstractmethod
    def compares(self, first: BackboneSpec, second: BackboneSpec) -> bool:
        """Whether it has something to say of two backbones, in whichever order."""

    @abstractmethod
    def compare(
        self, backbones: Sequence[StoredBackbone], pooling: str, device: torch.device
    ) -> Iterator[PairFindings]:
        """What it says of all pairs of those backbones that it compares, in one pooling.

        Args:
            backbones: In the order of their names.
            pooling: One of `poolings`; of a backbone without it nothing is said.
            device: Where large products may run.
        """
