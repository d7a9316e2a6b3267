"""A pass that keeps nothing: collectors that are timed, and shards that stay in memory."""

from collections.abc import Mapping
from pathlib import Path
from time import perf_counter

import torch
from torch import Tensor

from benchmark.extraction.collectors import Collector
from benchmark.extraction.loading import Batch
from benchmark.extraction.shards import Shards
from zoo.features import Backbone, Shown
from zoo.spec import Layer


class Clocked:
    """A collector, and how long it takes.

    Args:
        collector: The collector.
        device: Where it works.
        growth: By what the time that it takes to see layers grows in the run, where it compares them with a
            part of what it will have.
    """

    def __init__(self, collector: Collector, device: torch.device, growth: float = 1.0) -> None:
        self._collector, self._device, self._growth = collector, device, growth
        self._seeing = self._finishing = 0.0

    @property
    def seconds(self) -> float:
        """Seconds that it took."""
        return self._seeing + self._finishing

    @property
    def expected(self) -> float:
        """Seconds that it would take in the run for as many images."""
        return self._growth * self._seeing + self._finishing

    @property
    def layers(self) -> frozenset[Layer]:
        """Layers that it wants to see."""
        return self._collector.layers

    def prepare(self, backbone: Backbone, pixels: Tensor) -> None:
        """Before a batch is shown."""
        begin = self._now()
        self._collector.prepare(backbone, pixels)
        self._finishing += self._now() - begin

    def see(self, batch: Batch, shown: Shown) -> None:
        """One layer of one batch."""
        begin = self._now()
        self._collector.see(batch, shown)
        self._seeing += self._now() - begin

    def again(self) -> frozenset[Layer]:
        """Layers that it was shown and has not used yet."""
        return self._collector.again()

    def finish(self, groups: range) -> dict[str, Tensor]:
        """Arrays of the shard."""
        begin = self._now()
        arrays = self._collector.finish(groups)
        self._finishing += self._now() - begin
        return arrays

    def _now(self) -> float:
        if self._device.type == "cuda":  # only here: a run never waits for a layer
            torch.cuda.synchronize(self._device)
        return perf_counter()


class Nowhere(Shards):
    """A shard that is kept in memory."""

    def __init__(self) -> None:
        super().__init__(Path(), 1, {})
        self.kept: Mapping[str, Tensor] = {}

    @property
    def size(self) -> int:
        """Bytes of it."""
        return sum(array.nbytes for array in self.kept.values())

    def write(self, index: int, arrays: Mapping[str, Tensor]) -> None:
        """Keep it."""
        del index
        self.kept = dict(arrays)
