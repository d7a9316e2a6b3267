"""What measurers share that compare images with what layers, or sets of them, remember of others."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

import torch
from torch import Tensor

from layerboard.tasks.checks import LayerFlags
from layerboard.tasks.sets import MIXED, Gathered, members_of, of_one_grid
from layerboard.zoo.spec import Layer

Made = TypeVar("Made")


class ComparingMeasurer(ABC, Generic[Made]):
    """Compares grids of a few images with a memory by each layer, or, if there are any, by sets of layers.

    Of sets it is fed each layer: images wait then until all layers have shown them. Layers of one grid
    remember the same cells, row by row. ``remembered`` gives what a layer remembers, on a device; it raises
    ValueError with the reason where that is nothing.
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
        """Compare images at some positions by sets of layers, or by layers, whose grids are of one size."""

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
        """Whether what a layer or set showed varies and is finite; raises ValueError where it was no use."""
        for member in layer.members:
            if member in self._reasons:
                raise ValueError(self._reasons[member])
        if layer not in self._compared:
            raise ValueError(MIXED)
        return self._flags.arrays(layer)

    def _remembered(self, shown: Mapping[Layer, Tensor]) -> dict[Layer, Made]:
        """What the layers remember, of those that remember something."""
        memory = {}
        for layer, grids in shown.items():
            try:
                memory[layer] = self._memory(layer, grids.device)
            except ValueError as error:
                self._reasons[layer] = str(error)
        return memory
