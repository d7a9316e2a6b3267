"""Sets of layers that are scored together, by name. Imports nothing heavy.

A set is the concatenation of its layers' unit vectors, divided by the square root of their number: its cosine
is the mean of the layers' cosines. Whether a task takes sets is decided when it is combined with its data.
"""

import re
from collections.abc import Sequence
from itertools import combinations

from layerboard.zoo.errors import InputError, either, likely
from layerboard.zoo.spec import Layer

# the last four blocks, the blocks at each quarter of the depth, all scored blocks, and all pairs of them
SETS = ("last4", "quarters", "all", "pairs")
GREEDY, MOST = "greedy:3", 3  # forward selection of up to so many blocks: every set that it may look at
CANDIDATES = 12  # blocks that forward selection is among, at most
# metrics of the records of a set that was given by its blocks, or that forward selection may reach
GIVEN_METRIC, GREEDY_METRIC = "given", "greedy"
FREE = re.compile(r"[0-9]{1,5}(\+[0-9]{1,5})+")  # blocks by number

_TAKEN = f"{', '.join(SETS)}, {GREEDY}, blocks such as 3+6+9"


def parse_sets(names: Sequence[str]) -> tuple[str, ...]:
    """Distinct names of sets: those of `SETS` first, then the others; raises InputError for a wrong one.

    The blocks of a set that is given by its blocks come in order of depth.
    """
    parsed = dict.fromkeys(_parsed(name, names) for name in names)
    return (*(name for name in SETS if name in parsed), *(name for name in parsed if name not in SETS))


def _parsed(name: str, names: Sequence[str]) -> str:
    if name in (*SETS, GREEDY):
        return name
    if FREE.fullmatch(name):
        blocks = sorted(map(int, name.split("+")))
        if blocks[0] > 0 and len({*blocks}) == len(blocks):
            return "+".join(map(str, blocks))
        raise InputError(f"--fuse {name[:40]}: blocks are numbers from 1 on, each once")
    if any(map(str.isdecimal, names)):
        given = "+".join(filter(str.isdecimal, names)) if len(names) > 1 else f"{name}+..."
        hint = f"; the blocks of a set are joined by +: --fuse {given[:40]}"
    else:
        close = likely("value", name, (*SETS, GREEDY))
        hint = f"; did you mean {either(close)}?" if close else ""
    raise InputError(f"--fuse takes {_TAKEN}, or several with commas; found {name[:40]!r}{hint}")


def marks_of(names: Sequence[str], depth: int, scored: Sequence[Layer]) -> dict[Layer, tuple[str, ...]]:
    """Metrics that say in records why a set is scored: it was given by its blocks, or `GREEDY` needs it."""
    marks: dict[Layer, tuple[str, ...]] = {}
    for name in names:
        metric = GIVEN_METRIC if FREE.fullmatch(name) else GREEDY_METRIC if name == GREEDY else ""
        for layers in sets_of([name], depth, scored) if metric else ():
            marks[layers] = (*marks.get(layers, ()), metric)
    return marks


def is_possible(name: str, depth: int, scored: Sequence[Layer]) -> bool:
    """Whether a backbone with these scored layers has a set of that name."""
    return bool(sets_of([name], depth, scored))


def sets_of(names: Sequence[str], depth: int, scored: Sequence[Layer]) -> tuple[Layer, ...]:
    """The named sets of a backbone's scored blocks, each once, sorted by depth."""
    blocks = [layer.index for layer in scored if layer.tap == "block" and layer.index > 0]
    chosen = {members for name in names for members in _members(name, depth, blocks)}
    several = [members for members in chosen if len(members) > 1 and {*members} <= {*blocks}]
    sets = (Layer(deepest, fused=tuple(others)) for *others, deepest in map(sorted, several))
    return tuple(sorted(sets, key=lambda layers: layers.place))


def members_of(sets: Sequence[Layer]) -> tuple[Layer, ...]:
    """The layers in any of the sets, in the order of a forward pass."""
    return tuple(sorted({member for each in sets for member in each.members}, key=lambda layer: layer.place))


def names_of(members: Sequence[int], depth: int) -> tuple[str, ...]:
    """Names of a set of blocks in a backbone of that depth: one or several of `SETS`."""
    blocks = tuple(members)
    return tuple(name for name in SETS if blocks in _members(name, depth, blocks))


def forward_selection(members: Sequence[frozenset[int]], scores: Sequence[float]) -> int:
    """Index of the set that is reached from the best single block by adding the best block, while that helps.

    Of equal scores the first counts; only sets that have a score are reached.
    """
    reached = max((row for row, each in enumerate(members) if len(each) == 1), key=scores.__getitem__)
    while larger := [
        row
        for row, each in enumerate(members)
        if len(each) == len(members[reached]) + 1 and members[reached] < each
    ]:
        best = max(larger, key=scores.__getitem__)
        if not scores[best] > scores[reached]:
            break
        reached = best
    return reached


def _members(name: str, depth: int, blocks: Sequence[int]) -> list[tuple[int, ...]]:
    """Blocks of each set with that name, ascending."""
    if name == "pairs":
        return list(combinations(blocks, 2))
    if name == GREEDY:
        count = min(len(blocks), CANDIDATES)  # evenly spaced, the last block among them
        among = [blocks[-(-len(blocks) * part // count) - 1] for part in range(1, count + 1)]
        return [each for size in range(2, MOST + 1) for each in combinations(among, size)]
    if name == "last4":
        return [tuple(range(max(1, depth - 3), depth + 1))]
    if name == "quarters":
        return [tuple(sorted({-(-depth * part // 4) for part in (1, 2, 3, 4)}))]
    if name == "all":
        return [tuple(range(1, depth + 1))]
    return [tuple(map(int, name.split("+")))] if FREE.fullmatch(name) else []
