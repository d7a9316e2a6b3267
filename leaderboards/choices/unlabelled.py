"""Which layers are named without labels, and how far their scores are from the best one: the regret.

A criterion of the analysis `label-free` names the layer at which it is highest, or nearest to what its paper
calls good; two rules that look at nothing name the last layer and that at two thirds of the depth.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from leaderboards.choices.analyses import Analysis, analyses_of
from leaderboards.choices.selection import Column, candidates, columns_of, is_floor, pooled, score_rows
from tasks.metrics.arrays import Floats, Integers
from tasks.metrics.layer_choice import named_layers, rank_correlation, regret

TASK = "label-free"

LAST = "last"
TWO_THIRDS = "two thirds"


@dataclass(frozen=True, slots=True)
class Criterion:
    """What names a layer by numbers of the layers.

    Attributes:
        metric: Name of the numbers.
        good: Number that is good, so that the nearest one names; None where the highest one does.
        is_last: Whether it names the last layer by what it is.
    """

    metric: str
    good: float | None = None
    is_last: bool = False

    def liking(self, numbers: Floats) -> Floats:
        """How much it likes each layer, the more the higher, by its numbers [layers]."""
        return numbers if self.good is None else -np.abs(numbers - self.good)


CRITERIA: tuple[Criterion, ...] = (
    Criterion("effective-rank"),
    Criterion("rankme"),
    Criterion("spectrum-decay", good=1.0),
    Criterion("cka-to-last", is_last=True),
    Criterion("neighbours-to-last", is_last=True),
    Criterion("view-neighbours"),
    Criterion("view-top1"),
)
"""Every criterion, with the direction of its source: a higher rank, a decay of 1, views that agree."""

RULES: dict[str, Callable[[int], int]] = {
    LAST: lambda depth: depth,
    TWO_THIRDS: lambda depth: max(1, math.floor(depth * 2 / 3 + 0.5)),
}
"""Rules that look at nothing: number of blocks to block."""

TESTED = tuple(one.metric for one in CRITERIA if not one.is_last)
"""Criteria of which it is asked whether they beat the rules."""


@dataclass(frozen=True, slots=True)
class Named:
    """The layers that one criterion or rule names for one backbone and column.

    Attributes:
        column: The scores.
        backbone: Name of the backbone.
        by: Name of the criterion or rule.
        layers: Blocks from 1; several where the criterion likes them equally, none where it names none.
        regret: Best score of all layers less theirs, in points; NaN where none is named.
        correlation: Spearman's rank correlation of liking and score over layers; NaN of a rule, or where
            there is none.
    """

    column: Column
    backbone: str
    by: str
    layers: tuple[int, ...]
    regret: float
    correlation: float


def choices_without_labels(records: pd.DataFrame) -> tuple[Named, ...]:
    """Every criterion and rule, for every trained backbone and column that has both scores and criteria.

    Candidates are the blocks from 1 on that have a score, in the pooling of the leaderboard. The criteria are
    those of the class token for scores of it, and of the mean of the patch tokens for all others. They are of
    the column's own images where there are some, else of the first ones that there are.

    Args:
        records: Columns of `Record`, of one suite, each identity once; `newest` gives such.
    """
    described = records[(records["task"] == TASK) & records["value"].notna()]
    described = described[(described["tap"] == "block") & (described["layer"] >= 1)]
    homes = analyses_of(described)
    if not homes:
        return ()
    scores = score_rows(records[records["trained"].astype(bool) & ~is_floor(records)])
    criteria = {home: _by_backbone(home.rows(described)) for home in homes}
    return tuple(
        one
        for column in columns_of(scores)
        for one in _of_column(scores, column, criteria[_home(column, homes)])
    )


def _home(column: Column, homes: tuple[Analysis, ...]) -> Analysis:
    """The criteria that stand beside a column's scores."""
    return min(homes, key=lambda home: (home.dataset != column.dataset, home.protocol != column.protocol))


def _by_backbone(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Numbers of the criteria of each backbone."""
    return {str(name): own for name, own in rows.groupby("backbone")}


def _of_column(scores: pd.DataFrame, column: Column, criteria: Mapping[str, pd.DataFrame]) -> Iterator[Named]:
    """What is named for each backbone of a column."""
    rows = pooled(scores, column)
    rows = candidates(rows[rows["metric"] == column.metric])
    for name, own in rows.groupby("backbone"):
        if str(name) in criteria:
            yield from _of_backbone(own.sort_values("layer"), column, criteria[str(name)])


def _of_backbone(rows: pd.DataFrame, column: Column, numbers: pd.DataFrame) -> Iterator[Named]:
    """What is named for one backbone, by the rules first."""
    backbone, depth = str(rows["backbone"].iloc[0]), int(rows["depth"].max())
    layers, scores = rows["layer"].to_numpy(int), rows["value"].to_numpy(float)

    def _named(by: str, places: Integers, correlation: float) -> Named:
        lost = regret(scores, places) if len(places) else math.nan
        return Named(column, backbone, by, tuple(layers[places].tolist()), lost, correlation)

    numbers = numbers[numbers["pooling"] == _pooling(str(rows["pooling"].iloc[0]), numbers)]
    for rule, block in RULES.items():
        yield _named(rule, np.flatnonzero(layers == block(depth)), math.nan)
    for one in CRITERIA:
        own = numbers[numbers["metric"] == one.metric]
        by_layer = dict(zip(own["layer"].astype(int), own["value"].astype(float), strict=True))
        liking = one.liking(np.array([by_layer.get(int(layer), math.nan) for layer in layers]))
        yield _named(one.metric, named_layers(liking), rank_correlation(liking, scores))


def _pooling(pooling: str, numbers: pd.DataFrame) -> str:
    """Of which vectors the criteria are that stand beside scores of a pooling."""
    return "cls" if pooling == "cls" and (numbers["pooling"] == "cls").any() else "mean"
