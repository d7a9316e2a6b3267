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

    # values [images] whose mean is the metric, for the same fits; NaN where it is undefined
    given: Callable[[Floats, Floats], Floats]
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
    ``given`` [images targets] are the metrics of all. One that is undefined without a unit does not fall.
    """
    falls = {name: np.zeros((len(kept), len(columns))) for name in metrics}
    for number, ((true, guess), change) in enumerate(zip(columns, changes, strict=True)):
        for name, metric in metrics.items():
            value = given[name][:, number].mean()
            pairs = ((true[rest], (guess + added)[rest]) for rest, added in zip(kept, change, strict=True))
            rest = np.array([metric.given(*pair).mean() for pair in pairs])
            falls[name][:, number] = np.where(np.isnan(rest), 0, value - rest)
    return falls


def _spread(falls: Floats, unit: Integers) -> Floats:
    """Falls [units targets] of a mean without each unit, as values of the images: [images targets]."""
    values = (falls / np.bincount(unit)[:, None])[unit] * len(unit)
    return np.asarray(values - values.mean(axis=0), np.float64)


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
    linearised.r2_values,
    lambda truth, predicted: 2 * (truth - predicted) / ((truth - truth.mean()) ** 2).sum(),
)
RANK_CORRELATION = Metric(linearised.rank_correlation_values, _rho_slopes)
MEAN_ERROR = Metric(
    lambda truth, predicted: abs(truth - predicted),
    lambda truth, predicted: np.sign(predicted - truth) / len(truth),
)
AVERAGE_PRECISION = Metric(
    lambda truth, predicted: linearised.average_precision_values(truth > 0, predicted),
    _average_precision_slopes,
)
AUROC = Metric(lambda truth, predicted: linearised.area_under_roc(truth > 0, predicted), _auroc_slopes)
