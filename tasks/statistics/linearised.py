"""Metrics of predictions as one value per image: the mean is the metric, the variance gives its error.

The values are jackknife pseudo-values: the metric, plus (images - 1) times its decrease without the image,
centred over the images. So intervals, paired tests and clusters of images follow as for any mean. Spearman's
rho has no fast leave-one-out sum, and F1 is not smooth: their values are linearised, the metric plus (images)
times its derivative with respect to the image's weight. Intervals of these are a little narrower.

Sources: Efron and Stein, Annals of Statistics 9, 1981 (jackknife); Särndal, Swensson and Wretman, Model
Assisted Survey Sampling, 1992, section 5.5 (linearisation).
"""

from typing import NamedTuple

import numpy as np

from layerboard.tasks.metrics.arrays import Floats, Integers, Mask


def r2_values(truth: Floats, predicted: Floats) -> Floats:
    """R2 of predictions [images], 1 - SSE / SST: at most 1, below 0 if worse than the mean: [images].

    NaN if the truth is the same for all images.
    """
    errors, spread = (truth - predicted) ** 2, (truth - truth.mean()) ** 2
    if not spread.any():
        return np.full(len(truth), np.nan)
    errors, spread = errors / spread.sum(), spread / spread.sum()
    # the mean of the truth changes, too, if an image is left out
    rest = 1 - spread * len(truth) / (len(truth) - 1)
    value = 1 - float(errors.sum())
    return _left_out(value, _quotient(rest - errors.sum() + errors, rest, value))


def rank_correlation_values(truth: Floats, predicted: Floats) -> Floats:
    """Spearman's rho of predictions [images], -1 to 1, with average ranks for ties: [images].

    NaN if the truth or the predictions are the same for all images.
    """
    (first, first_ranks), (second, second_ranks) = centred_ranks(truth), centred_ranks(predicted)
    norms = (first**2).sum(), (second**2).sum()
    if not all(norms):
        return np.full(len(truth), np.nan)
    size = np.sqrt(norms[0] * norms[1])
    rho = (first * second).sum() / size
    product = first * second + _above(first_ranks, second) + _above(second_ranks, first)
    lengths = [
        (ranks**2 + 2 * _above(numbers, ranks)) / norm
        for ranks, numbers, norm in ((first, first_ranks, norms[0]), (second, second_ranks, norms[1]))
    ]
    return np.asarray(rho + len(truth) * (product / size - rho * sum(lengths) / 2), np.float64)


def centred_ranks(values: Floats) -> tuple[Floats, Integers]:
    """Average ranks minus their mean, and the index of each value among the distinct ones: [images] each."""
    rank, counts = np.unique(values, return_inverse=True, return_counts=True)[1:]
    ranks = (np.cumsum(counts) - counts / 2)[rank]
    return ranks - ranks.mean(), rank


def average_precision_values(relevant: Mask, scores: Floats) -> Floats:
    """Average precision of scores [images], summed over steps of recall, 0 to 1: [images].

    Images with equal scores form one step. NaN if no image is relevant.
    """
    hits = relevant.sum()
    if not hits:
        return np.full(len(relevant), np.nan)
    step, every = np.unique(-scores, return_inverse=True, return_counts=True)[1:]
    new = np.bincount(step, relevant, len(every))  # relevant images of each step
    shown, hit = np.cumsum(every), np.cumsum(new)
    steps = new * hit / shown
    before, others = np.cumsum(steps) - steps, np.maximum(shown - 1, 1)
    # an image changes the precision of its own and all later steps; a relevant one also the number of hits
    lost, gained = ((new * each / others)[::-1].cumsum()[::-1] for each in (hit, hit - 1))
    without = np.where(
        relevant, before[step] + (gained - (hit - 1) / others)[step], before[step] + lost[step]
    )
    value = steps.sum() / hits
    return _left_out(value, _quotient(without, hits - relevant, value))


class Placements(NamedTuple):
    """For each image the share of images of the other kind that it is ranked correctly against: [images].

    Shares are 0 to 1; ties count one half. The mean over the images of either kind is the AUROC.
    """

    value: Floats
    defect: Mask

    @property
    def auroc(self) -> float:
        return float(self.value[self.defect].mean()) if self.value.size else float("nan")

    @property
    def pseudo_values(self) -> Floats:
        """Values [images] whose mean over the good images, and over the defective ones, is the AUROC.

        To first order, half the sum of the two means has the variance of the AUROC. Source: DeLong, DeLong
        and Clarke-Pearson, Biometrics 44, 1988.
        """
        return self.auroc + 2 * (self.value - self.auroc)


def placements(scores: Floats, defect: Mask) -> Placements:
    """Placements of the images with these scores [images]; empty if all images are of one kind."""
    good, bad = np.sort(scores[~defect]), np.sort(scores[defect])
    if not (len(good) and len(bad)):
        return Placements(np.zeros(0), np.zeros(0, np.bool_))
    value = np.where(defect, share_below(good, scores), 1 - share_below(bad, scores))
    return Placements(value, defect)


def share_below(ranked: Floats, values: Floats) -> Floats:
    """Share of the ascending numbers ``ranked`` that are below each value; equal ones count one half."""
    sides = np.searchsorted(ranked, values, "left") + np.searchsorted(ranked, values, "right")
    return np.asarray(sides / (2 * len(ranked)), np.float64)


def area_under_roc(relevant: Mask, scores: Floats) -> Floats:
    """AUROC of scores [images], 0 to 1, ties count one half: [images].

    NaN if all images, or none, are relevant. Source: DeLong et al., Biometrics 44, 1988.
    """
    placed = placements(scores, relevant)
    if not placed.value.size:
        return np.full(len(relevant), np.nan)
    of_kind = np.where(relevant, relevant.sum(), (~relevant).sum())
    without = _quotient(of_kind * placed.auroc - placed.value, of_kind - 1.0, placed.auroc)
    return _left_out(placed.auroc, without)


def f1_max_values(relevant: Mask, scores: Floats) -> Floats:
    """Maximum F1 over all thresholds of scores [images], 0 to 1: [images].

    The threshold is held fixed, since at the maximum F1 does not change with it to first order. NaN if no
    image is relevant.
    """
    hits = relevant.sum()
    if not hits:
        return np.full(len(relevant), np.nan)
    step, every = np.unique(-scores, return_inverse=True, return_counts=True)[1:]
    curve = 2 * np.cumsum(np.bincount(step, relevant)) / (np.cumsum(every) + hits)
    return f1_values(step <= curve.argmax(), relevant & (step <= curve.argmax()), relevant)


def f1_values(taken: Floats | Mask, hit: Floats | Mask, relevant: Floats | Mask) -> Floats:
    """F1, as a value per image, from predicted positives, true positives and positives: [images] each."""
    size = taken.sum() + relevant.sum()
    value = 2 * hit.sum() / size
    added = 2 * hit - value * (taken.astype(np.float64) + relevant)
    return np.asarray(value + len(hit) * added / size, np.float64)


def of_either_kind(value: float, values: Floats, relevant: Mask) -> Floats:
    """Values [images] of a metric for stratified sampling, with relevant and other images as the two strata.

    The mean over the images of either kind is the metric ``value``. There must be images of both kinds.
    """
    apart = np.empty(len(values))
    for kind in (relevant, ~relevant):
        apart[kind] = value + 2 * kind.mean() * (values[kind] - values[kind].mean())
    return apart


def _left_out(value: float, without: Floats) -> Floats:
    """Pseudo-values [images] of a metric, from its value and its values without each image [images]."""
    falls = (len(without) - 1) * (value - without)
    return np.asarray(value + falls - falls.mean(), np.float64)


def _quotient(top: Floats, below: Floats, undefined: float) -> Floats:
    """Quotients, with ``undefined`` for a division by 0: the metric is not defined without that image."""
    quotients = np.full(len(top), undefined)
    np.divide(top, below, out=quotients, where=np.abs(below) > 1e-12)
    return quotients


def _above(rank: Integers, values: Floats) -> Floats:
    """Sum of the values [images] of the images ranked above each one, plus half of those tied with it."""
    sums = np.bincount(rank, values)
    return np.asarray((sums.sum() - np.cumsum(sums) + sums / 2)[rank], np.float64)
