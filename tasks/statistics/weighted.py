"""Scores as functions of weighted units, for standard errors and splits into halves.

A unit is what was sampled (an image, a query, a video, a pair), and its weight is how often it counts. The
derivative of a score with respect to the weights gives its sampling variance, without resampling.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from math import comb
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from layerboard.tasks.metrics.arrays import Floats, Integers, Mask
from layerboard.tasks.metrics.partitions import Contingency, agreement, slopes


def halves(stratum: Integers, splits: int, seed: int) -> NDArray[np.bool_]:
    """Random halves, True for the first half: [splits units]. Each stratum is split in half.

    In a stratum with an odd number of units, one goes to either half at random.
    """
    generator = np.random.default_rng(seed)
    first = np.zeros((splits, len(stratum)), dtype=bool)
    for members in group_members(stratum):
        size = len(members)
        taken = size // 2 + generator.integers(2, size=(splits, 1)) * (size % 2)
        first[:, members] = generator.permuted(np.arange(size) < taken, axis=1)
    return first


def group_members(names: Integers) -> list[Integers]:
    """Indices of the members of each group, in the order of the group numbers."""
    order = np.argsort(names, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(names[order])) + 1) if len(order) else []


Index = Literal["purity", "NMI", "ARI"]

Averaged = Literal["shown", "seen", "all"]
"""Classes that are averaged: those in the ground truth; those in the ground truth or the prediction, as in
mmsegmentation and dinov3; or all, where a class in neither counts as 0 (Hummingbird)."""

MANY = 1e6  # number of trials of an item of shares: so many that they add no variance of their own
ROUNDED = 1e-12  # share of a sum below which what is left of it is a rounding error
CELLS = 4_000_000  # values in one block of contingency tables, 32 MB for each temporary

Part = tuple[Floats, float]
"""A part of the covariance of scores: rows [rows scores] such that ``rows.T @ rows`` is the covariance, and
its degrees of freedom."""


@dataclass(frozen=True, slots=True)
class Trials:
    """Trials, hits or misses, behind the scores.

    A score of values between a miss and a hit is a share, too: that of many trials an item.
    """

    count: Floats  # [units] or [units scores] number of trials of each unit
    hit: Floats  # [scores] value of a hit, 1 or 100; NaN for scores that are not shares
    miss: float = 0.0  # value of a miss


@dataclass(frozen=True)
class Ratios:
    """Several scores (layers) on the same units: means over groups of sum(totals) / sum(counts).

    Groups whose count is 0 are left out. If scores are means over random draws (of a probe's training
    images), ``draws`` has the scores of each draw. ``images`` names the images of units that are pairs. Units
    that also change the totals of others (as neighbours) have this influence, with mean 0, in ``moved``.
    Scores with one ``bound`` are all above or all below it.

    Raises ValueError if a count is negative, or a value is not finite.
    """

    totals: Floats  # [units scores] float64
    counts: Floats  # [units] float64 >= 0: number of items of a unit; 0 if the unit does not count
    group: Integers  # [units] from 0
    stratum: Integers  # [units] from 0
    trials: Trials | None = None  # None if hits and misses are unknown
    draws: Floats | None = None  # [draws scores] scores of each of at least two draws
    images: Integers | None = None  # [units 2] from 0: images of pairs; None if the units are sampled
    moved: Floats | None = None  # [units scores] what a unit adds to the totals of others; None for nothing
    bound: float | None = None  # number that the scores never pass; None if there is none, or more than one

    def __post_init__(self) -> None:
        if not np.isfinite(self.totals).all() or not (np.isfinite(self.counts) & (self.counts >= 0)).all():
            raise ValueError("totals must be finite, and counts finite and not negative")

    @property
    def scores(self) -> int:
        return int(self.totals.shape[1])

    def evaluate(self, weights: Floats | None = None) -> Floats:
        """Scores [R scores] under unit weights [R units]; NaN if no unit that counts has a weight."""
        weights = as_weights(weights, len(self.counts))
        total, groups = np.zeros((len(weights), self.scores)), np.zeros((len(weights), 1))
        for members in group_members(self.group):
            weight = weights[:, members]
            count = weight @ self.counts[members, None]
            sums = weight @ self.totals[members]
            total += np.divide(sums, count, out=np.zeros_like(sums), where=count > 0)
            groups += count > 0
        return np.divide(total, groups, out=np.full_like(total, np.nan), where=groups > 0)

    def slopes(self) -> Floats:
        """Derivative of each score with respect to the weight of each unit, at weights 1: [units scores]."""
        slopes = np.zeros_like(self.totals)
        groups = [members for members in group_members(self.group) if self.counts[members].any()]
        for members in groups:
            counts = self.counts[members, None]
            ratio = self.totals[members].sum(axis=0) / counts.sum()
            added = self.totals[members] - counts * ratio
            added += 0 if self.moved is None else self.moved[members]
            slopes[members] = added / (counts.sum() * len(groups))
        return slopes

    def chance(self) -> list[Part]:
        """Variation of the scores that comes from random draws, not from the units."""
        if self.draws is None:
            return []
        count = len(self.draws)
        return [((self.draws - self.draws.mean(axis=0)) / np.sqrt(count * (count - 1)), count - 1)]

    @property
    def weights(self) -> Floats:
        """Share of each unit in the scores: [units], sum 1 if any unit counts."""
        weights = np.zeros_like(self.counts)
        groups = [members for members in group_members(self.group) if self.counts[members].any()]
        for members in groups:
            weights[members] = self.counts[members] / (self.counts[members].sum() * len(groups))
        return weights

    @cached_property
    def sampling(self) -> csr_array | None:
        """Which units were sampled together (`shared_images`), [sampled units]; None if each by itself."""
        if self.images is None:
            return None
        return shared_images(np.where(self.counts[:, None] > 0, self.images, NO_IMAGE))

    def columns(self, scores: Integers) -> Self:
        hits = None
        if self.trials is not None:
            count = self.trials.count
            count = count if count.ndim == 1 else count[:, scores]
            hits = replace(self.trials, count=count, hit=self.trials.hit[scores])
        draws = None if self.draws is None else self.draws[:, scores]
        moved = None if self.moved is None else self.moved[:, scores]
        return replace(self, totals=self.totals[:, scores], trials=hits, draws=draws, moved=moved)


@dataclass(frozen=True)
class Partitions:
    """Several clusterings (layers) of the same items, each by k-means from several starts.

    Its scores are those of the best start: the first index for every layer, then the next index for every
    layer.
    """

    labels: Integers  # [items] class of each item, from 0
    starts: Integers  # [layers starts items] clusters from 0; starts sorted by inertia, best first
    indices: tuple[Index, ...]  # measures of agreement between clusters and classes, as fractions
    unit: Integers  # [items] from 0: the unit that an item is sampled with (its image)
    stratum: Integers  # [units] from 0

    @property
    def scores(self) -> int:
        return len(self.starts) * len(self.indices)

    @cached_property
    def counts(self) -> Floats:
        return np.bincount(self.unit, minlength=len(self.stratum)).astype(np.float64)

    def evaluate(self, weights: Floats | None = None) -> Floats:
        """Scores of the best start under weights [R units]: [R scores]; NaN if no item has a weight."""
        weights = as_weights(weights, len(self.stratum))
        # a contingency table has no more non-empty cells than items
        blocks = max(1, -(-len(weights) * self.labels.size // CELLS))
        return np.concatenate([self._evaluate(part, 0) for part in np.array_split(weights, blocks)])

    def slopes(self) -> Floats:
        each = [slopes(index, self.labels, clusters[0]) for index in self.indices for clusters in self.starts]
        summed: Floats = self._sums(np.arange(len(self.labels))).T @ np.stack(each, axis=1)
        return summed

    def chance(self) -> list[Part]:
        """Variation of the scores that comes from the random starts, as one part per score.

        It is the variance of the best of half as many starts, from all ways to split the starts into halves,
        which the variance of the best of all does not exceed. Empty for a single start.
        """
        half = self.starts.shape[1] // 2
        if not half:
            return []
        all_units = np.ones((1, len(self.stratum)))
        scores = np.concatenate([self._evaluate(all_units, start) for start in range(2 * half)])
        # the best of all is in one half; this is how often the best of the other half has each rank
        ways = np.array([comb(2 * half - rank, half - 1) for rank in range(2, half + 2)], np.float64)
        variance = ways @ ((scores[0] - scores[1 : half + 1]) ** 2) / (2 * comb(2 * half - 1, half))
        return [(row[None], 2 * half - 1.0) for row in np.diag(np.sqrt(variance))]

    def _evaluate(self, weights: Floats, start: int) -> Floats:
        """Scores of one start of every layer under weights [R units]: [R scores]."""
        columns = np.ascontiguousarray(weights.T)
        classes = self._weighed(self.labels, columns)
        tables = [self._tables(clusters[start], classes, columns) for clusters in self.starts]
        return np.stack([agreement(index, table) for index in self.indices for table in tables], axis=1)

    def _tables(self, clusters: Integers, classes: Floats, columns: Floats) -> Contingency:
        """Contingency tables of one partition under weights [units R], with their class sums [classes R]."""
        width = self.labels.max(initial=0) + 1
        cells, cell = _distinct(clusters * width + self.labels)
        first = np.flatnonzero(np.diff(cells // width, prepend=-1))
        return Contingency(self._weighed(cell, columns), first, classes)

    def _weighed(self, names: Integers, columns: Floats) -> Floats:
        """Sums of the items with each label under weights [units R]: [names R]."""
        if columns.shape[1] == 1:  # several times faster than a sparse matrix
            return np.bincount(names, columns[self.unit, 0]).astype(np.float64, copy=False)[:, None]
        summed: Floats = self._sums(names) @ columns
        return summed

    def _sums(self, names: Integers) -> csr_array:
        """Number of items of each unit with each label: [names units]."""
        shape = (int(names.max(initial=-1)) + 1, len(self.stratum))
        return coo_array((np.ones(len(names)), (names, self.unit)), shape=shape).tocsr()


@dataclass(frozen=True)
class ClassRatios:
    """Several scores (layers) on the same images: means over classes of sum(part) / sum(whole).

    The averaged classes are determined from the images with a weight above 0; one whose sum(whole) is 0
    counts as 0. Raises ValueError if a value is negative, NaN or infinite.
    """

    part: Floats  # [scores images classes] float64 >= 0, such as pixels of the intersection
    whole: Floats  # the same shape, such as pixels of the union
    shown: Floats  # [images classes] float64 >= 0, true pixels of the class
    stratum: Integers  # [images] from 0
    averaged: Averaged

    def __post_init__(self) -> None:
        for values in (self.part, self.whole, self.shown):
            if not (np.isfinite(values) & (values >= 0)).all():
                raise ValueError("parts, wholes and what is shown must be finite and not negative")

    @property
    def scores(self) -> int:
        return len(self.part)

    @cached_property
    def counts(self) -> Floats:
        """Each image's share of the true pixels of a class, mean over the shown classes: [images], sum 1.

        An image that shows a rare class counts more, since it decides on that class almost alone.
        """
        sums = self.shown.sum(axis=0)
        shares = np.divide(self.shown, sums, out=np.zeros_like(self.shown), where=sums > 0)
        return np.asarray(shares.sum(axis=1) / max(1, np.count_nonzero(sums)), np.float64)

    @property
    def weights(self) -> Floats:
        """Share of each image in the scores: [images], sum 1 if any shows a class."""
        return self.counts

    @property
    def trials(self) -> Trials:
        """Every score is a share, of many trials an image."""
        return Trials(np.full(len(self.counts), MANY), np.ones(self.scores))

    def evaluate(self, weights: Floats | None = None) -> Floats:
        """Scores under image weights [R images], as fractions: [R scores]; NaN if no class is shown."""
        weights = as_weights(weights, len(self.stratum))
        there = weights @ self.shown > 0
        sums = ((weights @ part, weights @ whole) for part, whole in zip(self.part, self.whole, strict=True))
        return np.stack([self._mean(there, *of_score) for of_score in sums], axis=1)

    def slopes(self) -> Floats:
        """Jackknife influence of each image on each score: [images scores], mean 0 over images that count.

        It is (n - 1) / n times the decrease of the score without the image; also the classes that are
        averaged may change, as many are shown by few images. A score without its only image decreases by 0.

        Source: Efron and Stein, Annals of Statistics 9, 1981.
        """
        counting = np.flatnonzero(self.counts > 0)
        slopes = np.zeros((len(self.stratum), self.scores))
        if len(counting) < 2:
            return slopes
        shown = self.shown[counting] > 0
        there = shown.sum(axis=0) - shown > 0
        for score, parts in enumerate(zip(self.part, self.whole, strict=True)):
            part, whole = (pixels.sum(axis=0) - pixels[counting] for pixels in parts)
            # a difference of sums of fractions may miss 0 by a rounding error
            whole[whole < ROUNDED * parts[1].sum(axis=0)] = 0
            without = self._mean(there, part, whole)
            slopes[counting, score] = (without.mean() - without) * (len(counting) - 1) / len(counting)
        return slopes

    def _mean(self, there: NDArray[np.bool_], part: Floats, whole: Floats) -> Floats:
        """Mean over the averaged classes [R], from shown classes and sums of pixels [R classes]."""
        share = np.divide(part, whole, out=np.zeros_like(whole), where=there & (whole > 0))
        classes = {"shown": there, "seen": there | (whole > 0), "all": np.ones_like(there)}[self.averaged]
        mean = np.full(len(there), np.nan)
        np.divide(share.sum(axis=1), classes.sum(axis=1), out=mean, where=there.any(axis=1))
        return mean

    def chance(self) -> list[Part]:
        return []


NO_IMAGE = -1  # in place of the images of a pair that does not count


def shared_images(images: Integers) -> csr_array:
    """Which pairs were sampled together, 0 or 1: [sampled pairs]; from the images [pairs 2] of each pair.

    What is sampled is every image that is part of several pairs, with all of them, and every other pair that
    has no such image. Pairs of the same two images are one pair. The sum of squares over these rows is the
    variance of Aronow et al., plus the own variance of each pair that two of the images share. This part is
    also in the jackknife over images, whose variance is never too small on average (Efron and Stein, Annals
    of Statistics 9, 1981). A pair with `NO_IMAGE` is in no row.

    Source: Aronow, Samii and Assenova, Cluster-Robust Variance Estimation for Dyadic Data, Political Analysis
    23, 2015.
    """
    there = np.flatnonzero((images != NO_IMAGE).all(axis=1))
    distinct, dyad = np.unique(np.sort(images[there], axis=1), axis=0, return_inverse=True)
    dyad = dyad.ravel()
    sides = [distinct[:, :1], distinct[distinct[:, 0] != distinct[:, 1], 1:]]
    times = np.bincount(np.concatenate(sides).ravel(), minlength=images.max(initial=0) + 1)
    several: Mask = np.greater(times[distinct], 1)  # [dyads 2]
    several[:, 1] &= distinct[:, 0] != distinct[:, 1]
    alone = np.logical_not(several.any(axis=1))
    rows, columns = [len(times) + dyad[alone[dyad]]], [there[alone[dyad]]]
    for side in range(2):
        of_image = several[dyad, side]
        rows.append(distinct[dyad[of_image], side])
        columns.append(there[of_image])
    names, row = np.unique(np.concatenate(rows), return_inverse=True)
    column = np.concatenate(columns)
    return coo_array((np.ones(len(row)), (row, column)), shape=(len(names), len(images))).tocsr()


def _distinct(codes: Integers) -> tuple[Integers, Integers]:
    """The distinct ones of some whole numbers from 0, ascending, and the index of each one's."""
    if codes.max(initial=-1) >= 4 * len(codes):
        return np.unique(codes, return_inverse=True)
    there = np.bincount(codes) > 0  # faster than sorting them
    return np.flatnonzero(there), (np.cumsum(there) - 1)[codes]


def as_weights(weights: Floats | None, units: int) -> Floats:
    """Weights [R units]: those given, or one row of ones."""
    return np.ones((1, units)) if weights is None else weights
