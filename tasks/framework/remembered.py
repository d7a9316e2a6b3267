"""Shared part of measurers that compare images with a memory of other images, for each layer."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

import torch
from torch import Tensor

from layerboard.tasks.framework.base import TokenMeasurer
from layerboard.tasks.framework.checks import LayerFlags
from layerboard.zoo.spec import Layer

Made = TypeVar("Made")


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
