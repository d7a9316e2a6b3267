"""The section on sets of layers: what taking layers together gains over the best single one."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import pandas as pd

from leaderboards.board import Board
from leaderboards.display import natural, score_text
from leaderboards.scores.column import Column, chosen_elsewhere
from leaderboards.scores.differences import Difference, Side, best_side, differences_of, sides_of
from leaderboards.scores.frames import is_floor
from leaderboards.sections.transforms import NO_ITEMS, difference_text, missing_blocks, side_text
from tasks.blocks import Block, Heading, Table, said
from tasks.sets import SETS, names_of
from zoo.spec import Layer

NOTE = """\
The same forwards, with layers taken together: the cosine of a set is the mean of its layers' cosines; probes
see the layers' unit vectors side by side. None of these scores stands in another table. `gain` is the set
less the best single layer, in points, with its 95 % interval over the same items. The best layer was chosen
on the items that score it, the blocks of `last4`, `quarters` and `all` were not, so their gains are a little
too low; the best pair was chosen among many more than the best layer, so its gain is too high. The last row
of a backbone is fair: set and layer are both chosen on one half of the data and scored on the other. The
temperature of a vote is the task's own: by a mean with a layer that says little it acts as a higher one."""

PAIR = "best pair of {count}"
CHOSEN = "chosen on other data, of {count}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetGain:
    """What taking layers together gains one backbone in one column.

    The last one of a backbone is chosen on other data: its score is of the data that did not choose, and its
    gain is over single blocks that were chosen so, too.
    """

    column: Column
    backbone: str
    transform: str  # what was done to the features of each layer
    names: tuple[str, ...]  # what the set is called (`tasks.sets.SETS`), or `PAIR`, or `CHOSEN`
    blocks: tuple[int, ...]  # rising; those that were chosen most often
    score: float  # percent
    best: Side  # the best single block, chosen on the items that score it
    gain: Difference


def set_gains(board: Board) -> tuple[SetGain, ...]:
    """The gains of all sets, by transform, column and backbone; none without scores of single layers."""
    gains: list[SetGain] = []
    for transform in sorted(set(board.sets["transform"]), key=natural):
        # seen alone they are scores like any others
        same = board.measured["transform"] == transform
        plain = board.only(board.measured[same].assign(transform=""))
        sets = board.sets[board.sets["transform"] == transform]
        for column in plain.columns:
            for backbone in board.backbones_in(sets):
                gains += _gains(board, column, column.select(sets), backbone.name, transform)
    return tuple(gains)


def _gains(board: Board, column: Column, sets: pd.DataFrame, name: str, transform: str) -> Iterator[SetGain]:
    """The gains of one backbone in a column: the named sets, the best pair, the honest choice."""
    single = column.candidates[column.candidates["backbone"] == name]
    rows = sets[(sets["backbone"] == name) & (sets["metric"] == column.metric) & ~is_floor(sets)]
    rows = rows[(rows["pooling"] == column.poolings.get(name)) & rows["value"].notna()]
    if single.empty or rows.empty:
        return
    best = best_side(single, name, transform)
    gain_of = partial(SetGain, column=column, backbone=name, transform=transform, best=best)
    for names, side in _shown(sides_of(rows, name, transform)):
        (gain,) = differences_of(column, [side], best, board.items)
        yield gain_of(names=names, blocks=_blocks(side), score=side.score, gain=gain)
    score, chosen = chosen_elsewhere(rows)
    before = column.honest.get(name)
    if not math.isnan(score) and before is not None and len(rows) > 1:
        blocks = _blocks(sides_of(chosen.head(1), name)[0])
        names = (CHOSEN.format(count=len(rows)),)
        yield gain_of(names=names, blocks=blocks, score=score, gain=Difference(score - before.score))


def _blocks(side: Side) -> tuple[int, ...]:
    return tuple(member.index for member in Layer.of_record(side.layer, side.tap).members)


def _shown(sets: Sequence[Side]) -> Iterator[tuple[tuple[str, ...], Side]]:
    """The sets of fixed blocks, in the order of `SETS`, and the best pair, the shallower of equal ones."""
    sets = sorted(sets, key=lambda side: Layer.of_record(side.layer, side.tap).place)
    names = {side: [name for name in names_of(_blocks(side), side.depth) if name != "pairs"] for side in sets}
    fixed = [side for side in sets if names[side]]
    for side in sorted(fixed, key=lambda side: SETS.index(names[side][0])):
        yield tuple(names[side]), side
    pairs = [side for side in sets if len(_blocks(side)) == 2]
    if pairs and pairs != fixed:
        yield (PAIR.format(count=len(pairs)),), max(pairs, key=lambda side: side.score)


def set_blocks(board: Board) -> list[Block]:
    """The section on sets of layers; nothing where there are none."""
    if board.sets.empty:
        return []
    blocks: list[Block] = [Heading(2, "What sets of layers gain"), said(NOTE)]
    blocks += [] if board.items is not None else [said(NO_ITEMS)]
    if gains := set_gains(board):
        frame = pd.DataFrame(
            {
                "column": gain.column.heading,
                "backbone": board.labels[gain.backbone],
                "transform": gain.transform,
                "set": ", ".join(gain.names),
                "blocks": _blocks_text(gain.blocks),
                "score": score_text(gain.score),
                "best layer": side_text(gain.best),
                "gain": difference_text(gain.gain),
            }
            for gain in gains
        )
        frame = frame if frame["transform"].any() else frame.drop(columns="transform")
        head = list(frame.columns).index("set")
        blocks.append(Table(frame, left=head + 2, caption="What sets of layers gain", head=head))
    return [*blocks, *missing_blocks(board, board.sets.assign(transform="sets of layers"), "set")]


def _blocks_text(blocks: tuple[int, ...]) -> str:
    """Blocks in short: ``9-12``, ``3, 6, 9, 12``."""
    first, last = blocks[0], blocks[-1]
    if len(blocks) > 2 and blocks == tuple(range(first, last + 1)):
        return f"{first}-{last}"
    return ", ".join(map(str, blocks))
