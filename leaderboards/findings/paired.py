"""Paired comparison of two backbones: differences on the same items, task by task."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd

from layerboard.leaderboards.blocks.display import fixed, narrow
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.column import COLUMN_FIELDS, Column, Side
from layerboard.leaderboards.board.differences import best_side, sides_of
from layerboard.leaderboards.board.frames import is_floor
from layerboard.leaderboards.records.files import scored_path, task_key
from layerboard.leaderboards.records.items import read_items
from layerboard.leaderboards.records.record import companion
from layerboard.tasks.framework.assess import group_difference, paired_differences
from layerboard.tasks.framework.base import Items
from layerboard.tasks.statistics.mcb import holm
from layerboard.zoo.errors import InputError, require_known

Which = Literal["best", "same"]

LEVEL = 0.05  # corrected p-values below it count as differences

CHOSEN = (
    "Each backbone is shown at its highest layer; intervals and p are of the difference of their true best "
    "layers, whichever these are."
)

_SIDE = ("layer", "depth", "pooling", "score")
_NUMBERS = ("difference", "ci_low", "ci_high", "p", "p_corrected")


@dataclass(frozen=True, slots=True)
class Versus:
    """One layer of one backbone against one of the other, on their common items.

    ``difference`` is first minus second, in points. Its 95 % interval and p are of these layers, or if they
    are the best of their backbones, of the true best of all layers and poolings of either. They are NaN if
    there are too few items to vary.
    """

    column: Column
    first: Side
    second: Side
    difference: float
    ci_low: float
    ci_high: float
    p: float  # two-sided, of no difference
    p_corrected: float = math.nan  # by Holm's method for all comparisons that are made together

    @property
    def higher(self) -> str:
        """The backbone that the data show to score higher; "" if they show none."""
        if not self.p_corrected < LEVEL:
            return ""
        return (self.first if self.difference > 0 else self.second).backbone


@dataclass(frozen=True, slots=True)
class Match:
    """All comparisons of two backbones, in table order."""

    names: tuple[str, str]
    # ``best``: the best block of each; ``same``: all blocks at equal relative depth
    which: Which
    rows: tuple[Versus, ...]
    left_out: tuple[str, ...]  # one sentence for each task that could not be compared


def match_backbones(board: Board, names: tuple[str, str], which: Which, tasks: Sequence[str] = ()) -> Match:
    """Compare two backbones in the primary metric of every task in which both have scores on the same data.

    Raises InputError for an unknown backbone or task, or if nothing can be compared.
    """
    rows = board.scores[board.scores["metric"] != ""]
    require_known("scored backbone", names, sorted({str(name) for name in rows["backbone"]}))
    require_known("scored task", tasks, sorted({str(name) for name in rows["task"]}))
    for name in names:
        if is_floor(rows[rows["backbone"] == name]).any():
            raise InputError(f"{name} is an untrained baseline, which takes part in no comparison")
    if names[0] == names[1]:
        raise InputError(f"expected two different backbones, found {names[0]} twice")
    rows = rows[rows["backbone"].isin(names)]
    pair = board.only(rows[rows["task"].isin(tasks)] if tasks else rows)
    left_out: list[str] = []
    compared: list[Versus] = []
    for column in pair.columns:
        try:
            compared += (
                [best_difference(pair, column, names)] if which == "best" else _same(pair, column, names)
            )
        except InputError as error:
            left_out.append(f"{column.heading}: {error}")
    if not compared:
        reasons = "; ".join(dict.fromkeys(left_out)) or "they share no task"
        raise InputError(f"{names[0]} and {names[1]} cannot be compared: {reasons}")
    corrected = holm(np.array([versus.p for versus in compared]))
    together = (replace(versus, p_corrected=float(p)) for versus, p in zip(compared, corrected, strict=True))
    return Match(names, which, tuple(together), tuple(dict.fromkeys(left_out)))


def best_difference(board: Board, column: Column, names: tuple[str, str]) -> Versus:
    """The best of one backbone against that of another in a column; raises InputError without items."""
    _require_scores(board, column, names)
    first, second = (best_side(column.candidates, name) for name in names)
    ranked = column.family.sort_values("value", ascending=False, kind="stable")
    own, others = (_items(board, column, sides_of(ranked, name, sort=False)) for name in names)
    return _versus(column, first, second, group_difference(own, others, column.metric))


def _same(board: Board, column: Column, names: tuple[str, str]) -> list[Versus]:
    """All blocks of two backbones at equal relative depth; raises InputError without items."""
    _require_scores(board, column, names)
    pairs = blocks_at_equal_depth(*(sides_of(column.candidates, name) for name in names))
    items = (_items(board, column, sides) for sides in zip(*pairs, strict=True))
    compared = []
    for (first, second), both in zip(pairs, zip(*items, strict=True), strict=True):
        numbers = paired_differences(both, column.metric, reference=1)
        ends = (numbers.value, numbers.low, numbers.high, numbers.p) if numbers else ()
        compared.append(_versus(column, first, second, [float(each[0]) for each in ends]))
    return compared


def _versus(column: Column, first: Side, second: Side, numbers: Sequence[float] | None) -> Versus:
    """A comparison by its numbers; raises InputError if there are none."""
    if not numbers:
        raise InputError("the backbones were scored on different items")
    return Versus(column, first, second, *numbers)


def _require_scores(board: Board, column: Column, names: tuple[str, str]) -> None:
    """Raise InputError unless both backbones have a score in a column."""
    scored = {*column.candidates["backbone"]}
    for name in names:
        if name not in scored:
            others = [other for other in board.columns if other.source[:3] == column.source[:3]]
            elsewhere = [other.data for other in others if name in set(other.rows["backbone"])]
            if elsewhere and column.data not in elsewhere:
                raise InputError(f"{names[0]} and {names[1]} were scored on different images or ground truth")
            raise InputError(f"{name} has no score")


def blocks_at_equal_depth(first: Sequence[Side], second: Sequence[Side]) -> list[tuple[Side, Side]]:
    """Blocks of two backbones at equal relative depth: each of the shallower one with its nearest.

    Of two that are equally near, the deeper one is taken. Raises InputError if there are none.
    """
    if first[0].depth > second[0].depth:
        return [(side, other) for other, side in blocks_at_equal_depth(second, first)]

    def apart(side: Side, other: Side) -> float:
        return abs(other.layer / other.depth - side.layer / side.depth)

    pairs = []
    for side in first:
        nearest = min(second, key=lambda other: (round(apart(side, other), 9), -other.layer))
        if apart(side, nearest) <= 0.5 / second[0].depth + 1e-9:
            pairs.append((side, nearest))
    if not pairs:
        raise InputError("no two layers that were run are at the same relative depth")
    return pairs


def _items(board: Board, column: Column, sides: Sequence[Side]) -> list[Items]:
    """Items of some blocks of a backbone, in their order; raises InputError if one is missing."""
    if board.items is None:
        raise InputError("there are no per-item measurements to compare")
    key = task_key(column.task, column.dataset, column.protocol)
    path = companion(board.items, scored_path(key, sides[0].backbone))
    items = read_items(path, {side.place for side in sides})
    if not all(side.place in items for side in sides):
        raise InputError(f"expected measurements of every layer in {path}; delete the file and run again")
    return [items[side.place] for side in sides]


def match_frame(result: Match) -> pd.DataFrame:
    """One row per comparison; ``higher`` names the backbone that the data show to score higher, or is ""."""
    rows = [
        {name: getattr(versus.column, name) for name in COLUMN_FIELDS}
        | {name: getattr(versus.first, name) for name in _SIDE}
        | {f"other_{name}": getattr(versus.second, name) for name in _SIDE}
        | {name: getattr(versus, name) for name in _NUMBERS}
        | {"higher": versus.higher}
        for versus in result.rows
    ]
    return pd.DataFrame(rows)


def match_table(result: Match) -> pd.DataFrame:
    """The comparisons as text: scores with layers in brackets, differences in points."""
    first, second = result.names
    return pd.DataFrame(
        {
            "task": versus.column.heading,
            first: versus.first.text,
            second: versus.second.text,
            "difference": _number(versus.difference, "+.1f"),
            "95 % interval": f"{fixed(low, 1)} to {fixed(high, 1)}" if narrow(low, high) else "",
            "p": _number(versus.p, ".2g"),
            "p (Holm)": _number(versus.p_corrected, ".2g"),
            "higher": versus.higher or ("not shown" if narrow(low, high) else "too few items"),
        }
        for versus in result.rows
        for low, high in [(versus.ci_low, versus.ci_high)]
    )


def conclusion(result: Match) -> str:
    """What the comparisons show, in one sentence, and how the layers were chosen, in another.

    Of many layers it says at how many depths.
    """
    total = Counter(versus.column.heading for versus in result.rows)
    parts = []
    states = {name: f"{name} scores higher" for name in result.names} | {"": "no difference shows"}
    for name, words in states.items():
        count = Counter(versus.column.heading for versus in result.rows if versus.higher == name)
        shares = {heading: f" at {many} of {total[heading]} depths" for heading, many in count.items()}
        where = ", ".join(heading + (shares[heading] if result.which == "same" else "") for heading in count)
        parts += [f"{words} on {where}"] if where else []
    corrected = f", corrected for {len(result.rows)} comparisons," if len(result.rows) > 1 else ""
    finding = f"At {100 * LEVEL:g} %{corrected} {'; '.join(parts)}."
    return f"{finding} {CHOSEN}" if result.which == "best" else finding


def _number(value: float, form: str) -> str:
    return "" if math.isnan(value) else f"{value:{form}}"
