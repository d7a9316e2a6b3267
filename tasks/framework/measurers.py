"""Measurers: what a task keeps of the features of a group of images while they are in memory."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Generic, TypeVar

import torch
from torch import Tensor
from torch.nn import functional

from layerboard.tasks.framework.base import FINITE
from layerboard.tasks.framework.checks import LayerFlags
from layerboard.zoo.spec import Layer

Portion = TypeVar("Portion")
Made = TypeVar("Made")
Grid = tuple[int, int]  # height and width in cells
Grids = Mapping[Layer, Tensor]  # of each member of some layers, [images height width dim]
Join = Callable[[Tensor, Tensor], Tensor]  # joins the arrays of earlier batches with those of the next one


class Measurer(ABC, Generic[Portion]):
    """Measures one group while its features are in memory; layers come one after the other.

    Arrays kept of a layer are concatenated at the end of the group, unless ``joins`` has another way.
    """

    def __init__(self, joins: Mapping[str, Join] | None = None) -> None:
        self._joins = joins or {}
        self._kept: dict[Layer, dict[str, list[Tensor]]] = {}

    @abstractmethod
    def update(self, layer: Layer, positions: Sequence[int], portion: Portion, /) -> None:
        """Take the features of a layer for the group's images at these positions, in order.

        ``portion`` comes from the task's feed (`tasks.feeds`). Unless that says otherwise, its tensors may be
        views of live activations: copy what outlives the call.
        """

    def keep(self, layer: Layer, arrays: Mapping[str, Tensor]) -> None:
        """Keep arrays of some images, with images or batches along the first axis."""
        parts = self._kept.setdefault(layer, {})
        for name, array in arrays.items():
            if name in parts and name in self._joins:
                parts[name] = [self._joins[name](parts[name][0], array)]
            else:
                parts.setdefault(name, []).append(array)

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        """Arrays kept of the group for one layer; called once, after all images of the group.

        Neither this nor `update` may read a value of a tensor on the device, since the host would wait for
        the device each time. Whether the layer can be measured is returned as `FINITE`.
        """
        every = self._kept.pop(layer, {})
        return {name: parts[0] if len(parts) == 1 else torch.cat(parts) for name, parts in every.items()}

    def settle(
        self, finished: Mapping[Layer, Mapping[str, Tensor]], /
    ) -> Mapping[Layer, Mapping[str, Tensor]]:
        """Arrays to keep instead of those of `finish` (without `FINITE`), for the measurable layers.

        Work on the host: it is called once per group, after all layers are finished and their arrays are
        copied to the host.
        """
        return finished


class TokenMeasurer(Measurer[Tensor]):
    """A measurer that compares tokens by their cosines, and takes layers with equal grids together.

    The cosine of a layer of several `members` is the mean of theirs, so a member's products serve every layer
    that has it.
    """

    def update(self, layer: Layer, positions: Sequence[int], grids: Tensor, /) -> None:
        """Take the features of one layer alone, as `Measurer.update` says."""
        self.compare((layer,), positions, {layer: grids})

    @abstractmethod
    def compare(self, layers: Sequence[Layer], positions: Sequence[int], grids: Grids) -> None:
        """Take the grids of all members of some layers, always the same ones."""


class BatchMeasurer(Measurer[Portion]):
    """Reduces each batch of a group to small tensors; ``reduce`` takes what `update` does.

    The positions of the images in their group are kept, too.
    """

    def __init__(
        self,
        reduce: Callable[[Layer, Sequence[int], Portion], Mapping[str, Tensor]],
        joins: Mapping[str, Join] | None = None,
    ) -> None:
        super().__init__(joins)
        self._reduce = reduce

    def update(self, layer: Layer, positions: Sequence[int], portion: Portion, /) -> None:
        reduced = self._reduce(layer, positions, portion)
        self.keep(layer, {"position": torch.tensor(positions), **reduced})


class MemoryMeasurer(Measurer[Tensor]):
    """Keeps cells of a few images, chosen by the image and the grid alone, not by the layer.

    ``choose`` returns indices and labels of the cells for the position of an image in its group and a grid
    size. ``describe`` returns the arrays to keep from a position, the image's grid [height width dim], and
    these indices and labels.
    """

    def __init__(
        self,
        choose: Callable[[int, Grid], tuple[Tensor, Tensor]],
        describe: Callable[[int, Tensor, Tensor, Tensor], dict[str, Tensor]],
    ) -> None:
        super().__init__()
        self._choose = cache(choose)
        self._describe = describe

    def update(self, layer: Layer, positions: Sequence[int], grids: Tensor, /) -> None:
        size = (grids.shape[1], grids.shape[2])
        for position, grid in zip(positions, grids, strict=True):
            cells, labels = self._choose(position, size)
            # a file of tensors shares no memory among them
            self.keep(layer, self._describe(position, grid, cells, labels.clone()))


def unit_rows(grid: Tensor, cells: Tensor) -> dict[str, Tensor]:
    """Unit vectors of some cells of a grid [height width dim], ``rows`` [cells dim] float16, and `FINITE`."""
    some = grid.flatten(0, 1)[cells.to(grid.device, non_blocking=True)]
    rows = functional.normalize(some.float(), dim=-1).half()
    return {"rows": rows, FINITE: rows.isfinite().all()[None]}


class ComparingMeasurer(TokenMeasurer, Generic[Made]):
    """Compares grids of a few images with a memory, for each layer.

    Layers with equal grids have the same cells in their memory, row by row. ``remembered`` returns the memory
    of a layer on a device; it raises ValueError with the reason if there is none.
    """

    def __init__(self, remembered: Callable[[Layer, torch.device], Made]) -> None:
        super().__init__()
        self._memory = remembered
        self._flags = LayerFlags()
        self._reasons: dict[Layer, str] = {}  # why members have no memory

    @abstractmethod
    def search(
        self, layers: Sequence[Layer], positions: Sequence[int], grids: Grids, memory: Mapping[Layer, Made]
    ) -> None:
        """Search the memory for images at these positions; every layer's members have grids and a memory."""

    def compare(self, layers: Sequence[Layer], positions: Sequence[int], grids: Grids) -> None:
        memory: dict[Layer, Made] = {}
        for member, tokens in grids.items():
            self._flags.see(member, tokens)
            try:
                memory[member] = self._memory(member, tokens.device)
            except ValueError as error:
                self._reasons[member] = str(error)
        usable = [layer for layer in layers if {*layer.members} <= {*memory}]
        if usable:
            self.search(usable, positions, {member: grids[member] for member in memory}, memory)

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        """Arrays kept of a layer, and its flags; raises ValueError if a member has no memory."""
        for member in layer.members:
            if member in self._reasons:
                raise ValueError(self._reasons[member])
        return super().finish(layer) | self._flags.arrays(layer)
