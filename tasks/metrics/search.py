"""Exact search of unit vectors, in faiss or torch; results do not depend on which of them it was."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import faiss
import numpy as np
import torch
from numpy.typing import NDArray

from tasks.metrics.arrays import Integers
from tasks.metrics.means import Key, mean_of

Vectors = NDArray[np.float32]

EXTRA = 16  # neighbours searched beyond k, so that ties at the k-th place are seen
CHUNK_FLOATS = 1 << 24  # similarities or scores held at a time
BANK_ROWS = 1 << 16  # bank rows a GPU compares at a time
LARGE = 1 << 27  # similarities from which on candidates are compared again in float64


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

    faiss searches on the CPU, torch on any other device. The candidates of large searches are compared in
    float64 and rounded, so that the result does not depend on the device.

    Args:
        bank: [n dim], no two rows equal.
        queries: [m dim].
        k: At most n.
        device: Where torch searches; faiss does, on the CPU, if None.
    """
    candidates = _search(bank, queries, min(k + EXTRA, len(bank)), device)
    if len(bank) * len(queries) >= LARGE:
        return settled(Cosines([(bank, queries)]), candidates, k)
    return _settle(bank, queries, candidates, k)


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
    units, alone = {0: (bank, queries)}, {0: (0,)}
    parts = chunks(len(queries), min(len(bank), BANK_ROWS))
    return joined([products_of_sets(units, alone, rows, k, device)[0] for rows in parts], k)


def products_of_sets(
    units: Mapping[Key, tuple[Vectors, Vectors]],
    sets: Mapping[Key, Sequence[Key]],
    rows: slice,
    k: int,
    device: torch.device | None,
    dtype: torch.dtype = torch.float32,
) -> dict[Key, Neighbours]:
    """Nearest bank vectors of some queries for each set of layers, by matrix products; ties in any order.

    The similarity of a set is the mean of its layers'. So many similarities are held at a time, of all layers
    together, as `BANK_ROWS` are of so many queries.

    Args:
        units: Of each layer its bank [n dim] and queries [m dim], unit vectors in one order.
        sets: For each set its layers.
        rows: Which queries.
        k: At most n.
        device: Where products are made; the CPU if None.
        dtype: In which they are made; similarities are rounded to float32.
    """
    best: dict[Key, tuple[torch.Tensor, torch.Tensor]] = {}
    block = max(k, BANK_ROWS // len(units))
    banks = {layer: torch.from_numpy(bank) for layer, (bank, _) in units.items()}
    asked = {
        layer: torch.from_numpy(queries[rows]).to(device, dtype) for layer, (_, queries) in units.items()
    }
    for start in range(0, len(next(iter(banks.values()))), block):
        some = slice(start, start + block)
        alike = {layer: asked[layer] @ bank[some].to(device, dtype).T for layer, bank in banks.items()}
        for name, members in sets.items():
            mean = mean_of([alike[member] for member in members])
            value, index = mean.topk(min(k, mean.shape[1]), dim=1)
            index += start
            if name in best:
                value, index = (
                    torch.cat(pair, dim=1) for pair in zip(best[name], (value, index), strict=True)
                )
                value, kept = value.topk(min(k, value.shape[1]), dim=1)
                index = index.gather(1, kept)
            best[name] = value, index
    return {
        name: Neighbours(value.float().cpu().numpy(), index.cpu().numpy())
        for name, (value, index) in best.items()
    }


def joined(parts: Sequence[Neighbours], k: int) -> Neighbours:
    """Neighbours of all queries from those of consecutive ones, k of each."""
    none = Neighbours(np.empty((0, k), np.float32), np.empty((0, k), np.int64))
    every = parts or [none]
    return Neighbours(
        np.concatenate([part.similarity for part in every]), np.concatenate([part.index for part in every])
    )


@dataclass(frozen=True)
class Cosines:
    """Cosines of queries with a bank: of one layer, or the means of several layers' cosines.

    Attributes:
        layers: Of each layer its bank [n dim] and queries [m dim], unit vectors in one order.
    """

    layers: Sequence[tuple[Vectors, Vectors]]

    def of(self, rows: slice) -> "Cosines":
        """Those of some queries."""
        return Cosines([(bank, queries[rows]) for bank, queries in self.layers])

    @property
    def doubt(self) -> float:
        """Several times what products in float32 are off."""
        return math.sqrt(max(bank.shape[1] for bank, _ in self.layers)) * 2.0**-23

    def exact(self, rows: Integers, index: Integers) -> Vectors:
        """Cosines of some queries with their candidates, of float64 sums, wherever they stand.

        Args:
            rows: Places of the queries, [some].
            index: Places of their candidates in the bank, [some candidates].
        """
        exact = np.empty(index.shape, dtype=np.float32)
        for number, (row, candidates) in enumerate(zip(rows, index, strict=True)):
            exact[number] = sum(
                _exact(bank, queries[row], candidates) for bank, queries in self.layers
            ) / len(self.layers)
        return exact

    def rough(self, rows: Integers) -> Vectors:
        """Cosines of some queries with all of the bank, in float32: [some n]."""
        total = sum(queries[rows] @ bank.T for bank, queries in self.layers)
        return np.asarray(total / np.float32(len(self.layers)), np.float32)


def settled(cosines: Cosines, found: Neighbours, k: int, exact: Vectors | None = None) -> Neighbours:
    """The first k by (-similarity, index) with similarities that do not depend on who searched.

    A similarity of the search may be off by some roundings of float32. Where that could hide one of the first
    k behind the last that was found, all of the bank is looked at.

    Args:
        cosines: Of all queries.
        found: More than k candidates of each, or all of the bank.
        k: How many are wanted.
        exact: Exact similarities of the candidates, where they are known.
    """
    doubt, bank = cosines.doubt, cosines.layers[0][0]
    shape = len(found.index), k
    similarity, index = np.empty(shape, np.float32), np.empty(shape, np.int64)
    every = np.arange(len(found.index))
    for rows in chunks(len(every), found.index.shape[1] * bank.shape[1]):
        known = cosines.exact(every[rows], found.index[rows]) if exact is None else exact[rows]
        order = np.lexsort((found.index[rows], -known), axis=1)[:, :k]
        similarity[rows] = np.take_along_axis(known, order, axis=1)
        index[rows] = np.take_along_axis(found.index[rows], order, axis=1)
    if found.index.shape[1] < len(bank):
        open_ended = np.flatnonzero(similarity[:, -1] - found.similarity.min(axis=1) <= doubt)
        for rows in chunks(len(open_ended), len(bank)):
            part = open_ended[rows]
            for query, row in zip(part, cosines.rough(part), strict=True):
                floor = np.partition(row, len(row) - k)[len(row) - k] - 2 * doubt
                candidates = np.flatnonzero(row >= floor)
                known = cosines.exact(np.array([query]), candidates[None])[0]
                best = np.argsort(-known, kind="stable")[:k]
                similarity[query], index[query] = known[best], candidates[best]
    return Neighbours(similarity, index)


def _exact(bank: Vectors, query: Vectors, candidates: Integers) -> NDArray[np.float64]:
    """Inner products of a query with candidates, of float64 sums: they stay in the cache."""
    near: NDArray[np.float64] = bank[candidates].astype(np.float64)
    return np.asarray(np.einsum("kd,d->k", near, query.astype(np.float64)), np.float64)


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
