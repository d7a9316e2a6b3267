"""Metrics of held-out predictions as one value per image, where the fits count, too.

A model that predicts the images of one fold was fitted to those of the others, so an image moves a score
twice: as one that is tested, and as one that is learnt from. The values are jackknife pseudo-values of the
whole procedure: a unit (an image, or a group of images) is left out of the test and of every fit. By the
inequality of Efron and Stein their variance is on average no smaller than that of the score on new data of
this size. With up to `CELLS` pairs of units and images each metric is computed again without each unit;
beyond, by its derivatives with respect to the weight and the predictions of each image.

Sources: Efron and Stein, The Jackknife Estimate of Variance, Annals of Statistics 9, 1981; Nadeau and Bengio,
Inference for the Generalization Error, Machine Learning 52, 2003 (why tested images alone are not enough).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from layerboard.tasks.metrics.arrays import Floats, Integers, Mask
from layerboard.tasks.statistics import linearised

CELLS = 1 << 14  # pairs of units and images, up to which metrics are computed again; 128 images
NORMAL_IQR = 1.349  # interquartile range of a normal distribution, in standard deviations
RULE = 1.84  # half width of a uniform kernel, in standard deviations times n^-0.2. Source: Silverman, 1986


class HeldOut(Protocol):
    """Predictions of images by models that did not see them, and what they would be without a unit."""

    @property
    def predicted(self) -> Floats:
        """[images targets]."""

    def changes(self) -> Floats:
        """What is added to the predictions if a unit is not learnt from: [targets images units]."""

    def moved(self, slopes: Floats) -> Floats:
        """Sums over images of slopes [metrics images targets] times `changes`: [metrics units targets]."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of true and predicted values of images."""

    # its values [R], from the truth [images], R predictions [R images] and which images count [R images];
    # NaN where it is undefined
    without: Callable[[Floats, Floats, Mask], Floats]
    given: Callable[[Floats, Floats], Floats]  # values [images] whose mean is the metric, for the same fits
    slopes: Callable[[Floats, Floats], Floats]  # derivatives with respect to the predictions, [images]


def refitted_values(
    metrics: Mapping[str, Metric],
    truth: Floats,
    held_out: HeldOut,
    unit: Integers,
    tested: Mask,
    targets: Sequence[int],
) -> dict[str, Floats]:
    """For each metric and target one value per tested image, whose mean is the metric: [tested targets].

    The truth is [images, all targets]; units [images] are numbered from 0. The value of a unit is shared
    by its images. Images that are not tested are the same in all samples. NaN for a metric that is undefined
    for a target.
    """
    units, unit = np.unique(unit[tested], return_inverse=True)
    count, predicted = len(units), held_out.predicted[tested]
    columns = [(truth[tested, target], predicted[:, target]) for target in targets]
    given = {
        name: np.stack([metric.given(*column) for column in columns], axis=1)
        for name, metric in metrics.items()
    }
    if count < 2:
        return given
    if count * len(unit) <= CELLS:
        changes = held_out.changes()[[*targets]][:, tested][:, :, units].swapaxes(1, 2)
        falls = _falls(metrics, columns, changes, unit != np.arange(count)[:, None], given)
        return {
            name: given[name].mean(axis=0) + _spread(fall * (count - 1) / count, unit)
            for name, fall in falls.items()
        }
    slopes = np.zeros((len(metrics), *truth.shape))
    with np.errstate(invalid="ignore", divide="ignore"):  # of undefined metrics
        for slope, metric in zip(slopes, metrics.values(), strict=True):
            rows = [metric.slopes(*column) for column in columns]
            slope[np.ix_(tested, np.asarray(targets))] = np.stack(rows, axis=1)
    rises = held_out.moved(np.nan_to_num(slopes, posinf=0, neginf=0))[:, units][:, :, targets]
    return {name: given[name] - _spread(rise, unit) for name, rise in zip(metrics, rises, strict=True)}


def _falls(
    metrics: Mapping[str, Metric],
    columns: Sequence[tuple[Floats, Floats]],
    changes: Floats,
    kept: Mask,
    given: Mapping[str, Floats],
) -> dict[str, Floats]:
    """How far each metric falls if a unit is not learnt from and not tested: [units targets].

    ``columns`` are the true and predicted values of each target, ``changes`` [targets units images] what is
    added to the predictions, ``kept`` [units images] marks the images of other units, and the means of
    ``given`` [images targets] are the metrics of all.
    """
    falls = {name: np.zeros((len(kept), len(columns))) for name in metrics}
    for number, ((true, guess), change) in enumerate(zip(columns, changes, strict=True)):
        for name, metric in metrics.items():
            rest = metric.without(true, guess + change, kept)
            falls[name][:, number] = np.where(np.isnan(rest), 0, given[name][:, number].mean() - rest)
    return falls


def _spread(falls: Floats, unit: Integers) -> Floats:
    """Falls [units targets] of a mean without each unit, as values of the images: [images targets]."""
    values = (falls / np.bincount(unit)[:, None])[unit] * len(unit)
    return np.asarray(values - values.mean(axis=0), np.float64)


def _mean(values: Floats, kept: Mask) -> Floats:
    """Means of the rows [R] of values [R images], over those that are kept."""
    return np.asarray((values * kept).sum(axis=1) / kept.sum(axis=1), np.float64)


def _quotient(above: Floats, below: Floats) -> Floats:
    return np.divide(above, below, out=np.full_like(above, np.nan), where=below > 0)


def _r2(truth: Floats, predicted: Floats, kept: Mask) -> Floats:
    centre = _mean(np.broadcast_to(truth, kept.shape), kept)[:, None]
    return 1 - _quotient(_mean((truth - predicted) ** 2, kept), _mean((truth - centre) ** 2, kept))


def _rho(truth: Floats, predicted: Floats, kept: Mask) -> Floats:
    both = (np.broadcast_to(truth, kept.shape), predicted)
    ranks = (np.mean(_ranked(values, kept)[0], axis=0) for values in both)
    first, second = (each - _mean(each, kept)[:, None] for each in ranks)
    size = np.sqrt(_mean(first**2, kept) * _mean(second**2, kept))
    return _quotient(_mean(first * second, kept), size)


def _average_precision(truth: Floats, predicted: Floats, kept: Mask) -> Floats:
    hits = kept & (truth > 0)
    (below, _), (below_hits, _) = _ranked(predicted, kept, hits)
    count = hits.sum(axis=1, keepdims=True)
    precision = (count - below_hits) / np.maximum(kept.sum(axis=1, keepdims=True) - below, 1)
    return _quotient((precision * hits).sum(axis=1), count[:, 0].astype(np.float64))


def _auroc(truth: Floats, predicted: Floats, kept: Mask) -> Floats:
    hits, others = kept & (truth > 0), kept & (truth <= 0)
    ((below, up_to),) = _ranked(predicted, others)
    pairs = (hits.sum(axis=1) * others.sum(axis=1)).astype(np.float64)
    return _quotient(((below + up_to) / 2 * hits).sum(axis=1), pairs)


def _ranked(values: Floats, *counted: Mask) -> list[tuple[Floats, Floats]]:
    """For each mask the numbers of its images below each value, and up to it: two arrays [R images]."""
    order = np.argsort(values, axis=1, kind="stable")
    index, ascending = np.arange(values.shape[1]), np.take_along_axis(values, order, axis=1)
    new = np.ones(values.shape, np.bool_)
    new[:, 1:] = ascending[:, 1:] != ascending[:, :-1]
    last = np.ones_like(new)
    last[:, :-1] = new[:, 1:]
    # the first and the last image of each run of equal values
    start = np.maximum.accumulate(np.where(new, index, 0), axis=1)
    end = np.minimum.accumulate(np.where(last, index, index[-1])[:, ::-1], axis=1)[:, ::-1]
    numbers = []
    for mask in counted:
        mine = np.take_along_axis(mask, order, axis=1).astype(np.float64)
        sums = np.cumsum(mine, axis=1)
        pair = np.empty((2, *values.shape))
        for row, ranked in zip(pair, ((sums - mine, start), (sums, end)), strict=True):
            np.put_along_axis(row, order, np.take_along_axis(*ranked, axis=1), axis=1)
        numbers.append((pair[0], pair[1]))
    return numbers


def _rho_slopes(truth: Floats, predicted: Floats) -> Floats:
    ranks, own = (linearised.centred_ranks(each)[0] for each in (truth, predicted))
    # an image gains by how much its own rank is above that of each one that it passes
    passed, gained = _near(predicted, np.ones(len(ranks)), ranks)
    norm = np.sqrt((ranks**2).sum() * (own**2).sum())
    return np.asarray((ranks * passed - gained) / norm, np.float64)


def _average_precision_slopes(truth: Floats, predicted: Floats) -> Floats:
    hits, every, relevant = np.sort(predicted[truth > 0]), np.sort(predicted), truth > 0
    shown = len(every) - np.searchsorted(every, predicted)
    hit = len(hits) - np.searchsorted(hits, predicted)
    # precision that a hit gains by passing an image that is none
    gain = np.where(relevant, 0, hit / shown**2 / len(hits))
    passed, gained = _near(predicted, relevant.astype(np.float64), gain)
    return np.where(relevant, gained, -gain * passed)


def _auroc_slopes(truth: Floats, predicted: Floats) -> Floats:
    relevant = (truth > 0).astype(np.float64)
    hits, others = _near(predicted, relevant, 1 - relevant)
    pairs = relevant.sum() * (1 - relevant).sum()
    return np.asarray(np.where(truth > 0, others, -hits) / pairs, np.float64)


def _near(predicted: Floats, *weights: Floats) -> list[Floats]:
    """Densities of weights [images] at the prediction of each image: [images] each.

    They are smoothed by a uniform kernel, which is wider than the steps of the predictions, if any.
    """
    order = np.argsort(predicted)
    ascending, distinct = predicted[order], np.unique(predicted)
    low, high = np.percentile(predicted, (25, 75))
    spread = min((high - low) / NORMAL_IQR, predicted.std()) or predicted.std()
    step = float(np.median(np.diff(distinct))) if len(distinct) > 1 else 1.0
    width = max(RULE * spread * len(predicted) ** -0.2, 1.5 * step)
    first, last = np.searchsorted(ascending, predicted - width), np.searchsorted(ascending, predicted + width)
    sums = [np.concatenate([[0], np.cumsum(each[order])]) for each in weights]
    return [np.asarray((each[last] - each[first]) / (2 * width), np.float64) for each in sums]


R2 = Metric(
    _r2,
    linearised.r2_values,
    lambda truth, predicted: 2 * (truth - predicted) / ((truth - truth.mean()) ** 2).sum(),
)
RANK_CORRELATION = Metric(_rho, linearised.rank_correlation_values, _rho_slopes)
MEAN_ERROR = Metric(
    lambda truth, predicted, kept: _mean(abs(truth - predicted), kept),
    lambda truth, predicted: abs(truth - predicted),
    lambda truth, predicted: np.sign(predicted - truth) / len(truth),
)
AVERAGE_PRECISION = Metric(
    _average_precision,
    lambda truth, predicted: linearised.average_precision_values(truth > 0, predicted),
    _average_precision_slopes,
)
AUROC = Metric(
    _auroc, lambda truth, predicted: linearised.area_under_roc(truth > 0, predicted), _auroc_slopes
)
