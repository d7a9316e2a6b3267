"""Which layers are named without labels, how far their scores are from the best one, and what loses least.

A criterion of the analysis `label-free` names the layer at which it is highest, or nearest to what its paper
calls good; two rules that look at nothing name the last layer and that at two thirds of the depth.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from leaderboards.board import Board
from leaderboards.scores.analyses import Analysis, analyses_of
from leaderboards.scores.column import Column
from tasks.metrics.arrays import Floats, Integers
from tasks.metrics.best_set import holm
from tasks.metrics.layer_choice import below_zero, mean_reach, named_layers, rank_correlation, regret

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

TESTED = tuple(criterion.metric for criterion in CRITERIA if not criterion.is_last)
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


def choices_without_labels(board: Board) -> tuple[Named, ...]:
    """Every criterion and rule, for every trained backbone and column that has both scores and criteria.

    Candidates are the blocks from 1 on that have a score, in the pooling of the leaderboard. The criteria are
    those of the class token for scores of it, and of the mean of the patch tokens for all others. They are of
    the column's own images where there are some, else of the first ones that there are.
    """
    described = board.analysed[board.analysed["task"] == TASK]
    described = described[
        described["value"].notna() & (described["tap"] == "block") & (described["layer"] >= 1)
    ]
    homes = analyses_of(described)
    if not homes:
        return ()
    trained = board.only(board.records[board.records["trained"].astype(bool)])
    criteria = {
        home: {str(name): rows for name, rows in home.rows(described).groupby("backbone")} for home in homes
    }
    return tuple(
        named for column in trained.columns for named in _of_column(column, criteria[_home(column, homes)])
    )


def _home(column: Column, homes: tuple[Analysis, ...]) -> Analysis:
    """The criteria that stand beside a column's scores."""
    return min(homes, key=lambda home: (home.dataset != column.dataset, home.protocol != column.protocol))


def _of_column(column: Column, criteria: Mapping[str, pd.DataFrame]) -> Iterator[Named]:
    """What is named for each backbone of a column."""
    for name, rows in column.candidates.groupby("backbone"):
        if str(name) in criteria:
            yield from _of_backbone(rows.sort_values("layer"), column, criteria[str(name)])


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
    for criterion in CRITERIA:
        own = numbers[numbers["metric"] == criterion.metric]
        by_layer = dict(zip(own["layer"].astype(int), own["value"].astype(float), strict=True))
        liking = criterion.liking(np.array([by_layer.get(int(layer), math.nan) for layer in layers]))
        yield _named(criterion.metric, named_layers(liking), rank_correlation(liking, scores))


def _pooling(pooling: str, numbers: pd.DataFrame) -> str:
    """The pooling whose vectors the criteria are of that stand beside scores of a pooling."""
    return "cls" if pooling == "cls" and (numbers["pooling"] == "cls").any() else "mean"


Key = tuple[str, str, str, str]
"""What tells a column from the others, as `Column.key`."""

LEVEL = 0.05
"""p below which a criterion is said to beat the rules."""


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over backbones.

    Attributes:
        value: NaN where there is no backbone.
        reach: Half its 95 % interval, as if the backbones were drawn from many like them; NaN of fewer than
            three.
        backbones: How many.
    """

    value: float
    reach: float
    backbones: int


@dataclass(frozen=True, slots=True)
class Beaten:
    """One criterion beside the rules, over backbones, of each of which all columns count together.

    Attributes:
        criterion: Its name.
        less: For each rule the mean of the criterion's regret less the rule's, in points: below 0 where the
            criterion is better.
        p: That both are below 0 only by chance, adjusted for all criteria; NaN where there is none.
    """

    criterion: str
    less: dict[str, Mean]
    p: float

    @property
    def lower(self) -> bool:
        """Whether its mean regret is lower than that of every rule."""
        return all(difference.value < 0 for difference in self.less.values())

    @property
    def shown(self) -> bool:
        """Whether it is lower by more than chance."""
        return self.lower and self.p < LEVEL


def mean_regret(named: Sequence[Named], by: str, column: Column | None = None) -> Mean:
    """Mean over backbones of a criterion's or rule's regret in a column, or of each one's mean over all."""
    own = [choice for choice in named if choice.by == by and column in (None, choice.column)]
    return _mean(_by_backbone({(choice.backbone, choice.column.key): choice.regret for choice in own}))


def mean_correlation(named: Sequence[Named], by: str, column: Column | None = None) -> Mean:
    """The mean of a criterion's rank correlations with the score."""
    own = [choice for choice in named if choice.by == by and column in (None, choice.column)]
    return _mean(_by_backbone({(choice.backbone, choice.column.key): choice.correlation for choice in own}))


def against_rules(named: Sequence[Named]) -> tuple[Beaten, ...]:
    """Every criterion that does not name the last layer by what it is, beside both rules.

    Compared is what both name for the same backbone and column. A criterion beats the rules where it beats
    each of them, so the larger one of the p-values counts (an intersection-union test); these are adjusted
    for the number of criteria (Holm).
    """
    regrets = {(choice.by, choice.backbone, choice.column.key): choice.regret for choice in named}
    less = {by: {rule: _less(regrets, by, rule) for rule in RULES} for by in TESTED}
    raw = [_largest([below_zero(values) for values in less[by].values()]) for by in TESTED]
    return tuple(
        Beaten(by, {rule: _mean(values) for rule, values in less[by].items()}, float(p))
        for by, p in zip(TESTED, holm(np.array(raw)), strict=True)
    )


def _less(regrets: Mapping[tuple[str, str, Key], float], by: str, rule: str) -> Floats:
    """A criterion's regret less a rule's, of each backbone's mean over columns: [backbones]."""
    pairs = {
        (backbone, key): regret - regrets[rule, backbone, key]
        for (name, backbone, key), regret in regrets.items()
        if name == by
    }
    return _by_backbone(pairs)


def _by_backbone(numbers: Mapping[tuple[str, Key], float]) -> Floats:
    """Each backbone's mean over columns, without NaN: [backbones], in the order of their names."""
    values_of: dict[str, list[float]] = {}
    for (backbone, _), number in sorted(numbers.items()):
        if not math.isnan(number):
            values_of.setdefault(backbone, []).append(number)
    return np.array([np.mean(own) for own in values_of.values()], np.float64)


def _mean(values: Floats) -> Mean:
    """The mean of some backbones' numbers."""
    value = float(values.mean()) if len(values) else math.nan
    return Mean(value, mean_reach(values), len(values))


def _largest(p: Sequence[float]) -> float:
    """The largest of some p-values; NaN where one of them is."""
    return math.nan if any(math.isnan(value) for value in p) else max(p)
