"""The section on the gains of layer sets over plain single layers."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pandas as pd

from layerboard.leaderboards.blocks.blocks import Block, Heading, Table, said
from layerboard.leaderboards.blocks.display import natural, score_text
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.column import Column, Side, chosen_elsewhere
from layerboard.leaderboards.board.differences import Estimate, best_side, differences_of, sides_of
from layerboard.leaderboards.board.frames import backbones_of, is_floor
from layerboard.leaderboards.sections.variants import (
    NO_ITEMS,
    Gain,
    difference_text,
    missing_blocks,
    side_text,
)
from layerboard.tasks.framework.sets import SETS, names_of
from layerboard.zoo.spec import Layer

SET_NOTE = """\
Scores of sets of layers, from the same forward passes. The similarity of a set is the mean of the cosine
similarities of its layers; probes get the concatenated unit vectors, in the pooling of the best single layer.
These scores are in no other table. `gain` is the score of the set minus that of the best single layer, in
points, with its 95 % interval over the same items. The best layer was chosen on the test data, but the blocks
of `last4`, `quarters` and `all` were not, so their gains are a little too low; the best pair was chosen among
many more candidates than the best layer, so its gain is too high. The last row of a backbone is fair: set and
layer are both chosen on one half of the data and scored on the other. The temperature of a vote is the task's
own; averaging with an uninformative layer has the effect of a higher one."""

PAIR = "best pair of {count}"
CHOSEN = "chosen on other data, of {count}"


def set_gains(board: Board) -> tuple[Gain, ...]:
    """The gains of all sets, by transform, column and backbone; empty without scores of single layers."""
    gains: list[Gain] = []
    for transform in sorted(set(board.sets["transform"]), key=natural):
        rows, sets = (frame[frame["transform"] == transform] for frame in (board.measured, board.sets))
        plain = board.only(rows.assign(transform=""))  # on their own, they are scores like any others
        for column in plain.columns:
            for backbone in backbones_of(sets):
                gains += _gains(board, column, column.select(sets), backbone.name, transform)
    return tuple(gains)


def _gains(board: Board, column: Column, sets: pd.DataFrame, name: str, transform: str) -> Iterator[Gain]:
    """The gains of one backbone in a column: the named sets, the best pair, the held-out choice."""
    single = column.candidates[column.candidates["backbone"] == name]
    rows = sets[(sets["backbone"] == name) & (sets["metric"] == column.metric) & ~is_floor(sets)]
    rows = rows[(rows["pooling"] == column.poolings.get(name)) & rows["value"].notna()]
    if single.empty or rows.empty:
        return
    best = best_side(single, name, transform)
    for names, side in _shown(sides_of(rows, name, transform)):
        (gain,) = differences_of(column, [side], best, board.items)
        yield Gain(column, best, side, gain, names=names)
    score, chosen = chosen_elsewhere(rows)
    before = column.held_out.get(name)
    if not math.isnan(score) and before is not None and len(rows) > 1:
        side = replace(sides_of(chosen.head(1), name)[0], score=score)
        chosen_before = replace(best, layer=before.shares[0][0], score=before.score)
        names = (CHOSEN.format(count=len(rows)),)
        yield Gain(column, chosen_before, side, Estimate(score - before.score), names=names)


def blocks_of(side: Side) -> tuple[int, ...]:
    """The blocks of a set, ascending."""
    return tuple(member.index for member in Layer.of_record(side.layer, side.tap).members)


def _shown(sets: Sequence[Side]) -> Iterator[tuple[tuple[str, ...], Side]]:
    """The sets of fixed blocks, in the order of `SETS`, and the best pair, the shallower of equal ones."""
    sets = sorted(sets, key=lambda side: Layer.of_record(side.layer, side.tap).place)
    by_side = {side: names_of(blocks_of(side), side.depth) for side in sets}
    names = {side: tuple(name for name in every if name != "pairs") for side, every in by_side.items()}
    fixed = [side for side in sets if names[side]]
    for side in sorted(fixed, key=lambda side: SETS.index(names[side][0])):
        yield names[side], side
    pairs = [side for side in sets if len(blocks_of(side)) == 2]
    if pairs and pairs != fixed:
        yield (PAIR.format(count=len(pairs)),), max(pairs, key=lambda side: side.score)


def set_blocks(board: Board) -> list[Block]:
    """The section on layer sets; empty if there are none."""
    if board.sets.empty:
        return []
    frame = pd.DataFrame(
        {
            "column": gain.column.heading,
            "backbone": board.labels[gain.best.backbone],
            "transform": gain.plain.transform,
            "set": ", ".join(gain.names),
            "blocks": f"{at[0]}-{at[-1]}" if len(at) == at[-1] - at[0] + 1 > 2 else ", ".join(map(str, at)),
            "score": score_text(gain.best.score),
            "best layer": side_text(gain.plain),
            "gain": difference_text(gain.gain),
        }
        for gain in set_gains(board)
        for at in [blocks_of(gain.best)]
    )
    title, lacking = "What sets of layers gain", board.sets.assign(transform="sets of layers")
    blocks: list[Block] = [Heading(2, title), said(SET_NOTE)]
    blocks += [] if board.items is not None else [said(NO_ITEMS)]
    if len(frame):
        frame = frame if frame["transform"].any() else frame.drop(columns="transform")
        head = [*frame].index("set")
        blocks.append(Table(frame, left=head + 2, caption=title, head=head))
    return [*blocks, *missing_blocks(board, lacking, "set")]
