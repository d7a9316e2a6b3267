"""Two backbones against each other: paired differences on the same items, task by task."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd

from leaderboards.board import Board
from leaderboards.display import fixed, score_text
from leaderboards.records.files import scored_path, task_key
from leaderboards.records.items import Place, read_items
from leaderboards.scores.column import Column
from leaderboards.scores.differences import Side, best_side, sides_of
from leaderboards.scores.frames import FLOOR
from tasks.base import Items, Over
from tasks.metrics.best_set import holm
from tasks.uncertainty import paired_differences
from zoo.errors import InputError, unknown

Which = Literal["best", "same"]

LEVEL = 0.05
"""Corrected p-values below it are differences that these data show."""

RESAMPLES: dict[Over, int] = {
    "items": 10_000,
    "clusters": 10_000,
    "strata": 10_000,
    "partition": 1_000,
    "classes": 1_000,
    "seen classes": 1_000,
    "all classes": 1_000,
    "pixels": 1_000,
}
"""Resamples of a statistic over such things."""

PER_COMPARISON = 60
"""Resamples for each comparison that is made, at least: with fewer, no corrected p can be below the level."""

OPTIMISTIC = (
    "Each backbone stands at the layer that scores best on the very items that are compared, which is "
    "optimistic"
)
HELD_OUT = (
    "; beside it is the difference when layers are chosen on one half of the items and scored on the other"
)

_COLUMNS = (
    *("task", "dataset", "data", "protocol", "metric", "partial"),
    *("layer", "depth", "pooling", "score", "other_layer", "other_depth", "other_pooling", "other_score"),
    *("difference", "ci_low", "ci_high", "p", "p_corrected", "held_out", "higher"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Versus:
    """One layer of one backbone against one of the other, on the items that both have.

    Attributes:
        column: Task, dataset, data, protocol and metric.
        first: The first backbone.
        second: The second one.
        difference: First minus second, in points, on the common items.
        ci_low: Lower end of its 95 % interval; NaN where items are too few to vary.
        ci_high: Upper end.
        p: Two-sided p of no difference; NaN where items are too few to vary.
        p_corrected: The same by Holm's rule for all comparisons that are made together.
        held_out: Difference of the scores on halves of the data on which no layer was chosen; NaN where no
            choice is recorded, or layers are not chosen.
    """

    column: Column
    first: Side
    second: Side
    difference: float
    ci_low: float
    ci_high: float
    p: float
    p_corrected: float = math.nan
    held_out: float = math.nan

    @property
    def higher(self) -> int:
        """1 or 2 where the data show that the first or the second backbone scores higher, else 0.

        A best layer was chosen on the items that score it; where the difference is gone when the layers are
        chosen on other items, nothing is shown.
        """
        turned = not math.isnan(self.held_out) and self.held_out * self.difference <= 0
        if turned or not self.p_corrected < LEVEL:
            return 0
        return 1 if self.difference > 0 else 2


@dataclass(frozen=True, slots=True)
class Match:
    """All comparisons of two backbones.

    Attributes:
        names: The first backbone and the second.
        which: ``best``: each one's best block; ``same``: all blocks at equal shares of the depth.
        rows: The comparisons, in the order of the tables.
        left_out: One sentence for each task that could not be compared.
    """

    names: tuple[str, str]
    which: Which
    rows: tuple[Versus, ...]
    left_out: tuple[str, ...]


def match(board: Board, names: tuple[str, str], which: Which, tasks: Sequence[str] = ()) -> Match:
    """Compare two backbones in the primary metric of every task that both were scored in on the same data.

    Args:
        board: Scores, and the folder of their items.
        names: The two backbones.
        which: Which layers are compared.
        tasks: Names of tasks; all if empty.

    Raises:
        InputError: There is no such backbone or task, or nothing can be compared.
    """
    rows = board.scores[board.scores["primary"].astype(bool) & (board.scores["metric"] != "")]
    _require(rows, names, tasks)
    rows = rows[rows["backbone"].isin(names)]
    pair = board.only(rows[rows["task"].isin(tasks)] if tasks else rows)
    left_out: list[str] = []
    planned: list[_Planned] = []
    for column in pair.columns:
        try:
            planned.append(_planned(pair, column, names, which))
        except InputError as error:
            left_out.append(f"{column.heading}: {error}")
    count = sum(len(plan.pairs) for plan in planned)
    compared: list[Versus] = []
    for plan in planned:
        try:
            compared += [_compared(plan, sides, count) for sides in plan.pairs]
        except InputError as error:
            left_out.append(f"{plan.column.heading}: {error}")
    if not compared:
        reasons = "; ".join(dict.fromkeys(left_out)) or "they share no task"
        raise InputError(f"{names[0]} and {names[1]} cannot be compared: {reasons}")
    corrected = holm(np.array([versus.p for versus in compared]))
    together = (replace(versus, p_corrected=float(p)) for versus, p in zip(compared, corrected, strict=True))
    return Match(names, which, tuple(together), tuple(dict.fromkeys(left_out)))


def _require(rows: pd.DataFrame, names: tuple[str, str], tasks: Sequence[str]) -> None:
    """Raise InputError for names that have no records."""
    known = sorted({str(name) for name in rows["backbone"]})
    for name in names:
        if name not in known:
            raise unknown("backbone", name, known)
        if FLOOR in set(rows.loc[rows["backbone"] == name, "family"]):
            raise InputError(f"the layers of {name} are random draws, which compare with nothing")
    if names[0] == names[1]:
        raise InputError(f"expected two different backbones, found {names[0]} twice")
    for task in tasks:
        if task not in set(rows["task"]):
            raise unknown("task", task, sorted({str(name) for name in rows["task"]}))


@dataclass(frozen=True, slots=True)
class _Planned:
    """What is compared in a column, with the items of both backbones and the held-out difference."""

    column: Column
    pairs: Sequence[tuple[Side, Side]]
    items: Sequence[Mapping[Place, Items]]
    held_out: float


def _planned(board: Board, column: Column, names: tuple[str, str], which: Which) -> _Planned:
    """What is compared in a column; raises InputError where nothing can be."""
    first, second = (sides_of(column.candidates, name) for name in names)
    if not first or not second:
        _lacking(board, column, names, names[1] if first else names[0])
    if which == "same":
        pairs = equal_shares(first, second)
    else:
        pairs = [(best_side(column.candidates, names[0]), best_side(column.candidates, names[1]))]
    items = [
        _items(board, column, name, [pair[side].place for pair in pairs]) for side, name in enumerate(names)
    ]
    honest = [column.honest.get(name) for name in names] if which == "best" else [None]
    scores = [choice.score for choice in honest if choice is not None]
    return _Planned(column, pairs, items, scores[0] - scores[1] if len(scores) == 2 else math.nan)


def _lacking(board: Board, column: Column, names: tuple[str, str], name: str) -> None:
    """Raise InputError that says why a backbone has no score in a column."""
    others = [
        other
        for other in board.columns
        if other.source[:3] == column.source[:3] and other.data != column.data
    ]
    elsewhere = any(name in set(other.rows["backbone"]) for other in others)
    if elsewhere and name not in set(column.rows["backbone"]):
        raise InputError(f"{names[0]} and {names[1]} were scored on different images or ground truth")
    raise InputError(f"{name} has no score")


def equal_shares(first: Sequence[Side], second: Sequence[Side]) -> list[tuple[Side, Side]]:
    """Blocks of two backbones at equal shares of their depth: each of the shallower one with its nearest.

    Of two that are equally near, the deeper one counts. Blocks that have no score have no partner.

    Raises:
        InputError: No two blocks are at the same share.
    """
    if first[0].depth > second[0].depth:
        return [(side, other) for other, side in equal_shares(second, first)]
    half_block = 0.5 / second[0].depth + 1e-9
    pairs = []
    for side in first:
        nearest = min(second, key=lambda other: (round(abs(other.share - side.share), 9), -other.layer))
        if abs(nearest.share - side.share) <= half_block:
            pairs.append((side, nearest))
    if not pairs:
        raise InputError("no two of the layers that were run are at the same share of the depth")
    return pairs


def _items(board: Board, column: Column, name: str, places: Sequence[Place]) -> Mapping[Place, Items]:
    """Items of some blocks of a backbone; raises InputError where one is not there."""
    if board.items is None:
        raise InputError("there are no measurements of single images to compare by")
    path = board.items / scored_path(task_key(column.task, column.dataset, column.protocol), name)
    items = read_items(path, {*places})
    if not all(layer in items for layer in places):
        raise InputError(f"expected measurements of every layer in {path}; delete the file and run again")
    return items


def _compared(planned: _Planned, sides: tuple[Side, Side], count: int) -> Versus:
    """One of so many comparisons; raises InputError where the items are others."""
    items = [by_place[side.place] for by_place, side in zip(planned.items, sides, strict=True)]
    metric = planned.column.metric
    statistic = items[0].statistics.get(metric)
    resamples = max(RESAMPLES[statistic.over], PER_COMPARISON * count) if statistic else None
    difference = paired_differences(items, metric, reference=1, resamples=resamples)
    if difference is None:
        raise InputError("the backbones were scored on different items")
    return Versus(
        column=planned.column,
        first=sides[0],
        second=sides[1],
        difference=float(difference.value[0]),
        ci_low=float(difference.low[0]),
        ci_high=float(difference.high[0]),
        p=float(difference.p[0]),
        held_out=planned.held_out,
    )


def match_frame(result: Match) -> pd.DataFrame:
    """One row a comparison: what is compared, both scores, the difference with its interval and p-values.

    ``difference`` is first minus second, in points; ``p_corrected`` is Holm's, for all rows together;
    ``higher`` names the backbone that the data show to score higher, "" where they show none.
    """
    return pd.DataFrame([_row(result, versus) for versus in result.rows], columns=list(_COLUMNS))


def _row(result: Match, versus: Versus) -> dict[str, object]:
    column, first, second = versus.column, versus.first, versus.second
    return {
        "task": column.task,
        "dataset": column.dataset,
        "data": column.data,
        "protocol": column.protocol,
        "metric": column.metric,
        "partial": column.partial,
        **{name: getattr(first, name) for name in ("layer", "depth", "pooling", "score")},
        **{f"other_{name}": getattr(second, name) for name in ("layer", "depth", "pooling", "score")},
        **{name: getattr(versus, name) for name in ("difference", "ci_low", "ci_high", "p", "p_corrected")},
        "held_out": versus.held_out,
        "higher": _winner(result, versus),
    }


def match_table(result: Match) -> pd.DataFrame:
    """The comparisons as text: scores with layers in brackets, differences in points."""
    first, second = result.names
    table = pd.DataFrame(
        {
            "task": versus.column.heading,
            first: _score(versus.first, versus),
            second: _score(versus.second, versus),
            "difference": _signed(versus.difference),
            "95 % interval": _interval(versus),
            "p": _p(versus.p),
            "p (Holm)": _p(versus.p_corrected),
            "held-out difference": _signed(versus.held_out),
            "higher": _winner(result, versus) or ("too few items" if math.isnan(versus.p) else "not shown"),
        }
        for versus in result.rows
    )
    empty = (table["held-out difference"] == "").all()
    return table.drop(columns="held-out difference") if empty else table


def conclusion(result: Match) -> str:
    """What the comparisons show, in one sentence, and how the layers were chosen, in another."""
    count = len(result.rows)
    corrected = f", corrected for {count} comparisons," if count > 1 else ""
    shown = f"At {100 * LEVEL:g} %{corrected} {_shown(result)}."
    if result.which == "same":
        return shown
    known = any(not math.isnan(versus.held_out) for versus in result.rows)
    return f"{shown} {OPTIMISTIC}{HELD_OUT if known else ''}."


def _shown(result: Match) -> str:
    """Which backbone is higher where."""
    groups = {side: [versus for versus in result.rows if versus.higher == side] for side in (1, 2, 0)}
    parts = [
        f"{name} scores higher on {_where(result, groups[side])}"
        for side, name in enumerate(result.names, start=1)
        if groups[side]
    ]
    if groups[0]:
        parts.append(f"no difference shows on {_where(result, groups[0])}")
    return "; ".join(parts)


def _where(result: Match, rows: Sequence[Versus]) -> str:
    """The columns of some comparisons; of many layers, at how many of them."""
    headings = dict.fromkeys(versus.column.heading for versus in rows)
    if result.which == "best":
        return ", ".join(headings)
    total = {heading: _count(result.rows, heading) for heading in headings}
    return ", ".join(
        f"{heading} at {_count(rows, heading)} of {total[heading]} depths" for heading in headings
    )


def _count(rows: Sequence[Versus], heading: str) -> int:
    return sum(versus.column.heading == heading for versus in rows)


def _winner(result: Match, versus: Versus) -> str:
    return result.names[versus.higher - 1] if versus.higher else ""


def _score(side: Side, versus: Versus) -> str:
    """A score with its layer, and its pooling where the other backbone has another."""
    pooling = f", {side.pooling}" if versus.first.pooling != versus.second.pooling else ""
    return f"{score_text(side.score)} ({side.layer}/{side.depth}{pooling})"


def _signed(value: float) -> str:
    return "" if math.isnan(value) else f"{value:+.1f}"


def _interval(versus: Versus) -> str:
    return "" if math.isnan(versus.ci_low) else f"{fixed(versus.ci_low, 1)} to {fixed(versus.ci_high, 1)}"


def _p(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.2g}"
