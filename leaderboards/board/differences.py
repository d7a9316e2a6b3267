"""What the data can distinguish: how far layers may be below the best of a column, and pairs of layers."""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd

from layerboard.leaderboards.blocks.display import task_display
from layerboard.leaderboards.board.column import Column, Side
from layerboard.leaderboards.board.frames import best_rows
from layerboard.leaderboards.records.files import scored_path, task_key
from layerboard.leaderboards.records.items import Place, known_places
from layerboard.leaderboards.records.record import companion
from layerboard.tasks.framework.assess import (
    Choose,
    below_best,
    held_out_gain,
    paired_differences,
    pick_highest,
)
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
    if folder is None:
        return Bounds(rows)
    order = rows.sort_values("value", ascending=False, kind="stable").index
    measured: dict[Hashable, Items] = {}
    groups: dict[tuple[str, str], dict[Hashable, Side]] = {}
    for row, side in zip(rows.index, _sides(rows), strict=True):
        groups.setdefault((side.backbone, side.transform), {})[row] = side
    for sides in groups.values():
        items = known_items(column, [*sides.values()], folder)
        measured |= {row: items[side.place] for row, side in sides.items() if side.place in items}
    if len(order) and order[0] in measured:
        there = [row for row in order if row in measured]
        losses = below_best([measured[row] for row in there], column.metric)
        below = {row: each for row, each in zip(there, losses, strict=True) if each is not None}
        units = _units(column, measured[order[0]])
        if len(below) == 1 < len(rows):  # nothing was compared with it
            return Bounds(rows, units)
        rows.loc[[*below], "loss"] = [each.loss for each in below.values()]
        rows.loc[[*below], "maybe"] = [each.maybe for each in below.values()]
        return Bounds(rows, units)
    return Bounds(rows)


def _units(column: Column, items: Items) -> str:
    """What was sampled, counted: items, or what has several of them (videos; else groups)."""
    count = len({*items.clusters})
    unit = items.unit if count == len(items.keys) else "groups"
    return counted(count, task_display(column.task).sampled or unit)


def known_items(column: Column, sides: Sequence[Side], folder: Path) -> dict[Place, Items]:
    """Items of some layers, or sets, of a backbone in a column; none if the file is missing or another one.

    A leaderboard or a choice is useful without them: callers report what was not tested.
    """
    sets = any(stands_for_set(side.tap) for side in sides)
    key = task_key(column.task, column.dataset, column.protocol, sides[0].transform, sets)
    name = scored_path(key, sides[0].backbone)
    try:
        return known_places(companion(folder, name), {side.place for side in sides})
    except InputError:
        return {}


def sides_of(rows: pd.DataFrame, name: str, transform: str = "", *, sort: bool = True) -> list[Side]:
    """The layers of a backbone that have a score, in order of depth, or of the rows."""
    rows = rows[SIDE]  # of many columns, before rows are taken
    rows = rows[rows["backbone"] == name].assign(transform=transform)
    return _sides(rows.sort_values("layer", kind="stable") if sort else rows)


def _sides(rows: pd.DataFrame) -> list[Side]:
    fields = zip(*(rows[column].tolist() for column in SIDE), strict=True)
    return [
        Side(str(name), int(layer), int(depth), str(pooling), float(value), str(tap), str(transform))
        for name, layer, depth, pooling, value, tap, transform in fields
    ]


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
    plain = [Estimate(side.score - base.score) for side in sides]
    if items is None:
        return plain
    measured: list[Items] = []
    for side in (*sides, base):
        measured += known_items(column, [side], items).values()
    if len(measured) <= len(sides):
        return plain
    compared = paired_differences(measured, column.metric, reference=len(sides))
    if compared is None:
        return plain
    ends = zip(compared.value, compared.low, compared.high, strict=True)
    return [Estimate(*map(float, numbers)) for numbers in ends][: len(sides)]


def items_of_sides(column: Column, sides: Sequence[Side], folder: Path | None) -> dict[Side, Items]:
    """Items of those of some layers and sets of one backbone and transform that have them."""
    known = dict[Place, Items]()
    for of_sets in (False, True):
        part = [side for side in sides if stands_for_set(side.tap) == of_sets]
        known |= known_items(column, part, folder) if part and folder is not None else {}
    return {side: known[side.place] for side in sides if side.place in known}


def held_out_difference(
    column: Column,
    sides: Sequence[Side],
    base: Sequence[Side],
    measured: Mapping[Side, Items],
    choose: Choose = pick_highest,
) -> Estimate:
    """What a choice among some sides gains over the best of others, both held out (`held_out_gain`)."""
    if not all(side in measured for side in (*sides, *base)):
        return MISSING
    first, second = ([measured[side] for side in part] for part in (sides, base))
    gain = held_out_gain(first, second, column.metric, choose)
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
