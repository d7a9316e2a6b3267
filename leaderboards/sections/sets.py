"""The section on the gains of layer sets over plain single layers."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd

from layerboard.leaderboards.blocks.blocks import Block, Heading, Table, said
from layerboard.leaderboards.blocks.display import natural, score_text
from layerboard.leaderboards.board import differences
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.column import Column, Side, chosen_elsewhere
from layerboard.leaderboards.board.frames import backbones_of, is_floor
from layerboard.leaderboards.sections.variants import NO_ITEMS, Gain, difference_text, missing_blocks
from layerboard.tasks.framework import sets as layer_sets
from layerboard.tasks.framework.assess import Choose, pick_highest
from layerboard.zoo.spec import Layer

SET_NOTE = """\
Scores of sets of layers, from the same forward passes. The similarity of a set is the mean of the cosine
similarities of its layers; probes get the concatenated unit vectors, in the pooling of the best single layer.
These scores are in no other table. `gain` is the score of the set minus that of `against`, mostly the best
single layer, in points, with its 95 % interval over the same items. The best layer was chosen on these items,
but fixed blocks were not, so their gains are a little too low; the best pair and `greedy:3` were chosen among
many more candidates than the best layer, so their gains are too high. `held-out gain` is fair: set and layer
are both chosen on one half of the items and scored on the other, both ways, in 100 splits, and its interval
is over the same items. The temperature of a vote is the task's own; averaging with an uninformative layer has
the effect of a higher one."""

CHOOSING = """\
`greedy:3` adds to the best block the block that helps most, twice, while that helps."""

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
    best = differences.best_side(single, name, transform)
    plain, every = (differences.sides_of(each, name, transform) for each in (single, rows))
    measured = differences.items_of(column, [*plain, *every], board.items)
    shown = sets[(sets["backbone"] == name) & (sets["pooling"] == column.poolings.get(name))]
    marks = {str(metric): {*map(str, part["tap"])} for metric, part in shown.groupby("metric")}
    given = marks.get(layer_sets.GIVEN_METRIC, set())
    for way in _ways(plain, every, marks):
        side = way.sides[way.choose(np.array([each.score for each in way.sides]))]
        (gain,) = differences.differences_of(column, [side], best, board.items)
        held_out = differences.held_out_difference(column, way.sides, plain, measured, way.choose)
        yield Gain(column, best, side, gain, held_out=held_out, names=way.names)
    first, *others = [side for side in every if side.tap in given] or [best]
    for side in others:
        (gain,) = differences.differences_of(column, [side], first, board.items)
        yield Gain(column, first, side, gain, names=(side.tap,))
    score, chosen = chosen_elsewhere(rows)
    before = column.held_out.get(name)
    if not math.isnan(score) and before is not None and len(rows) > 1:
        side = replace(differences.sides_of(chosen.head(1), name)[0], score=score)
        chosen_before = replace(best, layer=before.shares[0][0], score=before.score)
        held_out = differences.held_out_difference(column, every, plain, measured)
        held_out = differences.Estimate(score - before.score) if math.isnan(held_out.value) else held_out
        names = (CHOSEN.format(count=len(rows)),)
        yield Gain(column, chosen_before, side, differences.MISSING, held_out=held_out, names=names)


def blocks_of(side: Side) -> tuple[int, ...]:
    """The blocks of a set, ascending."""
    return tuple(member.index for member in Layer.of_record(side.layer, side.tap).members)


class _Way(NamedTuple):
    """A way to choose a set of layers, with what it chooses from."""

    names: tuple[str, ...]
    sides: Sequence[Side]
    choose: Choose = pick_highest


def _ways(
    plain: Sequence[Side], sets: Sequence[Side], marks: Mapping[str, Collection[str]]
) -> Iterator[_Way]:
    """The sets of fixed blocks, in the order of `SETS`, then the ways to choose one by its score.

    ``marks`` are the taps of sets by the metrics that say why these are there (`tasks.framework.sets`).
    """
    given, greedy = (marks.get(metric, ()) for metric in (layer_sets.GIVEN_METRIC, layer_sets.GREEDY_METRIC))
    sets = sorted(sets, key=lambda side: Layer.of_record(side.layer, side.tap).place)
    names = dict[Side, tuple[str, ...]]()
    for side in sets:
        known = tuple(name for name in layer_sets.names_of(blocks_of(side), side.depth) if name != "pairs")
        names[side] = known or ((side.tap,) if side.tap in given else ())
    fixed = [side for side in sets if names[side]]
    for side in sorted(fixed, key=lambda side: [*layer_sets.SETS, names[side][0]].index(names[side][0])):
        yield _Way(names[side], [side])
    pairs = [side for side in sets if len(blocks_of(side)) == 2]
    if not {*pairs} <= {*fixed}:
        yield _Way((PAIR.format(count=len(pairs)),), pairs)
    if larger := [side for side in sets if side.tap in greedy]:
        among = {block for side in larger for block in blocks_of(side)}
        sides = [*(side for side in plain if side.layer in among), *larger]
        members = [frozenset(blocks_of(side)) for side in sides]
        choose = partial(layer_sets.forward_selection, members)
        yield _Way((f"{layer_sets.GREEDY}, of {len(among)} blocks",), sides, choose)


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
            "against": gain.plain.text,
            "gain": difference_text(gain.gain),
            "held-out gain": difference_text(gain.held_out),
        }
        for gain in set_gains(board)
        for at in [blocks_of(gain.best)]
    )
    title, lacking = "What sets of layers gain", board.sets.assign(transform="sets of layers")
    blocks: list[Block] = [Heading(2, title), said(SET_NOTE)]
    chooses = len(frame) and frame["set"].str.contains("greedy").any()
    blocks += [said(CHOOSING)] if chooses else []
    blocks += [] if board.items is not None else [said(NO_ITEMS)]
    if len(frame):
        frame = frame if frame["transform"].any() else frame.drop(columns="transform")
        head = [*frame].index("set")
        blocks.append(Table(frame, left=head + 2, caption=title, head=head))
    return [*blocks, *missing_blocks(board, lacking, "set")]
