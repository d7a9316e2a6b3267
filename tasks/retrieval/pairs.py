"""Instance retrieval: ranking of the images of the same instance by cosine, and thresholds of the cosine.

If a positive, an image of the same instance, and an image of another instance are exactly as similar to a
query, the other one ranks first. So no score depends on the order of the images.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import hardshrink

from layerboard.tasks.metrics.arrays import SHORTEST, Features, Floats, Integers, Mask, lengths
from layerboard.tasks.metrics.neighbours import as_unit_rows, chunks, parallel

NEGATIVES = 10  # a false acceptance rate must amount to at least this many negative pairs
LEVELS = 200  # approximate number of cosine levels of the pair counts per instance; for standard errors only
NEAR = 0.5  # relative change of a rate, down and up, that estimates the slope of the ROC curve
NONE = -1  # instance of an image that shows none, and database index of an image outside the database
LEFT_OUT = np.float32(-np.inf)  # cosine of images that are not ranked

Similarities = NDArray[np.floating[Any]]


class PairedImages(NamedTuple):
    """Unit vectors, instances and groups of some images."""

    units: Tensor  # vectors of length 1, [images dim]
    shown: Integers  # instance that each image shows
    groups: Integers
    wide: bool  # whether cosines are kept in float64, since float32 cannot rank those of parallel vectors

    def of(self, places: Integers) -> "PairedImages":
        return PairedImages(self.units[places], self.shown[places], self.groups[places], self.wide)

    def cosines(self, places: Integers, others: Tensor) -> Similarities:
        """Cosines of some of the images with other unit vectors: [places others]."""
        # rounding errors around 0 would order binary codes that differ in half of their bits
        products = hardshrink(self.units[places] @ others.T, SHORTEST)
        return (products if self.wide else products.float()).cpu().numpy()


@dataclass(frozen=True, slots=True)
class Pairs:
    """Cosines of positive pairs, and counts of negative pairs relative to them."""

    same: Similarities  # cosines of the positive pairs, ascending, [pairs]
    above: Integers  # number of negative pairs with a higher cosine than each of `same`, [pairs]
    reached: Integers  # number of negative pairs with at least that cosine, [pairs]
    different: int  # number of all negative pairs
    instance: Integers  # instance of each of `same`, [pairs]
    levels: Similarities  # some of `same`, ascending, [levels]
    # number of negative pairs of each instance, in the bins between these levels, [instances levels + 1]
    beside: NDArray[np.int32]

    @property
    def roc_auc(self) -> float:
        """Probability that a positive pair has a higher cosine than a negative pair.

        A tie counts one half. NaN if there are no pairs of either kind.
        """
        if not (len(self.same) and self.different):
            return float("nan")
        return float(1 - (self.above + self.reached).mean() / 2 / self.different)

    def enough(self, rate: float) -> bool:
        """Whether there are enough negative pairs to report that false acceptance rate."""
        return self.different >= round(NEGATIVES / rate)

    def accepted(self, rate: float) -> float:
        """Share of positive pairs accepted at a false acceptance rate of at most ``rate``.

        NaN if there are not `enough` negative pairs, or no positive pairs.
        """
        if not (len(self.same) and self.enough(rate)):
            return float("nan")
        return float((self.reached <= rate * self.different).mean())

    def roc_auc_slopes(self) -> Floats:
        """Derivative of `roc_auc` with respect to the weight of each instance with its pairs: [instances]."""
        above, reached = (np.searchsorted(self.same, self.levels, side) for side in ("right", "left"))
        lost = np.append(0, above) + np.append(reached, len(self.same))
        return self._slopes(1 - (self.above + self.reached) / 2 / self.different, -lost / 2 / len(self.same))

    def accepted_slopes(self, rate: float) -> Floats:
        """Derivative of `accepted` with respect to the weight of each instance: [instances].

        It includes the movement of the threshold at that rate, by the slope of the ROC curve around it.

        Source: Hsieh and Turnbull, Annals of Statistics 24, 1996 (variance of an empirical ROC curve).
        """
        taken = self.reached <= rate * self.different
        ends = [(self.reached <= rate * end * self.different).mean() for end in (1 - NEAR, 1 + NEAR)]
        gained = (ends[1] - ends[0]) / (2 * NEAR * rate)
        below = np.count_nonzero(self.levels < self.same[taken].min(initial=np.inf))
        return self._slopes(taken.astype(np.float64), -gained * (np.arange(len(self.levels) + 1) > below))

    def _slopes(self, same: Floats, different: Floats) -> Floats:
        """Derivatives of a mean over pairs with respect to the weight of each instance: [instances].

        ``same`` [pairs] are the values of positive pairs, ``different`` [levels + 1] those of
        negative pairs by bin. A negative pair contributes to the derivatives of both instances.
        """
        own = np.bincount(self.instance, same - same.mean(), len(self.beside)) / len(same)
        mean = self.beside.sum(axis=0) @ different / self.beside.sum()
        return np.asarray(own + self.beside @ (different - mean) / self.different, np.float64)

    def threshold(self, precision: float) -> tuple[float, float]:
        """Lowest cosine threshold whose accepted pairs have at least that precision, and its recall.

        Thresholds are the cosines of positive pairs; recall is the share of positive pairs that are
        accepted. Both are NaN if no threshold has that precision.
        """
        accepted = len(self.same) - np.searchsorted(self.same, self.same)
        precise = np.flatnonzero(accepted >= precision * (accepted + self.reached))
        if not len(precise):
            return float("nan"), float("nan")
        return float(self.same[precise[0]]), float(accepted[precise[0]] / len(self.same))


@dataclass(frozen=True, slots=True)
class Retrieved:
    """Scores of each query, [queries]; NaN for a query without a positive in the database."""

    average_precision: Floats  # mean of the precision at the rank of each positive, 0 to 1
    r_precision: Floats  # precision at rank R, where R is the number of positives, 0 to 1
    wrong: Floats  # number of images of other instances ranked before the first positive
    pairs: Pairs
    shown: Integers  # instance that each query shows

    def shared(self, slopes: Floats) -> Floats:
        """Values [queries] of mean 0: slopes [instances] x queries, split among an instance's queries."""
        counted = ~np.isnan(self.wrong)
        instance = self.shown[counted]
        values = np.full(len(counted), np.nan)
        values[counted] = len(instance) * (slopes[instance] / np.bincount(instance)[instance])
        return np.asarray(values - np.nanmean(values), np.float64)

    def recall(self, k: int) -> Floats:
        """1 if a positive is among the k most similar, else 0: [queries]."""
        return np.where(np.isnan(self.wrong), np.nan, self.wrong < k)


def retrieve(
    features: Features,
    shown: Integers,
    asks: Mask,
    ranked: Mask,
    groups: Integers,
    *,
    device: torch.device | None = None,
) -> Retrieved:
    """Rank the images of a database for each query by cosine.

    ``features`` [n dim] are those of all images, and ``shown`` [n] is the number of the instance on each,
    `NONE` for none. ``asks`` [n] marks the queries and ``ranked`` [n] the database; an image may be both. The
    ranking of a query leaves out the query itself and the images of its group in ``groups`` [n]. Two images
    form one pair, even if both are queries. Queries without a retrievable positive are left out. Cosines are
    computed in float64 and rounded to float32, unless vectors are nearly parallel. Average precision is the
    sum, over distinct cosines, of the step in recall times the precision there.

    Source: Manning, Raghavan and Schütze, Introduction to Information Retrieval, 2008, section 8.4.
    """
    rows, places = np.flatnonzero(asks), np.flatnonzero(ranked)
    at = np.where(ranked, np.cumsum(ranked) - 1, NONE)[rows]  # database index of each query
    wide = parallel(as_unit_rows(features))
    queries, database = (
        PairedImages(_unit(features[each], device), shown[each], groups[each], wide)
        for each in (rows, places)
    )
    own = {row: (others, cosines) for row, others, cosines in _own(queries, database)}
    counted = np.array(sorted(own), np.int64)
    both = np.zeros(len(places), np.bool_)  # database images that are counted queries themselves
    both[at[counted][at[counted] != NONE]] = True
    once = {row: cosines[~both[others] | (others > at[row])] for row, (others, cosines) in own.items()}
    pairs = _CountedPairs(once, queries.shown)
    scores = np.full((len(rows), 3), np.nan)
    for chunk in chunks(len(counted), len(places)):
        every = queries.cosines(counted[chunk], database.units)
        every[queries.groups[counted[chunk], None] == database.groups] = LEFT_OUT
        for row, cosines in zip(counted[chunk].tolist(), every, strict=True):
            cosines[own[row][0]] = LEFT_OUT
            others = np.sort(cosines)
            scores[row] = _ranked(np.sort(own[row][1])[::-1], others)
            pairs.add_beside(queries.shown[row], others)
            before = max(int(at[row]), 0)
            cosines[:before][both[:before]] = LEFT_OUT  # pairs already counted in the row of the other image
        pairs.add(every)
    # database images that are no counted queries also contribute their pairs to their instance
    rest = np.flatnonzero(~both & np.isin(database.shown, queries.shown[counted]))
    pairs.add_sides(database.of(rest), queries.of(counted))
    precision, first, wrong = scores.T
    return Retrieved(precision, first, wrong, pairs.all(), queries.shown)


class _CountedPairs:
    """Positive pairs, and the number of negative pairs ranked before each."""

    def __init__(self, same: Mapping[int, Similarities], shown: Integers) -> None:
        """Start with the positive cosines of each query, and the instance of each query [queries]."""
        every = np.concatenate([np.empty(0, np.float32), *same.values()])
        order = np.argsort(every, kind="stable")
        self._same = every[order]
        self._instance = np.repeat(shown[np.array([*same], np.int64)], [*map(len, same.values())])[order]
        self._before = np.zeros((2, len(every)), np.int64)
        self._different = 0
        self._levels = np.unique(self._same[:: max(1, len(every) // LEVELS)])
        self._beside = np.zeros((int(shown.max(initial=0)) + 1, len(self._levels) + 1), np.int32)

    def add(self, different: Similarities) -> None:
        ranked = np.sort(different, axis=None)
        ends = [np.searchsorted(ranked, self._same, side) for side in ("right", "left")]
        self._before += len(ranked) - np.stack(ends)
        self._different += len(ranked) - int(np.searchsorted(ranked, LEFT_OUT, "right"))

    def add_beside(self, instance: int, ranked: Similarities) -> None:
        """Count the pairs of an image of an instance with other instances, from ascending cosines."""
        first = np.searchsorted(ranked, LEFT_OUT, "right")
        self._beside[instance] += np.diff([first, *np.searchsorted(ranked, self._levels), len(ranked)])

    def add_sides(self, images: PairedImages, queries: PairedImages) -> None:
        """Count, for the instances of the images, their pairs with the queries."""
        for chunk in chunks(len(images.shown), len(queries.shown)):
            every = images.cosines(np.arange(len(images.shown))[chunk], queries.units)
            every[images.shown[chunk, None] == queries.shown] = LEFT_OUT
            every[images.groups[chunk, None] == queries.groups] = LEFT_OUT
            for instance, cosines in zip(images.shown[chunk], np.sort(every), strict=True):
                self.add_beside(instance, cosines)

    def all(self) -> Pairs:
        above, reached = self._before
        return Pairs(self._same, above, reached, self._different, self._instance, self._levels, self._beside)


def _own(queries: PairedImages, database: PairedImages) -> Iterator[tuple[int, Integers, Similarities]]:
    """Yields each query with retrievable images: its index, and the indices and cosines of these images."""
    for instance in np.unique(queries.shown[queries.shown != NONE]):
        asking, there = (np.flatnonzero(side.shown == instance) for side in (queries, database))
        every = queries.cosines(asking, database.units[there])
        apart = queries.groups[asking, None] != database.groups[there]
        for row, cosines, mask in zip(asking.tolist(), every, apart, strict=True):
            if mask.any():
                yield row, there[mask], cosines[mask]


def _ranked(own: Similarities, others: Similarities) -> tuple[float, float, int]:
    """Average precision, R-precision, and the number of other images before the first positive.

    ``own`` are the cosines of the positives, descending; ``others`` all others, ascending.
    """
    before = len(others) - np.searchsorted(others, own)
    reached = len(own) - np.searchsorted(own[::-1], own)
    first = before + np.arange(len(own)) < len(own)
    return float((reached / (reached + before)).mean()), float(first.mean()), int(before[0])


def _unit(vectors: Features, device: torch.device | None) -> Tensor:
    """Rows normalised to length 1 in float64; zero rows stay zero."""
    wide = vectors.astype(np.float64)
    wide /= lengths(wide)
    return torch.from_numpy(wide).to(None if device is None or device.type == "mps" else device)
