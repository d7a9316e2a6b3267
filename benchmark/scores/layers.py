"""What the passes stored of one backbone, as tasks are given it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch

from benchmark.extraction.reader import MeasuredLayers, VectorReader
from benchmark.extraction.shards import Shards
from benchmark.plan.plan import patch_tokens
from tasks.base import Device, Measurements, Source
from tasks.task import StoredVectors
from zoo.spec import BackboneSpec, Layer
from zoo.view.views import View


@dataclass(frozen=True)
class StoredLayers:
    """What the passes of one backbone stored for a task: a `tasks.task.StoredBackbone`.

    Attributes:
        spec: The backbone.
        layers: Layers that are scored, in the order of a forward.
        last: The last block; None where its vectors are not stored.
        vectors: Vectors by the name of their source.
        fed: The source of the groups that the task was fed, and the folder of what they left behind; None
            where nothing is.
        fed_layers: Layers, or sets of them, that they were measured by.
        refusal: Why the backbone cannot show what the task is fed; "" if it can.
        workers: Threads that may be used.
        on: Where large products run.
    """

    spec: BackboneSpec
    layers: tuple[Layer, ...]
    last: Layer | None
    vectors: Mapping[str, StoredVectors]
    fed: tuple[Source, Path] | None
    fed_layers: tuple[Layer, ...]
    refusal: str
    workers: int
    on: torch.device

    @cached_property
    def _measured(self) -> MeasuredLayers:
        assert self.fed is not None
        source, folder = self.fed
        return MeasuredLayers(source, Shards.open(folder, source.shards), self.fed_layers)

    @property
    def measured(self) -> Mapping[Layer, Sequence[Measurements]]:
        """For each layer that could be measured, what every group left behind, in the source's order."""
        return self._measured

    @property
    def failures(self) -> Mapping[Layer, str]:
        """Why other layers could not be measured."""
        return self._measured.failures

    @property
    def bytes(self) -> int:
        """Size of what one layer left behind."""
        return self._measured.bytes

    @property
    def device(self) -> Device:
        """Where large products may run; None for the CPU."""
        return None if self.on.type == "cpu" else self.on

    def patch_tokens(self, view: View, layer: Layer) -> int:
        """How many patch tokens a layer has in a view that shows all images at one size."""
        return patch_tokens(self.spec, view, layer)


def unreadable_images(sources: Sequence[Source], readers: Mapping[str, VectorReader]) -> int:
    """How many different images of sources could not be read, by readers of their vectors."""
    keys: set[str] = set()
    for source in sources:
        shown = readers[source.name].shown
        if not shown.all():
            keys |= {sample.key for sample, read in zip(source.samples, shown, strict=True) if not read}
    return len(keys)
