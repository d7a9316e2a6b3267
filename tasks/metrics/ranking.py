"""Retrieval scores of revisited Oxford and Paris."""

from collections.abc import Sequence
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from layerboard.tasks.metrics.arrays import SHORTEST, Floats, Integers, mean_of_any

Difficulty = Literal["easy", "medium", "hard"]
CUTOFFS = (1, 5, 10)


def cosine(database: NDArray[np.floating], queries: NDArray[np.floating]) -> Floats:
    """Cosine of vectors [database dim] with [queries dim]: [database queries]; 0 with a vector of zeros."""
    wide = [vectors.astype(np.float64) for vectors in (database, queries)]
    lengths = [np.maximum(np.linalg.norm(each, axis=1), SHORTEST) for each in wide]
    # products of whole numbers are exact: equal distances of binary codes are equal cosines
    return np.asarray(wide[0] @ wide[1].T / np.multiply.outer(*lengths))


def rank(similarity: NDArray[np.floating]) -> Integers:
    """Database indices of each query, most similar first, ties by lower index; both [database queries]."""
    if similarity.ndim != 2:
        raise ValueError(f"expected similarities [database queries], found shape {similarity.shape}")
    if np.isnan(similarity).any():
        raise ValueError("similarities must not be NaN")
    return np.argsort(-similarity, axis=0, kind="stable").astype(np.int64)


def average_precision(positions: Integers) -> float:
    """Area under the precision-recall steps by the trapezoid rule, in [0, 1]; NaN without positions.

    ``positions`` are the different zero-based places of the positives in a ranking that holds no junk.

    Source: Radenović et al., Revisiting Oxford and Paris, CVPR 2018, and its evaluation code.
    """
    ranks = np.sort(positions.astype(np.float64))
    if not ranks.size:
        return float("nan")
    earlier = np.arange(len(ranks))
    before = np.divide(earlier, ranks, out=np.ones_like(ranks), where=ranks > 0)
    after = (earlier + 1) / (ranks + 1)
    return float(((before + after) / 2).mean())


def precision_at(positions: Integers, k: int) -> float:
    """Share of positives, zero-based, among the first min(k, last positive's rank); NaN without positions."""
    if not positions.size:
        return float("nan")
    cut = min(k, int(positions.max()) + 1)
    return float((positions < cut).sum() / cut)


def revisited(
    ranks: Integers,
    easy: Sequence[Integers],
    hard: Sequence[Integers],
    junk: Sequence[Integers],
    difficulty: Difficulty,
) -> dict[str, Floats]:
    """Scores of each query by the revisited protocol: ignored images leave the ranking before places count.

    ``mAP``, ``mP@1``, ``mP@5`` and ``mP@10`` are fractions, [queries]; NaN for a query without a positive,
    which no mean counts (`mean_of_queries`).

    Positives | ignored: easy | junk and hard; easy and hard | junk; hard | junk and easy. The lists hold
    database indices for each query; each column of ``ranks`` [database queries] is a permutation of the
    database, best first. Raises ValueError where these do not fit, or an image is both positive and ignored.

    Source: Radenović et al., CVPR 2018, section 3.3.
    """
    if ranks.ndim != 2 or not len(easy) == len(hard) == len(junk) == ranks.shape[1]:
        raise ValueError(f"expected ranks [database queries] and three lists a query, found {ranks.shape}")
    positions = []
    for ranking, simple, difficult, ignored in zip(ranks.T, easy, hard, junk, strict=True):
        positive, ignore = {
            "easy": ((simple,), (ignored, difficult)),
            "medium": ((simple, difficult), (ignored,)),
            "hard": ((difficult,), (ignored, simple)),
        }[difficulty]
        positions.append(_places(ranking, _union(positive), _union(ignore)))
    measures = {"mAP": average_precision} | {f"mP@{k}": partial(precision_at, k=k) for k in CUTOFFS}
    return {
        name: np.array([measure(places) for places in positions], dtype=np.float64)
        for name, measure in measures.items()
    }


def _union(lists: Sequence[Integers]) -> Integers:
    """Different indices of several lists, ascending."""
    return np.unique(np.concatenate([np.asarray(indices, dtype=np.int64) for indices in lists]))


def _places(ranking: Integers, positive: Integers, ignore: Integers) -> Integers:
    """Zero-based places of the positives once the ignored images are taken out, ascending."""
    size = len(ranking)
    for indices in (positive, ignore):
        if indices.size and not 0 <= indices[0] <= indices[-1] < size:
            raise ValueError(f"ground truth names images outside the database of {size}")
    if np.intersect1d(positive, ignore).size:
        raise ValueError("an image must not be both positive and ignored for a query")
    if ranking.min(initial=0) < 0 or not (np.bincount(ranking, minlength=size) == 1).all():
        raise ValueError(f"each ranking must be a permutation of the {size} database images")
    rank_of = np.empty(size, dtype=np.int64)
    rank_of[ranking] = np.arange(size)
    kept = np.sort(rank_of[positive])
    return (kept - np.searchsorted(np.sort(rank_of[ignore]), kept)).astype(np.int64)


def mean_of_queries(values: Floats) -> float:
    """Mean of the finite values; NaN where there is none."""
    return mean_of_any(values[np.isfinite(values)])
