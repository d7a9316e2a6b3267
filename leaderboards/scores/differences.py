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
    """What one backbone brings to a comparison.

    Attributes:
        layer: Block, from 1.
        depth: Number of blocks of the backbone.
        pooling: Pooling of the features.
        score: Score of that layer, in percent.
    """

    layer: int
    depth: int
    pooling: str
    score: float

    @property
    def place(self) -> Place:
        """Where its items are."""
        return self.layer, "block", self.pooling

    @property
    def share(self) -> float:
        """Where in its depth the block is, above 0 to 1."""
        return self.layer / self.depth


def sides_of(rows: pd.DataFrame, name: str) -> list[Side]:
    """The blocks of a backbone that have a score, in order."""
    rows = rows[rows["backbone"] == name].sort_values("layer")
    fields = rows[["layer", "depth", "pooling", "value"]].itertuples(index=False, name=None)
    return [
        Side(int(layer), int(depth), str(pooling), float(value)) for layer, depth, pooling, value in fields
    ]


def best_side(rows: pd.DataFrame, name: str) -> Side:
    """The best block of a backbone, the lower one of equal ones."""
    (best,) = sides_of(best_rows(rows), name)
    return best


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference of two scores, in points.

    Attributes:
        value: The difference, on the items that both have.
        low: Lower end of its 95 % interval; NaN where items are too few to vary, or are not there.
        high: Upper end.
    """

    value: float
    low: float = math.nan
    high: float = math.nan


@dataclass(frozen=True, slots=True)
class ScoredLayer:
    """One score, and where its items are.

    Attributes:
        backbone: Name of the backbone.
        place: Layer, or set of layers, tap and pooling.
        score: In percent.
        transform: What was done to the features; "" for nothing.
    """

    backbone: str
    place: Place
    score: float
    transform: str = ""


def differences_of(
    column: Column, scores: Sequence[ScoredLayer], reference: ScoredLayer, items: Path | None
) -> list[Difference]:
    """Each score less a reference of the same column, with intervals where the items of all are there.

    Args:
        column: Their column.
        scores: What is compared with the reference.
        reference: What is taken off.
        items: Folder of the items; None where they are not there.
    """
    plain = [Difference(score.score - reference.score) for score in scores]
    if items is None:
        return plain
    measured = []
    for score in (*scores, reference):
        known = known_items(column, score.backbone, [score.place], items, score.transform)
        if score.place not in known:
            return plain
        measured.append(known[score.place])
    compared = paired_differences(measured, column.metric, reference=len(scores))
    if compared is None:
        return plain
    ends = zip(compared.value, compared.low, compared.high, strict=True)
    return [Difference(*map(float, numbers)) for numbers in ends][: len(scores)]
