"""What layers chosen without labels lose over all backbones, and which criterion loses least."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from leaderboards.choices.selection import Column
from leaderboards.choices.unlabelled import RULES, TESTED, Named
from tasks.metrics.arrays import Floats
from tasks.metrics.layer_choice import below_zero, mean_reach
from tasks.metrics.multiple import holm

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
        return all(one.value < 0 for one in self.less.values())

    @property
    def shown(self) -> bool:
        """Whether it is lower by more than chance."""
        return self.lower and self.p < LEVEL


def mean_regret(named: Sequence[Named], by: str, column: Column | None = None) -> Mean:
    """Mean over backbones of a criterion's or rule's regret in a column, or of each one's mean over all."""
    own = [one for one in named if one.by == by and column in (None, one.column)]
    return _mean(_by_backbone({(one.backbone, one.column.key): one.regret for one in own}))


def mean_correlation(named: Sequence[Named], by: str, column: Column | None = None) -> Mean:
    """The same of its rank correlation with the score."""
    own = [one for one in named if one.by == by and column in (None, one.column)]
    return _mean(_by_backbone({(one.backbone, one.column.key): one.correlation for one in own}))


def against_rules(named: Sequence[Named]) -> tuple[Beaten, ...]:
    """Every criterion that does not name the last layer by what it is, beside both rules.

    Compared is what both name for the same backbone and column. A criterion beats the rules where it beats
    each of them, so the larger one of the p-values counts (an intersection-union test); these are adjusted
    for the number of criteria (Holm).
    """
    regrets = {(one.by, one.backbone, one.column.key): one.regret for one in named}
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
    found: dict[str, list[float]] = {}
    for (backbone, _), number in sorted(numbers.items()):
        if not math.isnan(number):
            found.setdefault(backbone, []).append(number)
    return np.array([np.mean(own) for own in found.values()], np.float64)


def _mean(values: Floats) -> Mean:
    """The mean of some backbones' numbers."""
    value = float(values.mean()) if len(values) else math.nan
    return Mean(value, mean_reach(values), len(values))


def _largest(p: Sequence[float]) -> float:
    """The largest of some p-values; NaN where one of them is."""
    return math.nan if any(math.isnan(one) for one in p) else max(p)
