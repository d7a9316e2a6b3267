"""Effects: numbers that are above 0 if a claim holds, with 95 % intervals, and how several become one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import copysign, inf, isnan, nan, sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, ndtri, stdtrit

from layerboard.tasks.metrics.arrays import Floats, Integers

TAIL = 0.025  # of each end of an interval
DRAWS = 999  # random exchanges
ROUNDING = 9  # decimals that are not rounding errors


class AbsentError(Exception):
    """Something that a claim needs is not among the records: the reason, in words."""


@dataclass(frozen=True, slots=True)
class Effect:
    """A number that is above 0 if what it is of holds, with the ends of its 95 % interval; NaN for none.

    ``unit`` says what varies behind the interval, with its number. ``subject`` names what the number is of.
    """

    value: float
    low: float
    high: float
    unit: str
    subject: str = ""
    freedom: float = inf  # degrees of freedom of the standard error

    def widened(self, count: int) -> "Effect":
        """Its interval if ``count`` intervals are to hold together (Bonferroni)."""
        factor = _quantile(self.freedom, TAIL / count) / _quantile(self.freedom, TAIL)
        low, high = (self.value + factor * (end - self.value) for end in (self.low, self.high))
        return replace(self, low=low, high=high)

    def turned(self) -> "Effect":
        """The effect with the opposite sign."""
        return replace(self, value=-self.value, low=-self.high, high=-self.low)

    def moved(self, by: float) -> "Effect":
        """The effect and its interval plus a constant."""
        return replace(self, value=self.value + by, low=self.low + by, high=self.high + by)

    def of(self, subject: str) -> "Effect":
        """The same effect of a named subject; parts that have names keep them behind it."""
        return replace(self, subject=", ".join(filter(None, [subject, self.subject])))


def _quantile(freedom: float, tail: float) -> float:
    return float(-ndtri(tail) if freedom == inf else -stdtrit(freedom, tail))


def least(effects: Sequence[Effect]) -> Effect:
    """The least sure of several effects: above 0 if all are (an intersection-union test).

    Effects may have different units. If the upper end of one is below 0, as one of so many simultaneous
    intervals, it is the surest of these; otherwise the one that is above 0 by the fewest standard errors. Its
    lower end has no correction: if one effect is at most 0, the chance that its own interval is above 0
    bounds the error. An effect without an interval is the least sure.

    Source: Berger, Multiparameter Hypothesis Testing and Acceptance Sampling, Technometrics 24, 1982.
    """
    ends = {each: each.widened(len(effects)).high for each in effects}
    if below := [each for each in effects if ends[each] < 0]:
        deciding = min(below, key=lambda each: _ratio(each.value, each.high - each.value))
    else:
        deciding = min(effects, key=lambda each: _ratio(each.value, each.value - each.low))
    return replace(deciding, high=ends[deciding])


def largest(effects: Sequence[Effect]) -> Effect:
    """The surest of several effects: above 0 if any is, corrected for their number (Bonferroni)."""
    return least([each.turned() for each in effects]).turned()


def _ratio(value: float, reach: float) -> float:
    """A value in parts of the reach of its interval; the lowest of all without an interval."""
    if isnan(reach):
        return -inf
    return value / reach if reach > 0 else copysign(inf, value) if value else 0.0


def mean_effect(values: ArrayLike, unit: str) -> Effect:
    """The mean of values that are independent units, with Student's interval; NaN values are left out."""
    array = _finite(values)
    return _student(
        float(array.mean()),
        array.var(ddof=1) / len(array) if len(array) > 1 else nan,
        len(array) - 1,
        f"{len(array)} {unit}",
    )


def contrast(first: ArrayLike, second: ArrayLike, unit: str) -> Effect:
    """The mean of some independent units minus that of others, with Welch's interval."""
    groups = _finite(first), _finite(second)
    counts = [len(group) for group in groups]
    value, named = float(groups[0].mean() - groups[1].mean()), f"{counts[0]} + {counts[1]} {unit}"
    if min(counts) < 2:
        return Effect(value, nan, nan, named)
    parts = [float(group.var(ddof=1)) / len(group) for group in groups]
    total = sum(parts)
    below = sum(part**2 / (count - 1) for part, count in zip(parts, counts, strict=True))
    return _student(value, total, total**2 / below if below else inf, named)


def _student(value: float, variance: float, freedom: float, unit: str) -> Effect:
    value = round(value, ROUNDING)
    if isnan(variance):
        return Effect(value, nan, nan, unit)
    reach = _quantile(freedom, TAIL) * sqrt(variance)
    return Effect(value, value - reach, value + reach, unit, freedom=freedom)


def share_above(count: int, total: int, bound: float, unit: str) -> Effect:
    """A share minus a bound, with the exact interval of Clopper and Pearson (Biometrika 26, 1934)."""
    low = float(betaincinv(count, total - count + 1, TAIL)) if count else 0.0
    high = float(betaincinv(count + 1, total - count, 1 - TAIL)) if count < total else 1.0
    return Effect(count / total - bound, low - bound, high - bound, f"{count} of {total} {unit}")


def permuted(observed: float, shuffled: Floats, unit: str) -> Effect:
    """A statistic minus its mean under exchange of what the claim orders, with the interval of this exchange.

    ``shuffled`` are its values after random exchanges. The interval is above 0 if and only if at most 2.5 %
    of these, the observed one included, are as high: an exact test.

    Source: Phipson and Smyth, Permutation P-values Should Never Be Zero, SAGMB 9, 2010.
    """
    every = _finite(np.append(shuffled, observed)).round(ROUNDING)
    observed, every = float(every[-1]), np.sort(every)
    if len(every) <= len(shuffled):
        raise AbsentError("some layers that it needs have no number")
    beyond = int(TAIL * len(every))  # so many may be as high
    low, high = float(every[beyond]), float(every[len(every) - 1 - beyond])
    return Effect(observed - float(every.mean()), observed - high, observed - low, unit)


def orders(count: int, stream: int = 0) -> Integers:
    """Random orders of ``count`` things [draws count], the same in each call for a stream."""
    return np.random.default_rng(stream).permuted(np.tile(np.arange(count), (DRAWS, 1)), axis=1)


def _finite(values: ArrayLike) -> Floats:
    array = np.asarray(values, np.float64).ravel()
    array = array[np.isfinite(array)]
    if not len(array):
        raise AbsentError("some layers that it needs have no number")
    return array
