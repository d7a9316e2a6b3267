"""What the passes of one backbone stored for a task, and what a loaded one answers."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from layerboard.tasks.base import Device, Measurements, Source
from layerboard.zoo.features import Weights
from layerboard.zoo.spec import BackboneSpec, Layer
from layerboard.zoo.view.views import View


class StoredVectors(Protocol):
    """What is stored of a backbone's vectors of one source."""

    @property
    def shown(self) -> NDArray[np.bool_]:
        """Whether each image of the source could be read, [images]; the same for all backbones."""

    def poolings(self) -> tuple[str, ...]:
        """Poolings that are stored."""

    def read(self, layer: Layer, pooling: str) -> NDArray[np.float32]:
        """Vectors of a layer, [images dim] in the source's order; NaN where an image could not be read."""

    def bytes(self, layer: Layer, pooling: str) -> int:
        """Size of what `read` gives."""


class LayerMeasurements(Mapping[Layer, Sequence[Measurements]]):
    """For each layer that could be measured, what every group left behind, in the source's order.

    It is read from disk whenever it is asked for: ask once, and keep what is needed.
    """

    @property
    @abstractmethod
    def bytes(self) -> int:
        """Size of what one layer left behind."""

    @abstractmethod
    def of_group(self, group: int) -> Mapping[Layer, Measurements]:
        """What a group left behind for each layer; nothing of layers that could not be measured."""


@dataclass(frozen=True)
class StoredBackbone:
    """What the passes of one backbone stored for a task."""

    spec: BackboneSpec
    layers: tuple[Layer, ...]  # that are scored, in the order of a forward
    last: Layer | None  # the last block; None where its vectors are not stored
    vectors: Mapping[str, StoredVectors]  # by the name of their source
    measured: LayerMeasurements | None = None  # None where nothing is fed, or nothing could be
    # layers, or sets of them, that the task's groups could not be measured by, and why
    unmeasured: Mapping[Layer, str] = field(default_factory=dict)
    refusal: str = ""  # why the backbone cannot show what the task is fed; "" if it can
    workers: int = 1  # threads that may be used
    device: Device = None
    # how many patch tokens a layer has in a view that shows all images at one size
    patch_tokens: Callable[[View, Layer], int] = lambda view, layer: 0

    @property
    def of_source(self) -> StoredVectors:
        """Vectors of the one source of a task that takes no other."""
        (vectors,) = self.vectors.values()
        return vectors

    def left_behind(self, group: int) -> Mapping[Layer, Measurements]:
        """What a group left behind for each layer; nothing of layers that could not be measured."""
        return {} if self.measured is None else self.measured.of_group(group)


@dataclass(frozen=True, slots=True)
class Fields:
    """Which pixels move the centre cell, ``(rows // 2, columns // 2)``, of each layer of a backbone."""

    strength: Mapping[Layer, NDArray[np.float64]]  # how strongly each does, summed, [height width]
    cells: Mapping[Layer, tuple[int, int]]  # rows and columns of the layer's grid
    coarsest: tuple[int, int]  # rows and columns of the backbone's coarsest grid
    images: int  # that are in the sums
    refused: Mapping[Layer, str]  # why the backbone cannot say it of other layers


class AskedBackbone(Protocol):
    """A loaded backbone that is asked something beside the passes."""

    @property
    def spec(self) -> BackboneSpec:
        """The backbone's entry."""

    def fields(
        self,
        task: str,
        source: Source,
        layers: Callable[[Sequence[Layer]], Sequence[Layer]],
        channels: Callable[[int], Sequence[int]],
    ) -> Fields:
        """Which pixels of a source's images move the centre cell of layers.

        A task of that name asks for ``layers`` where others are scored, of which a backbone may lack some,
        and of each for ``channels`` of as many as it has.
        """

    def weights(self) -> Weights:
        """The first weights."""

    def costs(self, config: Any) -> Any:  # noqa: ANN401 - those of `tasks.analyses.cost`
        """Time, memory and size of a backbone that is alone on the device."""
