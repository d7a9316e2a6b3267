"""Sets of layers that are taken together, by name. Imports nothing heavy.

A set stands for the unit vectors of its layers side by side, each divided by the square root of their number:
its cosine is the mean of the layers' cosines. Which tasks take sets is decided where tasks meet their data.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from layerboard.zoo.errors import InputError
from layerboard.zoo.spec import Layer

if TYPE_CHECKING:
    from torch import Tensor

# the last four blocks, those at each quarter of the depth, all, and every two of those that are scored
SETS = ("last4", "quarters", "all", "pairs")
MIXED = "its layers have grids of different sizes"  # why a set of layers has no cosine of tokens


def parse_sets(names: Sequence[str]) -> tuple[str, ...]:
    """Names of sets, each once, in the order of `SETS`; raises InputError for another one."""
    for name in names:
        if name not in SETS:
            raise InputError(f"--fuse takes {', '.join(SETS)}, or several with commas; found {name[:40]!r}")
    return tuple(name for name in SETS if name in names)


def sets_of(names: Sequence[str], depth: int, scored: Sequence[Layer]) -> tuple[Layer, ...]:
    """The sets of those names of a backbone's scored blocks, each once, those of deeper blocks behind."""
    blocks = [layer.index for layer in scored if layer.tap == "block" and layer.index > 0]
    chosen = {members for name in names for members in _members(name, depth, blocks)}
    whole = [members for members in chosen if len(members) > 1 and {*members} <= {*blocks}]
    sets = [Layer(deepest, fused=tuple(others)) for *others, deepest in whole]
    return tuple(sorted(sets, key=lambda layers: layers.place))


def members_of(sets: Sequence[Layer]) -> tuple[Layer, ...]:
    """The layers that are in some of the sets, in the order of a forward."""
    return tuple(sorted({member for each in sets for member in each.members}, key=lambda layer: layer.place))


def names_of(members: Sequence[int], depth: int) -> tuple[str, ...]:
    """What a set of blocks is called in a backbone of that depth: one name of `SETS` or several."""
    blocks = tuple(members)
    return tuple(name for name in SETS if blocks in _members(name, depth, blocks))


def _members(name: str, depth: int, blocks: Sequence[int]) -> list[tuple[int, ...]]:
    """The blocks of each set of a name, rising."""
    if name == "pairs":
        return list(combinations(blocks, 2))
    if name == "last4":
        return [tuple(range(max(1, depth - 3), depth + 1))]
    if name == "quarters":
        return [tuple(sorted({-(-depth * part // 4) for part in (1, 2, 3, 4)}))]
    return [tuple(range(1, depth + 1))]


class Gathered:
    """What several layers show of images, until all of them have shown an image; of none nothing waits."""

    def __init__(self, layers: Collection[Layer]) -> None:
        self._count = max(1, len({*layers}))
        self._waiting: dict[int, dict[Layer, Tensor]] = {}

    def add(
        self, layer: Layer, positions: Sequence[int], grids: "Tensor"
    ) -> "dict[int, dict[Layer, Tensor]]":
        """Copy what waits of a layer; gives the images of which it was the last, by position, in order."""
        done = {}
        for position, grid in zip(positions, grids, strict=True):
            grids_of = self._waiting.setdefault(position, {})
            grids_of[layer] = grid if self._count == 1 else grid.clone()
            if len(grids_of) == self._count:
                done[position] = self._waiting.pop(position)
        return done


def of_one_grid(
    sets: Sequence[Layer], shapes: Mapping[Layer, tuple[int, int]]
) -> dict[tuple[int, int], list[Layer]]:
    """Sets whose layers all have grids of one height and width, by that size; the others are left out."""
    by_size: dict[tuple[int, int], list[Layer]] = {}
    for each in sets:
        sizes = {shapes[member] for member in each.members}
        if len(sizes) == 1:
            by_size.setdefault(sizes.pop(), []).append(each)
    return by_size
