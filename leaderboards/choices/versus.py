"""Two backbones against each other: paired differences on the same items, task by task."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from leaderboards.choices.honest import choices
from leaderboards.choices.selection import (
    FLOOR,
    Column,
    candidates,
    columns_of,
    score_rows,
)
from leaderboards.choices.sides import Side, best_of, equal_shares, sides_of
from leaderboards.records.files import scored_path, task_key
from leaderboards.records.items import Place, read_items
from tasks.base import Items, Over
from tasks.metrics.multiple import holm
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


def match(
    records: pd.DataFrame, folder: Path, names: tuple[str, str], which: Which, tasks: Sequence[str] = ()
) -> Match:
    """Compare two backbones in the primary metric of every task that both were scored in on the same data.

    Args:
        records: Columns of `Record`, in any order.
        folder: The items of the records, as `leaderboards.records.items.write_items` wrote them.
        names: The two backbones.
        which: Which layers are compared.
        tasks: Names of tasks; all if empty.

    Raises:
        InputError: There is no such backbone or task, or nothing can be compared.
    """
    rows = score_rows(records)
    rows = rows[rows["primary"].astype(bool) & (rows["metric"] != "")]
    _require(rows, names, tasks)
    own = rows[rows["backbone"].isin(names)]
    own = own[own["task"].isin(tasks)] if tasks else own
    left_out: list[str] = []
    planned: list[_Planned] = []
    for column in columns_of(own):
        try:
            planned.append(_planned(own, folder, names, which, column))
        except InputError as error:
            left_out.append(f"{column.heading}: {error}")
    count = sum(len(one.pairs) for one in planned)
    found: list[Versus] = []
    for one in planned:
        try:
            found += [_compared(one, pair, count) for pair in one.pairs]
        except InputError as error:
            left_out.append(f"{one.column.heading}: {error}")
    if not found:
        reasons = "; ".join(dict.fromkeys(left_out)) or "they share no task"
        raise InputError(f"{names[0]} and {names[1]} cannot be compared: {reasons}")
    corrected = holm(np.array([one.p for one in found]))
    together = (replace(one, p_corrected=float(p)) for one, p in zip(found, corrected, strict=True))
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
            raise unknown("task", task, sorted({str(one) for one in rows["task"]}))


@dataclass(frozen=True, slots=True)
class _Planned:
    """What is compared in a column, with the items of both backbones and the held-out difference."""

    column: Column
    pairs: Sequence[tuple[Side, Side]]
    items: tuple[Mapping[Place, Items], Mapping[Place, Items]]
    held_out: float


def _planned(
    records: pd.DataFrame, folder: Path, names: tuple[str, str], which: Which, column: Column
) -> _Planned:
    """What is compared in a column; raises InputError where nothing can be."""
    rows = column.rows(records)
    rows = candidates(rows[rows["metric"] == column.metric])
    sides = [sides_of(rows[rows["backbone"] == name]) for name in names]
    _require_same_data(records, column, names, sides)
    pairs = equal_shares(*sides) if which == "same" else [(best_of(rows, names[0]), best_of(rows, names[1]))]
    first, second = (
        _items(folder, column, name, {pair[place] for pair in pairs}) for place, name in enumerate(names)
    )
    honest = choices(records, column) if which == "best" else {}
    known = all(name in honest for name in names)
    held_out = honest[names[0]].score - honest[names[1]].score if known else math.nan
    return _Planned(column, pairs, (first, second), held_out)


def _compared(planned: _Planned, pair: tuple[Side, Side], count: int) -> Versus:
    """One of so many comparisons; raises InputError where the items are others."""
    items = [own[_place(side)] for own, side in zip(planned.items, pair, strict=True)]
    metric = planned.column.metric
    statistic = items[0].statistics.get(metric)
    resamples = max(RESAMPLES[statistic.over], PER_COMPARISON * count) if statistic else None
    found = paired_differences(items, metric, reference=1, resamples=resamples)
    if found is None:
        raise InputError("the backbones were scored on different items")
    return Versus(
        column=planned.column,
        first=pair[0],
        second=pair[1],
        difference=float(found.value[0]),
        ci_low=float(found.low[0]),
        ci_high=float(found.high[0]),
        p=float(found.p[0]),
        held_out=planned.held_out,
    )


def _require_same_data(
    records: pd.DataFrame, column: Column, names: tuple[str, str], sides: Sequence[Sequence[Side]]
) -> None:
    """Raise InputError unless both have scores in a column, of data that are known to be the same."""
    if not all(sides):
        lacking = names[0] if not sides[0] else names[1]
        same = records[(records["task"] == column.task) & (records["dataset"] == column.dataset)]
        same = same[(same["protocol"] == column.protocol) & (same["backbone"] == lacking)]
        if len(same) and column.data not in set(same["data"]):
            raise InputError(f"{names[0]} and {names[1]} were scored on different images or ground truth")
        raise InputError(f"{lacking} has no score")
    if not column.data:
        raise InputError("records of an earlier version do not say of which images they are; run again")


def _place(side: Side) -> Place:
    return side.layer, "block", side.pooling


def _items(folder: Path, column: Column, name: str, sides: set[Side]) -> Mapping[Place, Items]:
    """Items of some blocks of a backbone; raises InputError where one is not there."""
    path = folder / scored_path(task_key(column.task, column.dataset, column.protocol), name)
    places = [_place(side) for side in sides]
    found = read_items(path, places)
    if not all(place in found for place in places):
        raise InputError(f"expected measurements of every layer in {path}; delete the file and run again")
    return found
