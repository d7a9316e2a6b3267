"""Stored results of a backbone's passes for a task, and the interface of a loaded backbone."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from layerboard.tasks.framework.base import Device, Measurements, Source
from layerboard.zoo.features import Weights
from layerboard.zoo.spec import BackboneSpec, Layer
from layerboard.zoo.view.views import View


class StoredVectors(Protocol):
    """Stored vectors of a backbone for one source."""

    @property
    def shown(self) -> NDArray[np.bool_]:
        """Whether each image of the source could be read, [images]; the same for all backbones."""

    def poolings(self) -> tuple[str, ...]:
        """Poolings that are stored."""

    def read(self, layer: Layer, pooling: str) -> NDArray[np.float32]:
        """Vectors of a layer, [images dim] in the source's order; NaN where an image could not be read."""

    def bytes(self, layer: Layer, pooling: str) -> int:
        """Size of the result of `read`."""


class LayerMeasurements(Mapping[Layer, Sequence[Measurements]]):
    """For each measurable layer, the measurements of every group, in source order.

    They are read from disk at every access: read once, and keep what is needed.
    """

    @property
    @abstractmethod
    def bytes(self) -> int:
        """Size of one layer's measurements."""

    @abstractmethod
    def of_group(self, group: int) -> Mapping[Layer, Measurements]:
        """Measurements of a group for each layer; layers that could not be measured are left out."""


@dataclass(frozen=True)
class StoredBackbone:
    """Stored results of one backbone's passes for a task."""

    spec: BackboneSpec
    layers: tuple[Layer, ...]  # layers to score, in the order of a forward pass
    last: Layer | None  # the last block; None if its vectors are not stored
    vectors: Mapping[str, StoredVectors]  # by source name
    measured: LayerMeasurements | None = None  # None if the task measures nothing or could not measure
    # layers, or sets of them, that could not be measured, with reasons
    unmeasured: Mapping[Layer, str] = field(default_factory=dict)
    refusal: str = ""  # reason why the backbone cannot provide the task's feed; "" if it can
    workers: int = 1  # threads that may be used
    device: Device = None
    # number of patch tokens of a layer, in a view that gives all images one size
    patch_tokens: Callable[[View, Layer], int] = lambda view, layer: 0

    @property
    def of_source(self) -> StoredVectors:
        """Vectors of the source, for a task with a single source."""
        (vectors,) = self.vectors.values()
        return vectors

    def left_behind(self, group: int) -> Mapping[Layer, Measurements]:
        """Measurements of a group for each layer; layers that could not be measured are left out."""
        return {} if self.measured is None else self.measured.of_group(group)


@dataclass(frozen=True, slots=True)
class Fields:
    """Influence of each pixel on the centre cell, ``(rows // 2, columns // 2)``, of a backbone's layers."""

    strength: Mapping[Layer, NDArray[np.float64]]  # magnitude per pixel, summed over images, [height width]
    cells: Mapping[Layer, tuple[int, int]]  # rows and columns of the layer's grid
    coarsest: tuple[int, int]  # rows and columns of the backbone's coarsest grid
    images: int  # number of images in the sums
    refused: Mapping[Layer, str]  # reasons why other layers have no field


class MeasurableBackbone(Protocol):
    """A loaded backbone with measurements apart from the passes."""

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
        """Influence of the pixels of a source's images on the centre cell of layers.

        ``layers`` maps the scored layers to those that the task (``task`` is its name) needs, of which a
        backbone may lack some. ``channels`` maps a layer's number of channels to those that are used.
        """

    def weights(self) -> Weights:
        """The first weights."""

    def costs(self, config: Any) -> Any:  # noqa: ANN401 - those of `tasks.analyses.cost`
        """Time, memory and size of a backbone that is alone on the device."""
