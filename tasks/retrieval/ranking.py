"""Retrieval scores of revisited Oxford and Paris."""

from collections.abc import Sequence
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from layerboard.tasks.metrics.arrays import Floats, Integers, lengths

Difficulty = Literal["easy", "medium", "hard"]
CUTOFFS = (1, 5, 10)


def cosine_similarities(database: NDArray[np.floating], queries: NDArray[np.floating]) -> Floats:
    """Cosines of vectors [database dim] with [queries dim]: [database queries]; 0 for a zero vector."""
    wide = [vectors.astype(np.float64) for vectors in (database, queries)]
    database_lengths, query_lengths = (lengths(each)[:, 0] for each in wide)
    # products of whole numbers are exact, so binary codes at equal distances have equal cosines
    return np.asarray(wide[0] @ wide[1].T / np.multiply.outer(database_lengths, query_lengths))


def rank(similarity: NDArray[np.floating]) -> Integers:
    """Database indices sorted for each query, most similar first, ties by lower index: [database queries]."""
    return np.argsort(-similarity, axis=0, kind="stable").astype(np.int64)


def trapezoid_average_precision(positions: Integers) -> float:
    """Area under the precision-recall steps by the trapezoid rule, in [0, 1]; NaN without positions.

    ``positions`` are the distinct zero-based ranks of the positives in a ranking without junk images.

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
    """Precision at min(k, rank of the last positive), from zero-based positions; NaN without positions."""
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
    """Scores of each query in the revisited protocol, with ignored images removed from the ranking.

    ``mAP``, ``mP@1``, ``mP@5`` and ``mP@10`` are fractions, [queries]; NaN for a query without positives,
    which means leave out (`mean_of_queries`).

    Positives and ignored images are: easy, and junk and hard (Easy); easy and hard, and junk (Medium); hard,
    and junk and easy (Hard). The lists hold the database indices for each query. Each column of ``ranks``
    [database queries] is a permutation of the database, best first. No image of a query is in two lists.

    Source: Radenović et al., CVPR 2018, section 3.3.
    """
    positions = []
    for ranking, simple, difficult, ignored in zip(ranks.T, easy, hard, junk, strict=True):
        positive, ignore = {
            "easy": ((simple,), (ignored, difficult)),
            "medium": ((simple, difficult), (ignored,)),
            "hard": ((difficult,), (ignored, simple)),
        }[difficulty]
        positions.append(_places(ranking, _union(positive), _union(ignore)))
    measures = {"mAP": trapezoid_average_precision} | {f"mP@{k}": partial(precision_at, k=k) for k in CUTOFFS}
    return {
        name: np.array([measure(places) for places in positions], dtype=np.float64)
        for name, measure in measures.items()
    }


def _union(lists: Sequence[Integers]) -> Integers:
    """Distinct indices of several lists, ascending."""
    return np.unique(np.concatenate([np.asarray(indices, dtype=np.int64) for indices in lists]))


def _places(ranking: Integers, positive: Integers, ignore: Integers) -> Integers:
    """Zero-based ranks of the positives after removal of the ignored images, ascending."""
    rank_of = np.empty(len(ranking), dtype=np.int64)
    rank_of[ranking] = np.arange(len(ranking))
    kept = np.sort(rank_of[positive])
    return (kept - np.searchsorted(np.sort(rank_of[ignore]), kept)).astype(np.int64)
