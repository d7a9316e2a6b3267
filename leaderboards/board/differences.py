"""What the data can distinguish: backbones that may be the best of a column, and pairs of layers."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from layerboard.leaderboards.board.column import Column, Side
from layerboard.leaderboards.board.frames import best_rows
from layerboard.leaderboards.records.files import scored_path, task_key
from layerboard.leaderboards.records.items import Place, read_items
from layerboard.leaderboards.records.record import companion
from layerboard.tasks.framework.assess import confidence_set, paired_differences
from layerboard.tasks.framework.base import Items
from layerboard.tasks.statistics.resolution import CRITICAL, Enough, enough_units
from layerboard.zoo.errors import InputError
from layerboard.zoo.spec import stands_for_set

SetTest = Callable[[Sequence[Sequence[Items]], str], list[bool | None]]
"""Whether each rival, given by its layers, may be the best in a metric; None where that cannot be told."""


@dataclass(frozen=True, slots=True)
class Ties:
    """Confidence set of the best of one column, by names of backbones."""

    tied: frozenset[str] = frozenset()  # these and the column's best include the true best with 95 %
    apart: frozenset[str] = frozenset()  # worse
    untested: frozenset[str] = frozenset()  # no measurements, too few, or of other items than the best's


ColumnTies = Mapping[tuple[str, str, str, str], Ties]  # by `Column.key`


def column_ties(columns: Iterable[Column], folder: Path, test: SetTest = confidence_set) -> ColumnTies:
    """The backbones that may be the best of each column, by `Column.key`, from a folder of items.

    A backbone takes part with its best layer and all layers tied with that one, since the layer was chosen on
    the same data. The column's best is the first backbone, in table order, that reaches the best score;
    randomness is seeded, and the result does not depend on the order of the records. Others with the same
    score are best, too, and take part unmarked; the random floor does not take part.
    """
    return {column.key: _ties(column, folder, test) for column in columns}


def _ties(column: Column, folder: Path, test: SetTest) -> Ties:
    best = column.best.sort_values("value", ascending=False, kind="stable")
    below = set(best.loc[best["value"] < best["value"].max(), "backbone"])
    if not below:
        return Ties()
    measured = {str(name): _measured(best_side(best, name), column, folder) for name in best["backbone"]}
    verdicts: dict[str, bool | None] = dict.fromkeys(below)
    if next(iter(measured.values())):
        there = {name: items for name, items in measured.items() if items}
        verdicts |= zip(there, test([*there.values()], column.metric), strict=True)
    tied, apart, untested = (
        frozenset(name for name in below if verdicts[name] is verdict) for verdict in (True, False, None)
    )
    return Ties(tied, apart, untested)


def _measured(best: Side, column: Column, folder: Path) -> list[Items]:
    """Items of a backbone's best layer and of those tied with it; none if those of the best are missing."""
    layers = column.candidates
    sides = [best, *sides_of(layers[layers["tied"].astype(bool)], best.backbone)]
    items = known_items(column, sides, folder)
    return [items[side.place] for side in sides if side.place in items] if best.place in items else []


def known_items(column: Column, sides: Sequence[Side], folder: Path) -> dict[Place, Items]:
    """Items of some layers, or sets, of a backbone in a column; none if the file is missing or another one.

    A leaderboard or a choice is useful without them: callers report what was not tested.
    """
    sets = any(stands_for_set(side.tap) for side in sides)
    key = task_key(column.task, column.dataset, column.protocol, sides[0].transform, sets)
    name = scored_path(key, sides[0].backbone)
    try:
        return read_items(companion(folder, name), [side.place for side in sides])
    except InputError:
        return {}


def sides_of(rows: pd.DataFrame, name: str, transform: str = "") -> list[Side]:
    """The layers of a backbone that have a score, in order."""
    rows = rows[rows["backbone"] == name].sort_values("layer", kind="stable")
    fields = rows[["layer", "depth", "pooling", "value", "tap"]].itertuples(index=False, name=None)
    return [
        Side(name, int(layer), int(depth), str(pooling), float(value), str(tap), transform)
        for layer, depth, pooling, value, tap in fields
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
