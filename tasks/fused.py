"""What layers show that are taken together (`tasks.sets`): grids of one size, gathered as they come."""

from collections.abc import Collection, Mapping, Sequence

from torch import Tensor

from zoo.spec import Layer

MIXED = "its layers have grids of different sizes"
"""Why a set of layers has no cosine of tokens."""


class Gathered:
    """What several layers show of images, until all of them have shown an image.

    Args:
        layers: The layers.
    """

    def __init__(self, layers: Collection[Layer]) -> None:
        self._count = len({*layers})
        self._waiting: dict[int, dict[Layer, Tensor]] = {}

    def add(self, layer: Layer, positions: Sequence[int], grids: Tensor) -> dict[int, dict[Layer, Tensor]]:
        """Copy what a layer shows; gives the images of which it was the last, by position, in order."""
        done = {}
        for position, grid in zip(positions, grids, strict=True):
            shown = self._waiting.setdefault(position, {})
            shown[layer] = grid.clone()
            if len(shown) == self._count:
                done[position] = self._waiting.pop(position)
        return done


def of_one_grid(
    sets: Sequence[Layer], shapes: Mapping[Layer, tuple[int, int]]
) -> dict[tuple[int, int], list[Layer]]:
    """Sets whose layers all have grids of one height and width, by that size; the others are left out."""
    found: dict[tuple[int, int], list[Layer]] = {}
    for each in sets:
        sizes = {shapes[one] for one in each.members}
        if len(sizes) == 1:
            found.setdefault(sizes.pop(), []).append(each)
    return found
