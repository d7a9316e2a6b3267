"""Shared parts of measurers that remember cells of images, and that compare other images with this memory."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Generic, TypeVar

import torch
from torch import Tensor
from torch.nn import functional

from layerboard.tasks.framework.base import FINITE, TokenMeasurer
from layerboard.tasks.framework.checks import LayerFlags
from layerboard.zoo.spec import Layer

Made = TypeVar("Made")
Grid = tuple[int, int]  # height and width in cells


class MemoryMeasurer:
    """Keeps cells of a few images, chosen by the image and the grid alone, not by the layer.

    ``choose`` returns indices and labels of the cells for the position of an image in its group and a grid
    size. ``keep`` returns arrays, to be concatenated over images, from a position, the image's grid [height
    width dim], and these indices and labels.
    """

    def __init__(
        self,
        choose: Callable[[int, Grid], tuple[Tensor, Tensor]],
        keep: Callable[[int, Tensor, Tensor, Tensor], dict[str, Tensor]],
    ) -> None:
        self._choose = cache(choose)
        self._keep = keep
        self._kept: dict[Layer, list[dict[str, Tensor]]] = {}

    def update(self, layer: Layer, positions: Sequence[int], grids: Tensor) -> None:
        size = (grids.shape[1], grids.shape[2])
        for position, grid in zip(positions, grids, strict=True):
            kept = self._keep(position, grid, *self._choose(position, size))
            self._kept.setdefault(layer, []).append(kept)

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        every = self._kept.pop(layer)
        return {name: torch.cat([part[name] for part in every]) for name in every[0]}


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
        self._memory = remembered
        self._flags = LayerFlags()
        self._reasons: dict[Layer, str] = {}  # why members have no memory

    @abstractmethod
    def search(
        self,
        layers: Sequence[Layer],
        positions: Sequence[int],
        grids: Mapping[Layer, Tensor],
        memory: Mapping[Layer, Made],
    ) -> None:
        """Search the memory for images at these positions; every layer's members have grids and a memory."""

    def compare(
        self, layers: Sequence[Layer], positions: Sequence[int], grids: Mapping[Layer, Tensor]
    ) -> None:
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

    def flags(self, layer: Layer) -> dict[str, Tensor]:
        """Flags: features of a layer vary, and are finite; raises ValueError without a memory."""
        for member in layer.members:
            if member in self._reasons:
                raise ValueError(self._reasons[member])
        return self._flags.arrays(layer)
