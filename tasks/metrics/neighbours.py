"""Exact nearest neighbours by cosine, and the weighted vote over them."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from tasks.metrics.arrays import SHORTEST, Floats, Integers
from tasks.metrics.search import Neighbours, Vectors, chunks, search

RANKED = 5


def nearest(bank: Vectors, queries: Vectors, k: int, *, device: torch.device | None = None) -> Neighbours:
    """The k bank vectors of highest cosine to each query, from one exact search.

    Equal bank vectors (also a bank of one repeated vector) and equal similarities are ordered by bank index,
    also across the k-th place, so the result does not depend on how the search is blocked. The candidates of
    large searches are compared in float64 and rounded, so that the result does not depend on the device.

    Args:
        bank: [n dim], any length of vector; a zero vector has cosine 0 with everything.
        queries: [m dim].
        k: Neighbours wanted; n of them come back where the bank is smaller.
        device: Where torch searches; faiss does, on the CPU, if None.

    Raises:
        ValueError: Shapes do not fit, the bank is empty, k < 1, or a value is NaN or infinite.
    """
    _check(bank, queries, k)
    k = min(k, len(bank))
    unique, members = _collapse(unit_vectors(bank))
    wanted, repeats = _collapse(unit_vectors(queries))
    ordered = search(unique, wanted, min(k, len(unique)), device)
    full = _expand(ordered, members, k)
    return Neighbours(full.similarity[repeats.group], full.index[repeats.group])


def vote(neighbours: Neighbours, labels: Integers, k: int, classes: int, temperature: float) -> Integers:
    """Best classes of each query by the sum of exp(cosine / temperature) over its k nearest neighbours.

    Summed in float64 relative to the best neighbour, so no temperature overflows. Ties go to the lower class.

    Args:
        neighbours: From a search with at least this k, or of the whole bank.
        labels: [n] class of each bank vector, 0 to classes - 1.
        k: Neighbours that vote; all of the bank where it is smaller.
        classes: Number of classes.
        temperature: Positive.

    Returns:
        [queries min(5, classes)], best first; -1 where no further class has a neighbour.

    Raises:
        ValueError: A label outside the classes, k beyond what was searched, or a bad k or temperature.
    """
    width = neighbours.index.shape[1]
    _check_vote(neighbours, labels, k, classes, temperature)
    k = min(k, width)
    ranked = np.empty((len(neighbours.index), min(RANKED, classes)), dtype=np.int64)
    for rows in chunks(len(ranked), classes):
        similarity = neighbours.similarity[rows, :k].astype(np.float64)
        weight = np.exp((similarity - similarity.max(axis=1, keepdims=True)) / temperature)
        cell = labels[neighbours.index[rows, :k]] + classes * np.arange(len(weight))[:, None]
        size = len(weight) * classes
        score = np.bincount(cell.ravel(), weight.ravel(), size).astype(np.float64)
        score[np.bincount(cell.ravel(), minlength=size) == 0] = -1.0
        ranked[rows] = _best(score.reshape(len(weight), classes), ranked.shape[1])
    return ranked


def top_k_correct(ranked: Integers, labels: Integers, k: int) -> NDArray[np.bool_]:
    """Whether each query's label is among its first k ranked classes: [queries].

    Raises:
        ValueError: Shapes do not fit, k < 1, or a label is negative.
    """
    if ranked.ndim != 2 or labels.shape != (len(ranked),):
        raise ValueError(f"expected ranked [m r] and labels [m], found {ranked.shape} and {labels.shape}")
    if k < 1:
        raise ValueError(f"expected k of at least 1, found {k}")
    if labels.size and labels.min() < 0:
        raise ValueError("labels must not be negative")
    correct: NDArray[np.bool_] = (ranked[:, :k] == labels[:, None]).any(axis=1)
    return correct


@dataclass(frozen=True, slots=True)
class _Groups:
    """Rows that are equal: ``rows[start[g]:start[g + 1]]`` ascending for group g; ``group`` of each row."""

    rows: Integers
    start: Integers
    group: Integers

    def smallest(self, number: int, k: int) -> Integers:
        """The k lowest rows of a group."""
        return self.rows[self.start[number] : min(self.start[number + 1], self.start[number] + k)]


def _check(bank: Vectors, queries: Vectors, k: int) -> None:
    if bank.ndim != 2 or queries.ndim != 2 or bank.shape[1] != queries.shape[1]:
        raise ValueError(f"expected bank [n dim] and queries [m dim], found {bank.shape} and {queries.shape}")
    if not bank.size:
        raise ValueError("the bank must hold at least one vector of at least one number")
    if k < 1:
        raise ValueError(f"expected k of at least 1, found {k}")
    for name, array in (("bank", bank), ("queries", queries)):
        if not all(np.isfinite(array[rows]).all() for rows in chunks(len(array), array.shape[1])):
            raise ValueError(f"the {name} must not hold NaN or infinite values")


def _check_vote(neighbours: Neighbours, labels: Integers, k: int, classes: int, temperature: float) -> None:
    width = neighbours.index.shape[1]
    if labels.ndim != 1 or (neighbours.index.size and neighbours.index.max() >= len(labels)):
        raise ValueError(f"expected one label for each bank vector, found labels {labels.shape}")
    if labels.size and not 0 <= labels.min() <= labels.max() < classes:
        raise ValueError(f"labels must lie in 0..{classes - 1}, found {labels.min()}..{labels.max()}")
    if k < 1 or width < min(k, len(labels)):
        raise ValueError(f"expected k of 1 to {width}, the neighbours that were searched, found {k}")
    if not temperature > 0:
        raise ValueError(f"the temperature must be positive, found {temperature}")


def unit_vectors(vectors: Vectors) -> Vectors:
    """Rows of Euclidean length 1, float32, contiguous."""
    unit = np.empty(vectors.shape, dtype=np.float32)
    for rows in chunks(len(vectors), vectors.shape[1]):
        part = vectors[rows].astype(np.float64)
        unit[rows] = part / np.maximum(np.sqrt(np.square(part).sum(axis=1, keepdims=True)), SHORTEST)
    return unit


def _collapse(unit: Vectors) -> tuple[Vectors, _Groups]:
    """Distinct rows in order of first occurrence, and which rows are equal to each.

    Matrix products may round equal rows differently, by where they stand in a block: only collapsed rows tie.
    """
    unit += 0.0  # minus zero becomes zero, so that equal rows have equal bytes
    first: dict[int, int] = {}
    seen = [first.setdefault(hash(row.tobytes()), number) for number, row in enumerate(unit)]
    origin = np.asarray(seen, dtype=np.int64)
    repeated = np.flatnonzero(origin != np.arange(len(unit)))
    for rows in chunks(len(repeated), unit.shape[1]):
        part = repeated[rows]
        collided = part[(unit[part] != unit[origin[part]]).any(axis=1)]
        origin[collided] = collided  # a hash collision: the row stands for itself
    heads, group = np.unique(origin, return_inverse=True)
    group = group.astype(np.int64)
    start = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=len(heads)))]).astype(np.int64)
    groups = _Groups(np.argsort(group, kind="stable").astype(np.int64), start, group)
    return (unit if len(heads) == len(unit) else unit[heads]), groups


def _expand(found: Neighbours, groups: _Groups, k: int) -> Neighbours:
    """Neighbours among all rows from those among the distinct ones: a group stands for its members."""
    heads = groups.rows[groups.start[:-1]]
    if len(heads) == len(groups.rows):
        return found
    shape = (len(found.index), k)
    similarity, index = np.empty(shape, np.float32), np.empty(shape, np.int64)
    alone = np.zeros(len(found.index), dtype=np.bool_)
    if found.index.shape[1] == k:
        alone = (np.diff(groups.start)[found.index] == 1).all(axis=1)
        similarity[alone], index[alone] = found.similarity[alone], heads[found.index[alone]]
    for query in np.flatnonzero(~alone):
        rows = [groups.smallest(number, k) for number in found.index[query]]
        value = np.repeat(found.similarity[query], [len(part) for part in rows])
        every = np.concatenate(rows)
        best = np.lexsort((every, -value))[:k]
        similarity[query], index[query] = value[best], every[best]
    return Neighbours(similarity, index)


def _best(score: Floats, places: int) -> Integers:
    """Columns of the largest scores of each row, -1 where only negative ones are left; overwrites score."""
    ranked = np.empty((len(score), places), dtype=np.int64)
    rows = np.arange(len(score))
    for rank in range(places):
        column = score.argmax(axis=1)
        ranked[:, rank] = np.where(score[rows, column] < 0, -1, column)
        score[rows, column] = -1.0
    return ranked
