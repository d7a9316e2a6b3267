"""Collectors: what listens to a pass, and the arrays that each leaves behind for a shard."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import torch
from torch import Tensor

from benchmark.features.loading import Batch, Member
from tasks.base import Group, MeasuredProblem, Measurer, Source
from zoo.errors import InputError
from zoo.features import LayerFeatures
from zoo.spec import Layer
from zoo.view.views import Tiles, View

FAILURE = "failure"
"""Array that stands in for a layer's measurements: why it has none, UTF-8."""


class Collector(Protocol):
    """Listens to the layers of a pass, one shard after the other."""

    @property
    def layers(self) -> frozenset[Layer]:
        """Layers that it wants to see."""
        ...

    def see(self, batch: Batch, features: LayerFeatures) -> None:
        """One layer of one batch."""
        ...

    def finish(self, groups: range) -> dict[str, Tensor]:
        """Arrays of the shard that holds those groups; forgets them."""
        ...


class VectorCollector:
    """Keeps the class token and the mean of the patch tokens of every image.

    Arrays are named ``cls.3`` or ``mean.final``, [images dim]; ``shown`` [images] is 0 for images that could
    not be read, whose rows are NaN.
    """

    def __init__(
        self, source: Source, layers: frozenset[Layer], poolings: tuple[str, ...], dtype: torch.dtype
    ) -> None:
        self._source = source
        self._layers = layers
        self._poolings = poolings
        self._dtype = dtype
        self._kept: dict[str, list[Tensor]] = {}
        self._members: list[Member] = []
        self._latest: Batch | None = None

    @property
    def layers(self) -> frozenset[Layer]:
        """Layers that it wants to see."""
        return self._layers

    def see(self, batch: Batch, features: LayerFeatures) -> None:
        """Pool one layer; the small results stay on the device until the shard ends."""
        if batch is not self._latest:  # the first layer of a new batch
            self._latest = batch
            self._members.extend(batch.members)
        if features.cls is not None and "cls" in self._poolings:
            self._keep(f"cls.{features.layer}", features.cls.clone())
        if "mean" in self._poolings or features.cls is None:
            self._keep(f"mean.{features.layer}", features.mean)

    def finish(self, groups: range) -> dict[str, Tensor]:
        """Vectors of the shard's images in the source's order."""
        first = [0]
        for group in groups:
            first.append(first[-1] + len(self._source.groups[group].samples))
        rows = torch.tensor(
            [first[m.group - groups[0]] + m.position for m in self._members], dtype=torch.long
        )
        shown = torch.zeros(first[-1], dtype=torch.uint8)
        shown[rows] = 1
        arrays = {"shown": shown}
        for name, parts in self._kept.items():
            values = torch.cat(parts).to(device="cpu", dtype=self._dtype)
            arrays[name] = torch.full((first[-1], values.shape[1]), float("nan"), dtype=self._dtype)
            arrays[name][rows] = values
        self._kept, self._members, self._latest = {}, [], None
        return arrays

    def _keep(self, name: str, vectors: Tensor) -> None:
        self._kept.setdefault(name, []).append(vectors.float())


class DenseCollector:
    """Feeds a dense problem's measurers, one for each group.

    Arrays are named ``17/3/error``: group, layer, and what the measurer calls it.
    """

    def __init__(self, problem: MeasuredProblem, view: View, layers: frozenset[Layer]) -> None:
        self._problem = problem
        self._view = view
        self._layers = layers
        self._measurers: dict[int, Measurer] = {}
        self._failed: dict[tuple[int, Layer], str] = {}

    @property
    def layers(self) -> frozenset[Layer]:
        """Layers that it wants to see."""
        return self._layers

    def see(self, batch: Batch, features: LayerFeatures) -> None:
        """Hand one layer's grids to the measurers of their groups."""
        layer = features.layer
        for members, grids in self._by_group(batch, features.grid):
            group = members[0].group
            if (group, layer) not in self._failed:
                measurer = self._measurer(group)
                with self._noting(group, layer):
                    measurer.update(layer, [member.position for member in members], grids)

    def finish(self, groups: range) -> dict[str, Tensor]:
        """What the shard's measurers keep."""
        arrays: dict[str, Tensor] = {}
        for group in groups:
            measurer = self._measurer(group)
            for layer in sorted(self._layers):
                kept: dict[str, Tensor] = {}
                if (group, layer) not in self._failed:
                    with self._noting(group, layer):
                        kept = measurer.finish(layer)
                reason = self._failed.pop((group, layer), "")
                if reason:
                    kept = {FAILURE: torch.tensor(list(reason.encode()), dtype=torch.uint8)}
                for name, value in kept.items():
                    arrays[f"{group}/{layer}/{name}"] = value.cpu().contiguous()
        self._measurers = {}
        return arrays

    @contextmanager
    def _noting(self, group: int, layer: Layer) -> Iterator[None]:
        """Features that cannot be measured (not finite, say) empty one layer; bad input stops the task."""
        try:
            yield
        except InputError:
            raise
        except ValueError as error:
            self._failed.setdefault((group, layer), str(error))

    def _measurer(self, group: int) -> Measurer:
        if group not in self._measurers:
            entry: Group = self._problem.source.groups[group]
            self._measurers[group] = self._problem.measure(entry, self._view)
        return self._measurers[group]

    def _by_group(self, batch: Batch, grids: Tensor) -> Iterator[tuple[tuple[Member, ...], Tensor]]:
        """Consecutive images of one group with their grids; an image of tiles comes alone, assembled."""
        start = 0
        while start < len(batch.members):
            member = batch.members[start]
            if isinstance(self._view, Tiles):
                tiles = sum(m.tiles for m in batch.members[:start])
                yield (member,), self._view.assemble(grids[tiles : tiles + member.tiles], member.size)[None]
                start += 1
                continue
            stop = start
            while stop < len(batch.members) and batch.members[stop].group == member.group:
                stop += 1
            yield batch.members[start:stop], grids[start:stop]
            start = stop
