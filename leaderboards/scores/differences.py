"""The layers of backbones that are put beside each other, and the differences of their scores."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from leaderboards.records.items import Place
from leaderboards.scores.column import Column
from leaderboards.scores.frames import best_rows
from leaderboards.scores.ties import known_items
from tasks.uncertainty import paired_differences


@dataclass(frozen=True, slots=True)
class Side:
    """A layer of a backbone, or a set of layers, with its score in a column."""

    backbone: str
    layer: int  # block, from 1
    depth: int  # blocks of the backbone
    pooling: str
    score: float  # percent
    tap: str = "block"
    transform: str = ""  # what was done to the features

    @property
    def place(self) -> Place:
        return self.layer, self.tap, self.pooling


def sides_of(rows: pd.DataFrame, name: str, transform: str = "") -> list[Side]:
    """The layers of a backbone that have a score, in order."""
    rows = rows[rows["backbone"] == name].sort_values("layer", kind="stable")
    fields = rows[["layer", "depth", "pooling", "value", "tap"]].itertuples(index=False, name=None)
    return [
        Side(name, int(layer), int(depth), str(pooling), float(value), str(tap), transform)
        for layer, depth, pooling, value, tap in fields
    ]


def best_side(rows: pd.DataFrame, name: str, transform: str = "") -> Side:
    """The best block of a backbone, the lower one of equal ones."""
    (best,) = sides_of(best_rows(rows), name, transform)
    return best


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference of two scores, in points, on the items that both have, and the ends of its 95 % interval.

    The ends are NaN where items are too few to vary, or are not there.
    """

    value: float
    low: float = math.nan
    high: float = math.nan


def differences_of(
    column: Column, sides: Sequence[Side], reference: Side, items: Path | None
) -> list[Difference]:
    """Each score less that of a reference, with intervals where the items of all are there."""
    plain = [Difference(side.score - reference.score) for side in sides]
    if items is None:
        return plain
    measured = []
    for side in (*sides, reference):
        known = known_items(column, side.backbone, [side.place], items, side.transform)
        if side.place not in known:
            return plain
        measured.append(known[side.place])
    compared = paired_differences(measured, column.metric, reference=len(sides))
    if compared is None:
        return plain
    ends = zip(compared.value, compared.low, compared.high, strict=True)
    return [Difference(*map(float, numbers)) for numbers in ends][: len(sides)]
