"""What transforms of features gain: each backbone's best layer with one against its best layer as it is."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from leaderboards.choices.honest import choices
from leaderboards.choices.selection import (
    Column,
    backbones_of,
    candidates,
    columns_of,
    is_analysis,
    is_set,
    newest,
    pooled,
    score_rows,
)
from leaderboards.choices.sides import Side, best_of, sides_of
from leaderboards.choices.ties import known_items
from leaderboards.display import natural
from leaderboards.records.items import Place
from tasks.uncertainty import paired_differences


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """What a transform gains one backbone in one column.

    Attributes:
        column: Task, dataset, data, protocol and metric.
        backbone: Name of the backbone.
        transform: What was done to its features.
        plain: Its best block as it is.
        best: Its best block with the transform.
        gain: The one less the other; both layers were chosen on the items that score them.
        same_layer: The same where the block stays that is best without it; None where that has no score.
        honest: Difference of the scores on halves of the data on which no layer was chosen; NaN where no
            choice is recorded.
    """

    column: Column
    backbone: str
    transform: str
    plain: Side
    best: Side
    gain: Difference
    same_layer: Difference | None
    honest: float


def transformed_rows(records: pd.DataFrame) -> pd.DataFrame:
    """The newest records of transformed features that rank, analyses and sets of layers apart."""
    return newest(records[(records["transform"] != "") & ~is_analysis(records) & ~is_set(records)])


def gains_of(records: pd.DataFrame, items: Path | None) -> tuple[Gain, ...]:
    """The gains of all transforms, by column, transform and backbone in the order of the tables.

    A backbone that was not scored without the transform, or has no score with it, is left out.

    Args:
        records: Columns of `Record`, of one suite.
        items: The items of their run; None where they are not there, and nothing says how sure a gain is.
    """
    plain, changed = score_rows(records), transformed_rows(records)
    found: list[Gain | None] = []
    for column in columns_of(plain):
        for transform in sorted({*column.rows(changed)["transform"]}, key=natural):
            # seen alone they are scores like any others
            own = score_rows(changed[changed["transform"] == transform].assign(transform=""))
            found += [
                _gain(plain, own, At(column, backbone.name, transform), items)
                for backbone in backbones_of(own)
            ]
    return tuple(gain for gain in found if gain is not None)


@dataclass(frozen=True, slots=True)
class At:
    """What a gain is of."""

    column: Column
    backbone: str
    transform: str


def _gain(plain: pd.DataFrame, own: pd.DataFrame, at: At, items: Path | None) -> Gain | None:
    """The gain of one backbone and transform in a column; None where one of the two has no score."""
    rows = [blocks_of(one, at) for one in (plain, own)]
    if any(one.empty for one in rows):
        return None
    before, after = (best_of(one, at.backbone) for one in rows)
    same = [side for side in sides_of(rows[1]) if side.layer == before.layer]
    gain, *other = _differences(at, before, [after, *same], items)
    made = [choices(one, at.column).get(at.backbone) for one in (plain, own)]
    return Gain(
        column=at.column,
        backbone=at.backbone,
        transform=at.transform,
        plain=before,
        best=after,
        gain=gain,
        same_layer=other[0] if other else None,
        honest=made[1].score - made[0].score if made[0] and made[1] else math.nan,
    )


def blocks_of(rows: pd.DataFrame, at: At) -> pd.DataFrame:
    """The blocks of a backbone that have a score in a column, in its primary pooling."""
    rows = candidates(pooled(rows, at.column))
    return rows[(rows["metric"] == at.column.metric) & (rows["backbone"] == at.backbone)]


@dataclass(frozen=True, slots=True)
class Measured:
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


def difference_of(column: Column, one: Measured, other: Measured, items: Path | None) -> Difference:
    """One score less another of the same column, with its interval where the items of both are there."""
    plain = Difference(one.score - other.score)
    if items is None:
        return plain
    measured = []
    for each in (one, other):
        found = known_items(column, each.backbone, [each.place], items, each.transform)
        if each.place not in found:
            return plain
        measured.append(found[each.place])
    difference = paired_differences(measured, column.metric, reference=1)
    if difference is None:
        return plain
    return Difference(*(float(ends[0]) for ends in (difference.value, difference.low, difference.high)))


def _differences(at: At, before: Side, after: Sequence[Side], items: Path | None) -> list[Difference]:
    """Scores with the transform less the one without it, paired over the items that all have."""
    plain = [Difference(side.score - before.score) for side in after]
    if items is None:
        return plain
    asked = ((side, at.transform) for side in after)
    measured = []
    for side, transform in (*asked, (before, "")):
        place = side.layer, "block", side.pooling
        found = known_items(at.column, at.backbone, [place], items, transform)
        if place not in found:
            return plain
        measured.append(found[place])
    compared = paired_differences(measured, at.column.metric, reference=len(after))
    if compared is None:
        return plain
    ends = zip(compared.value, compared.low, compared.high, strict=True)
    return [Difference(*map(float, one)) for one in list(ends)[: len(after)]]
