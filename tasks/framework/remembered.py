"""Shared part of measurers that compare images with a memory of other images, per layer or set of layers."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

import torch
from torch import Tensor

from layerboard.tasks.framework.checks import LayerFlags
from layerboard.tasks.framework.sets import MIXED, Gathered, members_of, of_one_grid
from layerboard.zoo.spec import Layer

Made = TypeVar("Made")


class ComparingMeasurer(ABC, Generic[Made]):
    """Compares grids of a few images with a memory, for each layer, or for each set of layers, if any.

    For sets, it receives each layer, and images wait until all layers have returned them. Layers with equal
    grids have the same cells in their memory, row by row. ``remembered`` returns the memory of a layer on a
    device; it raises ValueError with the reason if there is none.
    """

    def __init__(self, remembered: Callable[[Layer, torch.device], Made], sets: Sequence[Layer] = ()) -> None:
        self._memory = remembered
        self._sets = sets
        self._gathered = Gathered(members_of(sets))
        self._flags = LayerFlags()
        self._reasons: dict[Layer, str] = {}
        self._compared: set[Layer] = set()

    @abstractmethod
    def compare(
        self,
        sets: Sequence[Layer],
        positions: Sequence[int],
        shown: Mapping[Layer, Tensor],
        memory: Mapping[Layer, Made],
    ) -> None:
        """Compare images at these positions with the memory, for sets or layers with equal grids."""

    def update(self, layer: Layer, positions: Sequence[int], grids: Tensor) -> None:
        self._flags.see(layer, grids)
        done = self._gathered.add(layer, positions, grids)
        if not done:
            return
        shown = {each: torch.stack([images[each] for images in done.values()]) for each in done[min(done)]}
        memory = self._remembered(shown)
        shapes = {each: (stacked.shape[1], stacked.shape[2]) for each, stacked in shown.items()}
        usable = [each for each in self._sets or [layer] if {*each.members} <= {*memory}]
        for sets in of_one_grid(usable, shapes).values():
            self.compare(sets, [*done], shown, memory)
            self._compared.update(sets)

    def flags(self, layer: Layer) -> dict[str, Tensor]:
        """Flags: features of a layer or set vary, and are finite; raises ValueError without a memory."""
        for member in layer.members:
            if member in self._reasons:
                raise ValueError(self._reasons[member])
        if layer not in self._compared:
            raise ValueError(MIXED)
        return self._flags.arrays(layer)

    def _remembered(self, shown: Mapping[Layer, Tensor]) -> dict[Layer, Made]:
        """The memories of the layers that have one."""
        memory = {}
        for layer, grids in shown.items():
            try:
                memory[layer] = self._memory(layer, grids.device)
            except ValueError as error:
                self._reasons[layer] = str(error)
        return memory
