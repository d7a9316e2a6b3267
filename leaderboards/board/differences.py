"""What the data can distinguish: losses of layers, pairs of layers, and ranks of backbones."""

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path

import pandas as pd

from layerboard.leaderboards.blocks.display import task_display
from layerboard.leaderboards.board.column import Column, Side
from layerboard.leaderboards.board.frames import best_rows
from layerboard.leaderboards.records.files import scored_path, task_key
from layerboard.leaderboards.records.items import known_places
from layerboard.leaderboards.records.record import companion
from layerboard.tasks.framework import assess
from layerboard.tasks.framework.base import Items
from layerboard.tasks.statistics.resolution import CRITICAL, Enough, enough_units
from layerboard.zoo.errors import InputError, counted
from layerboard.zoo.spec import stands_for_set

SIDE = ["backbone", "layer", "depth", "pooling", "value", "tap", "transform"]  # columns of fields of `Side`


@dataclass(frozen=True)
class Bounds:
    """How far the candidates of one column may be below the best of them, all at once, with 95 %.

    ``rows`` are the candidates: layers in all poolings. ``loss`` is by how many points the true best is above
    the candidate, at most; NaN if it could not be compared. ``maybe`` says whether it may be the best itself.
    ``units`` counts what was sampled: ``6 videos``; "" without items of the best.
    """

    rows: pd.DataFrame
    units: str = ""

    @cached_property
    def highest(self) -> frozenset[str]:
        """The backbones with the highest score."""
        return self._names(self.rows["value"] == self.rows["value"].max())

    @cached_property
    def maybe(self) -> frozenset[str]:
        """Other backbones that have a candidate that may be the best."""
        return self._names(self.rows["maybe"]) - self.highest

    @cached_property
    def untested(self) -> frozenset[str]:
        """Others with a candidate that lacks measurements of the items of the best, or enough of them."""
        return self._names(self.rows["loss"].isna()) - self.highest - self.maybe

    @cached_property
    def worse(self) -> frozenset[str]:
        """Others of which every candidate is shown to be worse than the best."""
        return frozenset(self.rows["backbone"]) - self.highest - self.maybe - self.untested

    def losses_of(self, rows: pd.DataFrame) -> list[float]:
        """The loss of each of some rows by backbone, layer, pooling and transform; NaN if it has none."""
        keys = ["backbone", "layer", "pooling", "transform"]
        known = dict(zip(self.rows[keys].itertuples(index=False, name=None), self.rows["loss"], strict=True))
        return [float(known.get(key, math.nan)) for key in rows[keys].itertuples(index=False, name=None)]

    def _names(self, rows: "pd.Series[bool]") -> frozenset[str]:
        return frozenset(map(str, self.rows.loc[rows, "backbone"]))


def bounds_of(column: Column, rows: pd.DataFrame, folder: Path | None) -> Bounds:
    """The bounds of some candidates of a column, layers in poolings, from a folder of items.

    The highest score in table order comes first; randomness is seeded, and the result does not depend on the
    order of the records.
    """
    rows = rows.assign(loss=math.nan, maybe=False)
    ranked = rows.sort_values("value", ascending=False, kind="stable")
    sides = dict(zip(ranked.index, _sides(ranked), strict=True))
    measured = items_of(column, [*sides.values()], folder)
    if not sides or next(iter(sides.values())) not in measured:
        return Bounds(rows)
    there = {row: measured[side] for row, side in sides.items() if side in measured}
    losses = zip(there, assess.below_best([*there.values()], column.metric), strict=True)
    below = {row: each for row, each in losses if each is not None}
    first = there[ranked.index[0]]
    count = len({*first.clusters})
    unit = first.unit if count == len(first.keys) else "groups"
    units = counted(count, task_display(column.task).sampled or unit)
    if len(below) > 1 or len(rows) == 1:  # else nothing was compared with it
        rows.loc[[*below], "loss"] = [each.loss for each in below.values()]
        rows.loc[[*below], "maybe"] = [each.maybe for each in below.values()]
    return Bounds(rows, units)


def items_of(column: Column, sides: Iterable[Side], folder: Path | None) -> dict[Side, Items]:
    """Items of layers and sets of a column, by these; without those whose file is missing or another one.

    A leaderboard or a choice is useful without them: callers report what was not tested.
    """
    if folder is None:
        return {}
    files: dict[Path, list[Side]] = {}
    for side in sides:
        subject = (column.task, column.dataset, column.protocol, side.transform, stands_for_set(side.tap))
        files.setdefault(scored_path(task_key(*subject), side.backbone), []).append(side)
    items: dict[Side, Items] = {}
    for name, own in files.items():
        with suppress(InputError):
            places = known_places(companion(folder, name), {side.place for side in own})
            items |= {side: places[side.place] for side in own if side.place in places}
    return items


def sides_of(rows: pd.DataFrame, name: str, transform: str = "", *, sort: bool = True) -> list[Side]:
    """The layers of a backbone that have a score, in order of depth, or of the rows."""
    rows = rows[SIDE]  # of many columns, before rows are taken
    rows = rows[rows["backbone"] == name].assign(transform=transform)
    return _sides(rows.sort_values("layer", kind="stable") if sort else rows)


def _sides(rows: pd.DataFrame) -> list[Side]:
    return [Side(*fields) for fields in rows[SIDE].itertuples(index=False, name=None)]


def best_side(rows: pd.DataFrame, name: str, transform: str = "") -> Side:
    """The best block of a backbone, the lower of equal ones."""
    (best,) = sides_of(best_rows(rows), name, transform)
    return best


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number, such as a difference of scores in points, and the ends of its 95 % interval, or NaN."""

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan


MISSING = Estimate()


def differences_of(column: Column, sides: Sequence[Side], base: Side, items: Path | None) -> list[Estimate]:
    """Each score minus that of another side, with intervals if items of both exist."""
    measured = items_of(column, [*sides, base], items)
    every = [measured[side] for side in (*sides, base) if side in measured]
    whole = len(every) > len(sides)
    compared = assess.paired_differences(every, column.metric, reference=len(sides)) if whole else None
    if compared is None:
        return [Estimate(side.score - base.score) for side in sides]
    ends = zip(compared.value, compared.low, compared.high, strict=True)
    return [Estimate(*map(float, numbers)) for numbers in ends][: len(sides)]


def held_out_difference(
    column: Column,
    sides: Sequence[Side],
    base: Sequence[Side],
    measured: Mapping[Side, Items],
    choose: assess.Choose = assess.pick_highest,
) -> Estimate:
    """What a choice among some sides gains over the best of others, both held out (`held_out_gain`)."""
    if not all(side in measured for side in (*sides, *base)):
        return MISSING
    first, second = ([measured[side] for side in part] for part in (sides, base))
    gain = assess.held_out_gain(first, second, column.metric, choose)
    return MISSING if gain is None else Estimate(gain.value, gain.low, gain.high)


def enough_images(column: Column, items: Path) -> tuple[str, str, Enough] | None:
    """The two best backbones of a column, and about how many such images would tell them apart.

    None if these images do, without a second backbone, and without items of both.
    """
    best = column.best.sort_values("value", ascending=False, kind="stable")
    names = [str(name) for name in best["backbone"][:2]]
    if len(names) < 2:
        return None
    first, second = (best_side(best, name) for name in names)
    (difference,) = differences_of(column, [first], second, items)
    half = (difference.high - difference.low) / 2
    if not difference.value <= half or not half:
        return None
    enough = enough_units(difference.value, half / CRITICAL, float(best["n"].iloc[0]))
    return first.backbone, second.backbone, enough


@dataclass(frozen=True, slots=True)
class ColumnStanding:
    """What the items of one column tell, by all layers in all poolings."""

    # the first and the last rank of each backbone, by name, all with 95 % at once; none if some lack items
    ranks: Mapping[str, tuple[int, int]]
    smallest: float  # points: the smallest difference from the best that the items show; NaN for none


Standings = Mapping[tuple[str, str, str, str], ColumnStanding]  # by `Column.key`


def column_standing(column: Column, bounds: Bounds, folder: Path) -> ColumnStanding | None:
    """The standing of a column from a folder of items; None without any.

    Its bounds say which backbones may be the best: exactly these have the first rank.
    """
    sides = {str(name): sides_of(column.family, str(name)) for name in column.best["backbone"]}
    items = items_of(column, chain.from_iterable(sides.values()), folder)
    measured = {  # all layers of a backbone, or else the family of the tests would not be whole
        name: [items[side] for side in own] for name, own in sides.items() if {*own} <= {*items}
    }
    best = bounds.highest | bounds.maybe | bounds.untested
    standing = assess.standing_of([*measured.values()], column.metric, [name in best for name in measured])
    if standing is None:
        return None
    known = standing.ranks if standing.ranks and len(measured) == len(sides) else ()
    return ColumnStanding(dict(zip(measured, known, strict=bool(known))), standing.smallest)


def mean_ranks(columns: Sequence[Column]) -> dict[str, float]:
    """The mean rank of each backbone's best layer; empty unless all have scores in each of several columns.

    The best has rank 1, and equal scores share the mean of their ranks. It has no interval: one that is drawn
    from the errors of the scores covers the true mean rank far too seldom if scores are nearly equal. Which
    ranks the data allow in each column is in `ColumnStanding`.
    """
    tables = [column.best.set_index("backbone")["value"].astype(float) for column in columns]
    names = sorted({str(name) for table in tables for name in table.index})
    if len(tables) < 2 or len(names) < 2 or any(len(table) < len(names) for table in tables):
        return {}
    ranks = pd.concat([table.loc[names].rank(ascending=False) for table in tables], axis=1).mean(axis=1)
    return {name: float(rank) for name, rank in zip(names, ranks.loc[names], strict=True)}
