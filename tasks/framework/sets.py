"""Sets of layers that are scored together, by name. Imports nothing heavy.

A set is the concatenation of its layers' unit vectors, divided by the square root of their number: its cosine
is the mean of the layers' cosines. Whether a task takes sets is decided when it is combined with its data.
"""

from collections.abc import Sequence
from itertools import combinations

from layerboard.zoo.errors import InputError, either, likely
from layerboard.zoo.spec import Layer

# the last four blocks, the blocks at each quarter of the depth, all scored blocks, and all pairs of them
SETS = ("last4", "quarters", "all", "pairs")


def parse_sets(names: Sequence[str]) -> tuple[str, ...]:
    """Distinct names of sets, in the order of `SETS`; raises InputError for an unknown one."""
    for name in names:
        if name not in SETS:
            close = likely("value", name, SETS)
            hint = f"; did you mean {either(close)}?" if close else ""
            if any(map(str.isdecimal, names)):
                hint = f"; to fuse layers of your choice by two: --layers {','.join(names)[:40]} --fuse pairs"
            raise InputError(
                f"--fuse takes {', '.join(SETS)}, or several with commas; found {name[:40]!r}{hint}"
            )
    return tuple(name for name in SETS if name in names)


def sets_of(names: Sequence[str], depth: int, scored: Sequence[Layer]) -> tuple[Layer, ...]:
    """The named sets of a backbone's scored blocks, each once, sorted by depth."""
    blocks = [layer.index for layer in scored if layer.tap == "block" and layer.index > 0]
    chosen = {members for name in names for members in _members(name, depth, blocks)}
    whole = [members for members in chosen if len(members) > 1 and {*members} <= {*blocks}]
    sets = [Layer(deepest, fused=tuple(others)) for *others, deepest in whole]
    return tuple(sorted(sets, key=lambda layers: layers.place))


def members_of(sets: Sequence[Layer]) -> tuple[Layer, ...]:
    """The layers in any of the sets, in the order of a forward pass."""
    return tuple(sorted({member for each in sets for member in each.members}, key=lambda layer: layer.place))


def names_of(members: Sequence[int], depth: int) -> tuple[str, ...]:
    """Names of a set of blocks in a backbone of that depth: one or several of `SETS`."""
    blocks = tuple(members)
    return tuple(name for name in SETS if blocks in _members(name, depth, blocks))


def _members(name: str, depth: int, blocks: Sequence[int]) -> list[tuple[int, ...]]:
    """Blocks of each set with that name, ascending."""
    if name == "pairs":
        return list(combinations(blocks, 2))
    if name == "last4":
        return [tuple(range(max(1, depth - 3), depth + 1))]
    if name == "quarters":
        return [tuple(sorted({-(-depth * part // 4) for part in (1, 2, 3, 4)}))]
    return [tuple(range(1, depth + 1))]
