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
from leaderboards.scores.column import Column
from leaderboards.scores.frames import candidates, sources_of
from tasks.metrics.arrays import Floats, Integers
from tasks.metrics.best_set import holm
from tasks.metrics.layer_choice import below_zero, mean_reach, named_layers, rank_correlation, regret

TASK = "label-free"
LEVEL = 0.05  # p below which a criterion is said to beat the rules


@dataclass(frozen=True, slots=True)
class Criterion:
    """What names a layer by numbers of the layers."""

    metric: str
    good: float | None = None  # the number nearest to it names; None where the highest one does
    is_last: bool = False  # whether it names the last layer by what it is


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

RULES: dict[str, Callable[[int], int]] = {  # they look at nothing: number of blocks to block
    "last": lambda depth: depth,
    "two thirds": lambda depth: max(1, math.floor(depth * 2 / 3 + 0.5)),
}

TESTED = tuple(criterion.metric for criterion in CRITERIA if not criterion.is_last)
"""Criteria of which it is asked whether they beat the rules."""


@dataclass(frozen=True, slots=True)
class Named:
    """The layers that one criterion or rule names for one backbone and column."""

    column: Column
    backbone: str
    by: str  # name of the criterion or rule
    layers: tuple[int, ...]  # from 1; several that the criterion likes equally, none where it names none
    regret: float  # best score of all layers less theirs, in points; NaN where none is named
    correlation: float  # Spearman's, of liking and score over layers; NaN of a rule, or where there is none


def choices_without_labels(board: Board) -> tuple[Named, ...]:
    """Every criterion and rule, for every trained backbone and column that has both scores and criteria.

    Candidates are the blocks from 1 on that have a score, in the pooling of the leaderboard. The criteria are
    those of the class token for scores of it, and of the mean of the patch tokens for all others. They are of
    the column's own images where there are some, else of the first ones that there are.
    """
    rows = candidates(board.analysed[board.analysed["task"] == TASK])
    homes = sources_of(rows)
    if not homes:
        return ()
    named: list[Named] = []
    for column in board.only(board.records[board.records["trained"].astype(bool)]).columns:
        home = min(homes, key=lambda home: (home.dataset != column.dataset, home.protocol != column.protocol))
        criteria = dict(iter(home.rows.groupby("backbone")))
        for name, scores in column.candidates.groupby("backbone"):
            if name in criteria:
                named += _of_backbone(scores.sort_values("layer"), column, criteria[name])
    return tuple(named)


def _of_backbone(rows: pd.DataFrame, column: Column, numbers: pd.DataFrame) -> Iterator[Named]:
    """What is named for one backbone, by the rules first."""
    backbone, depth = str(rows["backbone"].iloc[0]), int(rows["depth"].max())
    layers, scores = rows["layer"].to_numpy(int), rows["value"].to_numpy(float)

    def _named(by: str, places: Integers, correlation: float) -> Named:
        lost = regret(scores, places) if len(places) else math.nan
        return Named(column, backbone, by, tuple(layers[places].tolist()), lost, correlation)

    of_class = rows["pooling"].iloc[0] == "cls" and (numbers["pooling"] == "cls").any()
    numbers = numbers[numbers["pooling"] == ("cls" if of_class else "mean")]
    for rule, block in RULES.items():
        yield _named(rule, np.flatnonzero(layers == block(depth)), math.nan)
    for criterion in CRITERIA:
        own = numbers[numbers["metric"] == criterion.metric]
        by_layer = dict(zip(own["layer"].astype(int), own["value"].astype(float), strict=True))
        liking = np.array([by_layer.get(int(layer), math.nan) for layer in layers])
        if criterion.good is not None:
            liking = -np.abs(liking - criterion.good)
        yield _named(criterion.metric, named_layers(liking), rank_correlation(liking, scores))


Key = tuple[str, str, str, str]  # of a column, as `Column.key`


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over backbones."""

    value: float  # NaN where there is no backbone
    reach: float  # half its 95 % interval, as if they were drawn from many like them; NaN of fewer than three
    backbones: int


@dataclass(frozen=True, slots=True)
class Beaten:
    """One criterion beside the rules, over backbones, of each of which all columns count together.

    ``less`` is for each rule the mean of the criterion's regret less the rule's, in points, below 0 where the
    criterion is better; ``p`` says that both are below 0 by chance, adjusted for all criteria (NaN: no p).
    """

    criterion: str
    less: dict[str, Mean]
    p: float

    @property
    def lower(self) -> bool:
        return all(difference.value < 0 for difference in self.less.values())

    @property
    def shown(self) -> bool:
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
    regrets: dict[str, dict[tuple[str, Key], float]] = {}
    for choice in named:
        regrets.setdefault(choice.by, {})[choice.backbone, choice.column.key] = choice.regret
    less = {
        by: {
            rule: _by_backbone({key: lost - regrets[rule][key] for key, lost in regrets.get(by, {}).items()})
            for rule in RULES
        }
        for by in TESTED
    }
    p = [np.max([below_zero(values) for values in less[by].values()]) for by in TESTED]  # NaN where one is
    return tuple(
        Beaten(by, {rule: _mean(values) for rule, values in less[by].items()}, float(adjusted))
        for by, adjusted in zip(TESTED, holm(np.array(p)), strict=True)
    )


def _by_backbone(numbers: Mapping[tuple[str, Key], float]) -> Floats:
    """Each backbone's mean over columns, without NaN: [backbones], in the order of their names."""
    values_of: dict[str, list[float]] = {}
    for (backbone, _), number in sorted(numbers.items()):
        if not math.isnan(number):
            values_of.setdefault(backbone, []).append(number)
    return np.array([np.mean(own) for own in values_of.values()], np.float64)


def _mean(values: Floats) -> Mean:
    return Mean(float(values.mean()) if len(values) else math.nan, mean_reach(values), len(values))
