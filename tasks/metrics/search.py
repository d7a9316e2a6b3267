"""Exact search of unit vectors, in faiss or torch; results do not depend on which of them it was."""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import faiss
import numpy as np
import torch
from numpy.typing import NDArray

from tasks.metrics.arrays import Integers

Vectors = NDArray[np.float32]

EXTRA = 16  # neighbours searched beyond k, so that ties at the k-th place are seen
CHUNK_FLOATS = 1 << 24  # similarities or scores held at a time
BANK_ROWS = 1 << 16  # bank rows a GPU compares at a time
LARGE = 1 << 27  # similarities from which on a search takes seconds
TRIAL = 1 << 10  # queries that each search takes when both are tried
CPU = torch.device("cpu")
_FASTER: dict[int, bool] = {}  # by length of vectors: whether torch was faster, in this process


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Bank vectors most similar to each query, best first; ties by lower bank index.

    Attributes:
        similarity: [queries k] cosine in [-1, 1].
        index: [queries k] position in the bank.
    """

    similarity: Vectors
    index: Integers


def chunks(rows: int, width: int) -> Iterator[slice]:
    """Slices of rows, each of a bounded number of values."""
    step = max(1, CHUNK_FLOATS // max(width, 1))
    return (slice(start, start + step) for start in range(0, rows, step))


def search(bank: Vectors, queries: Vectors, k: int, device: torch.device | None) -> Neighbours:
    """The first k distinct unit vectors of the bank for each query, by (-similarity, index).

    Large searches run in faiss or torch, whichever is faster on this machine, and their candidates are
    compared in float64 and rounded: the result depends neither on the choice nor on the device.

    Args:
        bank: [n dim], no two rows equal.
        queries: [m dim].
        k: At most n.
        device: Where torch searches; the CPU if None.
    """
    places = min(k + EXTRA, len(bank))
    large = len(bank) * len(queries) >= LARGE
    if large:
        found = _search(bank, queries, places, device) if device else _search_faster(bank, queries, places)
        return _settle_exactly(bank, queries, found, k)
    return _settle(bank, queries, _search(bank, queries, places, device), k)


def _search(bank: Vectors, queries: Vectors, k: int, device: torch.device | None) -> Neighbours:
    """Inner-product search of unit vectors; ties in any order."""
    if not len(queries):
        return Neighbours(np.empty((0, k), np.float32), np.empty((0, k), np.int64))
    if device is not None:
        return _search_torch(bank, queries, k, device)
    similarity, index = faiss.knn(queries, bank, k, metric=faiss.METRIC_INNER_PRODUCT)
    return Neighbours(similarity, index)


def _search_torch(bank: Vectors, queries: Vectors, k: int, device: torch.device) -> Neighbours:
    """The same search by matrix products: chunks of queries against chunks of the bank, both bounded."""
    parts: list[tuple[torch.Tensor, torch.Tensor]] = []
    everything = torch.from_numpy(bank)
    for rows in chunks(len(queries), min(len(bank), BANK_ROWS)):
        query = torch.from_numpy(queries[rows]).to(device)
        value = torch.empty((len(query), 0), device=device)
        place = torch.empty((len(query), 0), dtype=torch.int64, device=device)
        for start in range(0, len(bank), BANK_ROWS):
            chunk = everything[start : start + BANK_ROWS].to(device)
            best, where = (query @ chunk.T).topk(min(k, len(chunk)), dim=1)
            value, place = torch.cat([value, best], dim=1), torch.cat([place, where + start], dim=1)
            value, kept = value.topk(min(k, value.shape[1]), dim=1)
            place = place.gather(1, kept)
        parts.append((value.cpu(), place.cpu()))
    return Neighbours(
        torch.cat([value for value, _ in parts]).numpy(), torch.cat([place for _, place in parts]).numpy()
    )


def _search_faster(bank: Vectors, queries: Vectors, k: int) -> Neighbours:
    """The same search by whichever of faiss and torch is faster on this machine for vectors of that length.

    The first time each takes some of the queries: the trial is part of the work, and large enough for it, as
    faiss takes many times as long for a query among few.
    """
    dim, parts, tried = bank.shape[1], list[Neighbours](), 0
    if dim not in _FASTER:
        seconds = dict[bool, float]()
        some = min(TRIAL, len(queries) // 2)
        for on_torch in (True, False):
            begin = time.perf_counter()
            parts.append(_search(bank, queries[tried : tried + some], k, CPU if on_torch else None))
            seconds[on_torch] = time.perf_counter() - begin
            tried += some
        _FASTER[dim] = seconds[True] < seconds[False]
    parts.append(_search(bank, queries[tried:], k, CPU if _FASTER[dim] else None))
    return Neighbours(
        np.concatenate([part.similarity for part in parts]), np.concatenate([part.index for part in parts])
    )


def _settle_exactly(bank: Vectors, queries: Vectors, found: Neighbours, k: int) -> Neighbours:
    """The first k by (-similarity, index) with similarities that do not depend on who searched.

    A similarity of the search may be off by some roundings of float32. Where that could hide one of the first
    k behind the last that was found, all of the bank is looked at.
    """
    doubt = math.sqrt(bank.shape[1]) * 2.0**-23  # several times what products in float32 are off
    similarity, index = np.empty((len(queries), k), np.float32), np.empty((len(queries), k), np.int64)
    for rows in chunks(len(queries), found.index.shape[1] * bank.shape[1]):
        exact = _similarities(bank, queries[rows], found.index[rows])
        order = np.lexsort((found.index[rows], -exact), axis=1)[:, :k]
        similarity[rows] = np.take_along_axis(exact, order, axis=1)
        index[rows] = np.take_along_axis(found.index[rows], order, axis=1)
    if found.index.shape[1] < len(bank):
        open_ended = np.flatnonzero(similarity[:, -1] - found.similarity.min(axis=1) <= doubt)
        for rows in chunks(len(open_ended), len(bank)):
            part = open_ended[rows]
            for query, row in zip(part, queries[part] @ bank.T, strict=True):
                floor = np.partition(row, len(row) - k)[len(row) - k] - 2 * doubt
                candidates = np.flatnonzero(row >= floor)
                exact = _similarities(bank, queries[[query]], candidates[None])[0]
                best = np.argsort(-exact, kind="stable")[:k]
                similarity[query], index[query] = exact[best], candidates[best]
    return Neighbours(similarity, index)


def _similarities(bank: Vectors, queries: Vectors, index: Integers) -> Vectors:
    """Cosine of each query with its candidates [queries candidates], of float64 sums, wherever they stand."""
    exact = np.empty(index.shape, dtype=np.float32)
    for row, (query, candidates) in enumerate(zip(queries.astype(np.float64), index, strict=True)):
        exact[row] = np.einsum("kd,d->k", bank[candidates].astype(np.float64), query)  # stays in the cache
    return exact


def _settle(bank: Vectors, queries: Vectors, found: Neighbours, k: int) -> Neighbours:
    """The first k by (-similarity, index); queries with ties past what was found are looked at whole."""
    order = np.lexsort((found.index, -found.similarity), axis=1)[:, :k]
    similarity = np.take_along_axis(found.similarity, order, axis=1)
    index = np.take_along_axis(found.index, order, axis=1)
    if found.index.shape[1] < len(bank):
        open_ended = np.flatnonzero(found.similarity[:, k - 1] == found.similarity[:, -1])
        for rows in chunks(len(open_ended), len(bank)):
            part = open_ended[rows]
            for query, row in zip(part, queries[part] @ bank.T, strict=True):
                floor = np.partition(row, len(row) - k)[len(row) - k]
                candidates = np.flatnonzero(row >= floor)
                best = candidates[np.argsort(-row[candidates], kind="stable")[:k]]
                similarity[query], index[query] = row[best], best
    return Neighbours(similarity, index)
