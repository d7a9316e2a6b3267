"""Images of the same thing: how early they come in a ranking by cosine, and which cosine tells them.

An image of another thing that is exactly as similar as one of the same counts as the more similar of the two,
so that no score depends on the order of the images.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from layerboard.tasks.metrics.arrays import SHORTEST, Features, Floats, Integers, Mask
from layerboard.tasks.metrics.neighbours import chunks

NEGATIVES = 10  # pairs of different things that a rate of false acceptance must stand for at least
LEVELS = 200  # cosines between which pairs are counted for each thing, which errors alone need
NEAR = 0.5  # share by which a rate is made smaller and larger to see what more acceptances it gains
NONE = -1  # thing of an image that shows none, and place of what is not in the database
LEFT_OUT = np.float32(-np.inf)  # cosine of what is not ranked

Similarities = NDArray[np.float32]


class PairedImages(NamedTuple):
    """Images that are paired with others."""

    units: Tensor  # vectors of length 1, [images dim]
    shown: Integers  # the thing on each
    groups: Integers

    def of(self, places: Integers) -> "PairedImages":
        return PairedImages(self.units[places], self.shown[places], self.groups[places])


@dataclass(frozen=True, slots=True)
class Pairs:
    """Cosines of pairs of images of one thing, beside those of pairs of images of different things."""

    same: Similarities  # of the pairs of one thing, rising, [pairs]
    above: Integers  # pairs of different things that are more similar than each of these, [pairs]
    reached: Integers  # pairs of different things that are at least as similar, [pairs]
    different: int  # number of all pairs of different things
    thing: Integers  # number of the thing of each of `same`, [pairs]
    levels: Similarities  # some of `same`, rising, [levels]
    # for each thing its pairs with others below, between and from these, [things levels + 1]
    beside: NDArray[np.int32]

    @property
    def roc_auc(self) -> float:
        """Share of comparisons of a pair of one thing with one of different things that the first wins.

        A tie is half a win; NaN without pairs of either kind.
        """
        if not (len(self.same) and self.different):
            return float("nan")
        return float(1 - (self.above + self.reached).mean() / 2 / self.different)

    def enough(self, rate: float) -> bool:
        """Whether there are pairs of different things enough to speak of that rate of false acceptance."""
        return self.different >= round(NEGATIVES / rate)

    def accepted(self, rate: float) -> float:
        """Share of the pairs of one thing that are accepted where at most that share of the others is.

        NaN where pairs of different things are not `enough`, or none are of one thing.
        """
        if not (len(self.same) and self.enough(rate)):
            return float("nan")
        return float((self.reached <= rate * self.different).mean())

    def roc_auc_slopes(self) -> Floats:
        """How much `roc_auc` rises with the weight of each thing and all its pairs, linearised: [things]."""
        above, reached = (np.searchsorted(self.same, self.levels, side) for side in ("right", "left"))
        lost = np.append(0, above) + np.append(reached, len(self.same))
        return self._slopes(1 - (self.above + self.reached) / 2 / self.different, -lost / 2 / len(self.same))

    def accepted_slopes(self, rate: float) -> Floats:
        """How much `accepted` rises with the weight of each thing, also as the cosine moves: [things].

        The cosine is that of the rate. What it gains is the slope of the ROC curve around it.

        Source: Hsieh and Turnbull, Annals of Statistics 24, 1996 (variance of an empirical ROC curve).
        """
        taken = self.reached <= rate * self.different
        ends = [(self.reached <= rate * end * self.different).mean() for end in (1 - NEAR, 1 + NEAR)]
        gained = (ends[1] - ends[0]) / (2 * NEAR * rate)
        below = np.count_nonzero(self.levels < self.same[taken].min(initial=np.inf))
        return self._slopes(taken.astype(np.float64), -gained * (np.arange(len(self.levels) + 1) > below))

    def _slopes(self, same: Floats, different: Floats) -> Floats:
        """Slopes [things] of a mean of values of pairs of one thing [pairs], and of others by their level.

        A pair of two things moves with the weight of either.
        """
        own = np.bincount(self.thing, same - same.mean(), len(self.beside)) / len(same)
        mean = self.beside.sum(axis=0) @ different / self.beside.sum()
        return np.asarray(own + self.beside @ (different - mean) / self.different, np.float64)

    def threshold(self, precision: float) -> tuple[float, float]:
        """The lowest cosine of a pair of one thing from which on that share of the pairs are, and the recall.

        Recall is the share of the pairs of one thing that are accepted. Both are NaN where no cosine does.
        """
        accepted = len(self.same) - np.searchsorted(self.same, self.same)
        precise = np.flatnonzero(accepted >= precision * (accepted + self.reached))
        if not len(precise):
            return float("nan"), float("nan")
        return float(self.same[precise[0]]), float(accepted[precise[0]] / len(self.same))


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What each query finds, [queries]; NaN for one without another image of its thing in the database."""

    average_precision: Floats  # mean over the images of its thing of the precision down to each, 0 to 1
    r_precision: Floats  # share of its thing among the first, as many as there are images of it, 0 to 1
    wrong: Floats  # images of other things that come before the first of its own
    pairs: Pairs
    shown: Integers  # the thing that each shows

    def shared(self, slopes: Floats) -> Floats:
        """Slopes of things [things] times all queries, in equal parts on those of each: [queries], mean 0."""
        counted = ~np.isnan(self.wrong)
        thing = self.shown[counted]
        values = np.full(len(counted), np.nan)
        values[counted] = len(thing) * (slopes[thing] / np.bincount(thing)[thing])
        return np.asarray(values - np.nanmean(values), np.float64)

    def recall(self, k: int) -> Floats:
        """Whether an image of its thing is among the k most similar, 1 or 0: [queries]."""
        return np.where(np.isnan(self.wrong), np.nan, self.wrong < k)


def retrieve(
    features: Features,
    shown: Integers,
    asks: Mask,
    ranked: Mask,
    groups: Integers | None = None,
    *,
    device: torch.device | None = None,
) -> Retrieved:
    """Rank the images of a database for each query by cosine.

    ``features`` [n dim] are of all images, and ``shown`` [n] numbers the thing on each; `NONE` stands for
    none. ``asks`` [n] are the queries, ``ranked`` [n] the database; an image may be both. No query looks for
    itself, nor for an image of its own ``groups`` [n], numbers. Two images are one pair, even where both are
    queries. Queries without an image of their thing to be found are left out. Cosines are products in
    float64, rounded to float32; average precision is the sum, over distinct cosines, of the step in recall
    times the precision there.

    Raises ValueError where shapes do not fit or a value is not finite.

    Source: Manning, Raghavan and Schütze, Introduction to Information Retrieval, 2008, section 8.4.
    """
    groups = np.arange(len(features)) if groups is None else groups
    _check(features, shown, asks, ranked, groups)
    rows, places = np.flatnonzero(asks), np.flatnonzero(ranked)
    at = np.where(ranked, np.cumsum(ranked) - 1, NONE)[rows]  # where in the database a query itself is
    queries, database = (
        PairedImages(_unit(features[each], device), shown[each], groups[each]) for each in (rows, places)
    )
    own = {row: (others, cosines) for row, others, cosines in _own(queries, database)}
    counted = np.array(sorted(own), np.int64)
    both = np.zeros(len(places), np.bool_)  # images of the database that are such queries themselves
    both[at[counted][at[counted] != NONE]] = True
    once = {row: cosines[~both[others] | (others > at[row])] for row, (others, cosines) in own.items()}
    pairs = _CountedPairs(once, queries.shown)
    scores = np.full((len(rows), 3), np.nan)
    for chunk in chunks(len(counted), len(places)):
        every = _cosines(queries.units[counted[chunk]], database.units)
        every[queries.groups[counted[chunk], None] == database.groups] = LEFT_OUT
        for row, cosines in zip(counted[chunk].tolist(), every, strict=True):
            cosines[own[row][0]] = LEFT_OUT
            others = np.sort(cosines)
            scores[row] = _ranked(np.sort(own[row][1])[::-1], others)
            pairs.add_beside(queries.shown[row], others)
            before = max(int(at[row]), 0)
            cosines[:before][both[:before]] = LEFT_OUT  # pairs that stand in the other image's row
        pairs.add(every)
    # images that are no such queries move their pairs with their thing, too
    rest = np.flatnonzero(~both & np.isin(database.shown, queries.shown[counted]))
    pairs.add_sides(database.of(rest), queries.of(counted))
    precision, first, wrong = scores.T
    return Retrieved(precision, first, wrong, pairs.all(), queries.shown)


class _CountedPairs:
    """Pairs of one thing, and how many pairs of different things come before each."""

    def __init__(self, same: Mapping[int, Similarities], shown: Integers) -> None:
        """Start with the cosines of the pairs of each query, which show these things, [queries]."""
        every = np.concatenate([np.empty(0, np.float32), *same.values()])
        order = np.argsort(every, kind="stable")
        self._same = every[order]
        self._thing = np.repeat(shown[np.array([*same], np.int64)], [*map(len, same.values())])[order]
        self._before = np.zeros((2, len(every)), np.int64)
        self._different = 0
        self._levels = np.unique(self._same[:: max(1, len(every) // LEVELS)])
        self._beside = np.zeros((int(shown.max(initial=0)) + 1, len(self._levels) + 1), np.int32)

    def add(self, different: Similarities) -> None:
        ranked = np.sort(different, axis=None)
        ends = [np.searchsorted(ranked, self._same, side) for side in ("right", "left")]
        self._before += len(ranked) - np.stack(ends)
        self._different += len(ranked) - int(np.searchsorted(ranked, LEFT_OUT, "right"))

    def add_beside(self, thing: int, ranked: Similarities) -> None:
        """Count the pairs of an image of a thing with images of others, by cosines that rise."""
        first = np.searchsorted(ranked, LEFT_OUT, "right")
        self._beside[thing] += np.diff([first, *np.searchsorted(ranked, self._levels), len(ranked)])

    def add_sides(self, images: PairedImages, queries: PairedImages) -> None:
        """Count the pairs of images with queries for the things of the images."""
        for chunk in chunks(len(images.shown), len(queries.shown)):
            every = _cosines(images.units[chunk], queries.units)
            every[images.shown[chunk, None] == queries.shown] = LEFT_OUT
            every[images.groups[chunk, None] == queries.groups] = LEFT_OUT
            for thing, cosines in zip(images.shown[chunk], np.sort(every), strict=True):
                self.add_beside(thing, cosines)

    def all(self) -> Pairs:
        above, reached = self._before
        return Pairs(self._same, above, reached, self._different, self._thing, self._levels, self._beside)


def _own(queries: PairedImages, database: PairedImages) -> Iterator[tuple[int, Integers, Similarities]]:
    """Each query with images to be found: its number, and places and cosines of these."""
    for thing in np.unique(queries.shown[queries.shown != NONE]):
        asking, there = (np.flatnonzero(side.shown == thing) for side in (queries, database))
        every = _cosines(queries.units[asking], database.units[there])
        apart = queries.groups[asking, None] != database.groups[there]
        for row, cosines, mask in zip(asking.tolist(), every, apart, strict=True):
            if mask.any():
                yield row, there[mask], cosines[mask]


def _ranked(own: Similarities, others: Similarities) -> tuple[float, float, int]:
    """Average precision, R-precision, and how many others come first.

    ``own`` are the cosines of the images of the query's thing, falling; ``others`` are all others, rising.
    """
    before = len(others) - np.searchsorted(others, own)
    reached = len(own) - np.searchsorted(own[::-1], own)
    first = before + np.arange(len(own)) < len(own)
    return float((reached / (reached + before)).mean()), float(first.mean()), int(before[0])


def _unit(vectors: Features, device: torch.device | None) -> Tensor:
    """Rows of Euclidean length 1 in float64; a row of zeros stays one."""
    wide = vectors.astype(np.float64)
    wide /= np.maximum(np.linalg.norm(wide, axis=1, keepdims=True), SHORTEST)
    return torch.from_numpy(wide).to(None if device is None or device.type == "mps" else device)


def _cosines(queries: Tensor, database: Tensor) -> Similarities:
    return (queries @ database.T).float().cpu().numpy()


def _check(features: Features, *facts: Integers | Mask) -> None:
    if features.ndim != 2:
        raise ValueError(f"expected vectors [n dim], found {features.shape}")
    if any(fact.shape != (len(features),) for fact in facts):
        shapes = ", ".join(str(fact.shape) for fact in facts)
        raise ValueError(f"expected thing, query, database and group of {len(features)} images: {shapes}")
    if not np.isfinite(features).all():
        raise ValueError("vectors must not hold NaN or infinite values")
