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

from layerboard.tasks.metrics.arrays import SHORTEST, Features, Floats, Integers
from layerboard.tasks.metrics.neighbours import chunks

NEGATIVES = 10  # pairs of different things that a rate of false acceptance must stand for at least
NONE = -1  # thing of an image that shows none, and place of a query that is not in the database
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
    queries: Features,
    database: Features,
    asked: Integers,
    shown: Integers,
    position: Integers | None = None,
    *,
    device: torch.device | None = None,
) -> Retrieved:
    """Rank the database [n dim] for each query [m dim] by cosine.

    ``asked`` [m] and ``shown`` [n] number the thing that an image shows; `NONE` stands for none. ``position``
    [m] is where in the database a query itself is, which it does not look for; `NONE`, or None for all,
    where it is not there. Two images are one pair, even where both are queries. Queries without another image
    of their thing are left out. Cosines are products in float64, rounded to float32; average precision is the
    sum, over distinct cosines, of the step in recall times the precision there.

    Raises ValueError where shapes do not fit or a value is not finite.

    Source: Manning, Raghavan and Schütze, Introduction to Information Retrieval, 2008, section 8.4.
    """
    at = np.full(len(queries), NONE, np.int64) if position is None else position
    _check(queries, database, asked, shown, at)
    units = _unit(queries, device), _unit(database, device)
    own = {row: (rows, cosines) for row, rows, cosines in _own(*units, asked, shown, at)}
    asks = np.zeros(len(database), np.bool_)  # images that are such queries themselves
    asks[[at[row] for row in own if at[row] != NONE]] = True
    once = (cosines[~asks[rows] | (rows > at[row])] for row, (rows, cosines) in own.items())
    pairs = _CountedPairs(np.concatenate([np.empty(0, np.float32), *once]))
    scores, counted = np.full((len(queries), 3), np.nan), np.array(sorted(own), np.int64)
    for chunk in chunks(len(counted), len(database)):
        others = _cosines(units[0][counted[chunk]], units[1])
        for row, cosines in zip(counted[chunk].tolist(), others, strict=True):
            before = max(int(at[row]), 0)
            cosines[own[row][0]] = LEFT_OUT
            if at[row] != NONE:
                cosines[before] = LEFT_OUT
            scores[row] = _ranked(np.sort(own[row][1])[::-1], np.sort(cosines))
            cosines[:before][asks[:before]] = LEFT_OUT  # pairs that stand in the other image's row
        pairs.add(others)
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
    queries: Tensor, database: Tensor, asked: Integers, shown: Integers, at: Integers
) -> Iterator[tuple[int, Integers, Similarities]]:
    """Of each query with another image of its thing: its number, and places and cosines of these images."""
    for thing in np.unique(asked[asked != NONE]):
        asking, there = np.flatnonzero(asked == thing), np.flatnonzero(shown == thing)
        for row, cosines in zip(asking.tolist(), _cosines(queries[asking], database[there]), strict=True):
            if (others := there != at[row]).any():
                yield row, there[others], cosines[others]


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


def _check(queries: Features, database: Features, asked: Integers, shown: Integers, at: Integers) -> None:
    if queries.ndim != 2 or database.ndim != 2 or queries.shape[1] != database.shape[1]:
        raise ValueError(
            f"expected queries [m dim] and a database [n dim], found {queries.shape} and {database.shape}"
        )
    if asked.shape != at.shape or asked.shape != (len(queries),) or shown.shape != (len(database),):
        raise ValueError(f"expected one thing an image, found {asked.shape}, {at.shape} and {shown.shape}")
    if not (np.isfinite(queries).all() and np.isfinite(database).all()):
        raise ValueError("vectors must not hold NaN or infinite values")
