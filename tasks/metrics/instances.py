"""Images of the same thing: how early they come in a ranking by cosine, and which cosine tells them.

An image of another thing that is exactly as similar as one of the same counts as the more similar of the two,
so that no score depends on the order of the images.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from layerboard.tasks.metrics.arrays import SHORTEST, Features, Floats, Integers, Mask
from layerboard.tasks.metrics.neighbours import chunks

NEGATIVES = 10  # pairs of different things that a rate of false acceptance must stand for at least
NONE = -1  # thing of an image that shows none, and place of what is not in the database
LEFT_OUT = np.float32(-np.inf)  # cosine of what is not ranked

Similarities = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Pairs:
    """Cosines of pairs of images of one thing, beside those of pairs of images of different things."""

    same: Similarities  # of the pairs of one thing, rising, [pairs]
    above: Integers  # pairs of different things that are more similar than each of these, [pairs]
    reached: Integers  # pairs of different things that are at least as similar, [pairs]
    different: int  # number of all pairs of different things

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
    units = _unit(features[rows], device), _unit(features[places], device)
    groups, asking = groups[places], groups[rows]
    own = {
        row: (others[apart], cosines[apart])
        for row, others, cosines in _own(*units, shown[rows], shown[places])
        if (apart := groups[others] != asking[row]).any()
    }
    both = np.zeros(len(places), np.bool_)  # images of the database that are such queries themselves
    both[[at[row] for row in own if at[row] != NONE]] = True
    once = (cosines[~both[others] | (others > at[row])] for row, (others, cosines) in own.items())
    pairs = _CountedPairs(np.concatenate([np.empty(0, np.float32), *once]))
    scores, counted = np.full((len(rows), 3), np.nan), np.array(sorted(own), np.int64)
    for chunk in chunks(len(counted), len(places)):
        every = _cosines(units[0][counted[chunk]], units[1])
        every[asking[counted[chunk], None] == groups] = LEFT_OUT
        for row, cosines in zip(counted[chunk].tolist(), every, strict=True):
            cosines[own[row][0]] = LEFT_OUT
            scores[row] = _ranked(np.sort(own[row][1])[::-1], np.sort(cosines))
            before = max(int(at[row]), 0)
            cosines[:before][both[:before]] = LEFT_OUT  # pairs that stand in the other image's row
        pairs.add(every)
    return Retrieved(scores[:, 0], scores[:, 1], scores[:, 2], pairs.all())


class _CountedPairs:
    """Pairs of one thing, and how many pairs of different things come before each."""

    def __init__(self, same: Similarities) -> None:
        self._same = np.sort(same)
        self._before = np.zeros((2, len(same)), np.int64)
        self._different = 0

    def add(self, different: Similarities) -> None:
        ranked = np.sort(different, axis=None)
        ends = [np.searchsorted(ranked, self._same, side) for side in ("right", "left")]
        self._before += len(ranked) - np.stack(ends)
        self._different += len(ranked) - int(np.searchsorted(ranked, LEFT_OUT, "right"))

    def all(self) -> Pairs:
        return Pairs(self._same, self._before[0], self._before[1], self._different)


def _own(
    queries: Tensor, database: Tensor, asked: Integers, shown: Integers
) -> Iterator[tuple[int, Integers, Similarities]]:
    """Of each query its number, and places and cosines of the images of its thing."""
    for thing in np.unique(asked[asked != NONE]):
        asking, there = np.flatnonzero(asked == thing), np.flatnonzero(shown == thing)
        for row, cosines in zip(asking.tolist(), _cosines(queries[asking], database[there]), strict=True):
            yield row, there, cosines


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
