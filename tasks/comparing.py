"""What compares backbones two by two, from what the passes of each have stored."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from tasks.base import Measurements, Source
from tasks.task import FedTask
from zoo.spec import BackboneSpec, Layer

Floats = NDArray[np.float64]


class ComparedBackbone(Protocol):
    """What is stored of a backbone for a task that compares several."""

    @property
    def spec(self) -> BackboneSpec:
        """Its entry."""
        ...

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Its layers that are scored, in the order of a forward."""
        ...

    @property
    def refusal(self) -> str:
        """Why it could not show what the task is fed; "" if it could, and only then it was measured."""
        ...

    @property
    def shown(self) -> NDArray[np.bool_]:
        """Whether each image of the source could be read, [images]; the same for all backbones."""
        ...

    def poolings(self) -> tuple[str, ...]:
        """Poolings of its vectors."""
        ...

    def read(self, layer: Layer, pooling: str) -> NDArray[np.float32]:
        """Its vectors, [images dim] in the source's order; NaN where an image could not be read."""
        ...

    def measured(self, group: int) -> Mapping[Layer, Measurements]:
        """What a group left behind for each layer; nothing of layers that could not be measured."""
        ...


@dataclass(frozen=True, slots=True)
class PairFindings:
    """What a comparison says of two backbones, which may be one and the same.

    Attributes:
        first: Which of the backbones that are compared the rows are of.
        second: Which of them the columns are of.
        metric: Name of the number.
        layers: Layers of the rows.
        others: Layers of the columns; `zoo.spec.WHOLE_BACKBONE` where a number is of no single one.
        value: [layers others]; NaN where there is none.
        error: Standard errors, the same shape; NaN where there is none.
        reason: Why there is no number where there is none.
        arrays: Arrays that are kept beside the records, by name.
    """

    first: int
    second: int
    metric: str
    layers: tuple[Layer, ...]
    others: tuple[Layer, ...]
    value: Floats
    error: Floats
    reason: str
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
        self, backbones: Sequence[ComparedBackbone], pooling: str, device: torch.device
    ) -> Iterator[PairFindings]:
        """What it says of all pairs of those backbones that it compares, in one pooling.

        Args:
            backbones: In the order of their names.
            pooling: One of `poolings`; of a backbone without it nothing is said.
            device: Where large products may run.
        """
