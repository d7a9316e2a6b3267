"""Exact nearest neighbours by cosine, and a weighted vote over them.

All devices give the same neighbours; their similarities differ by rounding of float32 (about 2e-7).
"""

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from layerboard.tasks.metrics.arrays import SHORTEST, Features, Floats, Integers

Key = TypeVar("Key", bound=Hashable)  # name of a layer or of its member
Vectors = NDArray[np.float32]

EXTRA = 8  # neighbours searched beyond k, to detect ties at the k-th place
CHUNK_FLOATS = 1 << 24  # similarities or scores in memory at a time
CACHED_FLOATS = 1 << 16  # values that fit in a CPU cache, in float64 and with an intermediate result
BANK_ROWS = 50_000  # bank rows that are compared at a time; similarities 2^16 apart would share cache lines
GROUP = 32  # neighbouring similarities whose maximum tells whether one of them may be among the highest
FEW_GROUPS = 4  # times k groups, below which it is faster to sort all similarities
PARALLEL = 1 - 2.0**-16  # cosine with their middle above which float32 cannot rank vectors by cosine
FEW = 64  # vectors, which usually show that not all are parallel
HASHED = 8  # numbers of a vector, in which most that differ do
RANKED = 5  # number of classes that a vote ranks


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The bank vectors most similar to each query, best first; ties by lower bank index."""

    similarity: Vectors  # [queries k] cosine in [-1, 1]
    index: Integers  # [queries k] index in the bank

    def first(self, k: int) -> "Neighbours":
        return Neighbours(self.similarity[:, :k], self.index[:, :k])


def mean_of(similarities: Sequence[Tensor]) -> Tensor:
    """Mean of tensors of one shape; a single tensor is returned as it is."""
    return similarities[0] if len(similarities) == 1 else torch.stack(list(similarities)).mean(0)


def chunks(rows: int, width: int, most: int | None = None) -> Iterator[slice]:
    """Consecutive slices of the rows with at most ``most`` values each, by default `CHUNK_FLOATS`."""
    step = max(1, (most or CHUNK_FLOATS) // max(width, 1))
    return (slice(start, start + step) for start in range(0, rows, step))


def in_threads(work: Callable[[slice], None], parts: Iterable[slice]) -> None:
    """Call ``work``, which must release the GIL, on each part, in as many threads as torch uses."""
    with ThreadPoolExecutor(torch.get_num_threads()) as pool:
        for _ in pool.map(work, parts):  # raises the exception of a part, if any
            pass


@dataclass(frozen=True)
class UnitRows:
    """Vectors as rows of length 1, float32, computed in float64 where they are read.

    So a search needs the memory of a block beside its bank.
    """

    vectors: Features  # [n dim], finite
    length: Floats  # [n 1] Euclidean lengths; 1 for a zero vector, which stays zero

    def __len__(self) -> int:
        return len(self.vectors)

    def at(self, index: Integers) -> Vectors:
        """Some rows [rows dim]."""
        return (self.vectors[index] / self.length[index]).astype(np.float32)

    def between(self, start: int, room: Vectors) -> Vectors:
        """The rows from ``start`` on, as many as there are or fit, written to ``room`` [rows dim]."""
        vectors, length = (each[start : start + len(room)] for each in (self.vectors, self.length))

        def fill(rows: slice) -> None:
            unit = room[: len(vectors)][rows]
            # numpy converts small parts, which stay in the cache
            np.divide(vectors[rows], length[rows], out=unit, dtype=np.float64, casting="same_kind")

        in_threads(fill, chunks(len(vectors), vectors.shape[1], CACHED_FLOATS))
        return room[: len(vectors)]

    def every(self) -> Vectors:
        """All rows, in new memory."""
        return self.between(0, np.empty(self.vectors.shape, np.float32))


def as_unit_rows(vectors: Features, name: str = "vectors") -> UnitRows:
    """Vectors [n dim] as rows of length 1.

    Raises ValueError, which calls the vectors by their ``name``, if a value is NaN or infinite.
    """
    length = np.empty((len(vectors), 1))

    def fill(rows: slice) -> None:
        length[rows] = np.sqrt(np.square(vectors[rows], dtype=np.float64).sum(axis=1, keepdims=True))

    in_threads(fill, chunks(len(vectors), vectors.shape[1], CACHED_FLOATS))
    if not np.isfinite(length).all():
        raise ValueError(f"{name} must not hold NaN or infinite values")
    length[length == 0] = 1.0
    return UnitRows(vectors, length)


def unit_vectors(vectors: Features) -> Vectors:
    """All rows of `as_unit_rows`, contiguous; a zero vector stays zero. Raises ValueError as it does."""
    return as_unit_rows(vectors).every()


def search(bank: UnitRows, queries: Vectors, k: int, device: torch.device | None) -> Neighbours:
    """The k nearest of distinct unit vectors [n dim] to each query [m dim], by (-similarity, index)."""
    wanted, units, alone = min(k + EXTRA, len(bank)), {0: (bank, queries)}, {0: (0,)}
    parts = chunks(len(queries), wanted)
    searched = [products_of_layers(units, alone, rows, wanted, device)[0] for rows in parts]
    return settled(Cosines([(bank, queries)]), concatenate_neighbours(searched, wanted), k)


def products_of_layers(
    units: Mapping[Key, tuple[UnitRows, Vectors]],
    layers: Mapping[Key, Sequence[Key]],
    rows: slice,
    k: int,
    device: torch.device | None,
    dtype: torch.dtype = torch.float32,
) -> dict[Key, Neighbours]:
    """The k <= n nearest bank vectors of some queries for each layer, by products; ties in any order.

    The similarity of a layer is the mean of its members' similarities. ``units`` has the bank [n dim] and the
    queries [m dim] of each member: unit vectors, in the same order for all. ``layers`` lists the members of
    each layer. Every bank vector is copied to the device once. At a time, there are `BANK_ROWS` bank vectors
    in its memory, `CHUNK_FLOATS` similarities of each member, and k neighbours of all these queries for each
    layer. The products run on the CPU if the device is None, and are rounded to float32.
    """
    asked = {
        member: torch.from_numpy(queries[rows]).to(device, dtype) for member, (_, queries) in units.items()
    }
    stored, count = len(next(iter(units.values()))[0]), len(next(iter(asked.values())))
    block, width = min(stored, max(k, BANK_ROWS // len(units))), min(stored, BANK_ROWS)
    best = {
        name: (
            torch.full((count, k), -math.inf, dtype=dtype, device=device),
            torch.zeros((count, k), dtype=torch.int64, device=device),
        )
        for name in layers
    }
    # new memory costs time
    blocks = {
        member: np.empty((block, bank.vectors.shape[1]), np.float32) for member, (bank, _) in units.items()
    }
    room = {member: torch.empty(0, dtype=dtype, device=device) for member in units}
    for start in range(0, stored, block):
        some = {
            member: torch.from_numpy(bank.between(start, blocks[member])).to(device, dtype).T
            for member, (bank, _) in units.items()
        }
        for part in chunks(count, width):
            alike = {
                member: torch.mm(asked[member][part], bank, out=room[member].resize_(0))
                for member, bank in some.items()
            }
            for name, members in layers.items():
                similarity, indices = (each[part] for each in best[name])
                keep_highest(similarity, indices, mean_of([alike[member] for member in members]), start)
    return {
        name: Neighbours(similarity.float().cpu().numpy(), index.cpu().numpy())
        for name, (similarity, index) in best.items()
    }


def keep_highest(similarity: Tensor, index: Tensor, values: Tensor, start: int) -> None:
    """Bring the k highest ``values`` [queries n] among the k highest so far, in place; ties in any order.

    ``similarity`` and ``index`` [queries k] are the highest values before, in descending order, and their
    columns; -inf where there are fewer. ``values`` are those of the columns from ``start`` on.

    At least k values are as high as the k-th largest of the maxima of `GROUP` columns each. So only groups
    whose maximum reaches that, and the k-th highest value so far, hold values that must be sorted: of a large
    bank few more than k.
    """
    k, (count, width) = similarity.shape[1], values.shape
    whole = width // GROUP * GROUP if start or width >= FEW_GROUPS * k * GROUP else 0
    rest = torch.arange(start + whole, start + width, device=values.device).expand(count, -1)
    every, columns = [similarity, values[:, whole:]], [index, rest]
    if whole:
        groups = values[:, :whole].view(count, whole // GROUP, GROUP)
        highest = groups.amax(2)
        least = similarity[:, -1:]
        if highest.shape[1] >= k:
            least = torch.maximum(least, highest.topk(k, dim=1).values[:, -1:])
        query, group = (highest >= least).nonzero(as_tuple=True)
        members = groups[query, group]
        row, member = (members >= least[query]).nonzero(as_tuple=True)
        query, column = query[row], group[row] * GROUP + member
        numbers = torch.arange(len(query), device=values.device)
        rank = numbers - torch.searchsorted(query, query)  # among those of its query
        high = values.new_full((count, int(rank.max()) + 1 if len(rank) else 0), -math.inf)
        high_columns = torch.zeros_like(high, dtype=torch.int64)
        high[query, rank], high_columns[query, rank] = members[row, member], column + start
        every, columns = [*every, high], [*columns, high_columns]
    value, order = torch.cat(every, dim=1).topk(k, dim=1)
    index.copy_(torch.cat(columns, dim=1).gather(1, order))
    similarity.copy_(value)


def concatenate_neighbours(parts: Sequence[Neighbours], k: int) -> Neighbours:
    """Neighbours of all queries, concatenated from those of consecutive queries, k each."""
    every = parts or [Neighbours(np.empty((0, k), np.float32), np.empty((0, k), np.int64))]
    return Neighbours(
        np.concatenate([part.similarity for part in every]), np.concatenate([part.index for part in every])
    )


@dataclass(frozen=True)
class Cosines:
    """Cosines of queries with a bank: the means over the members of a layer."""

    members: Sequence[
        tuple[UnitRows, Vectors]
    ]  # bank [n dim] and queries [m dim] of each member: unit vectors, in the same order for all

    def of(self, rows: slice) -> "Cosines":
        return Cosines([(bank, queries[rows]) for bank, queries in self.members])

    @property
    def doubt(self) -> float:
        """Bound on the error of float32 products: several times their usual error."""
        return math.sqrt(max(queries.shape[1] for _, queries in self.members)) * 2.0**-23

    def exact(self, query: Integers, index: Integers) -> Vectors:
        """Cosines of pairs of a query and a bank vector, by their indices [pairs], from float64 sums.

        A single query is compared with all of ``index``.
        """
        sums = (
            np.einsum("pd,pd->p", bank.at(index).astype(np.float64), queries[query].astype(np.float64))
            for bank, queries in self.members
        )
        return np.asarray(sum(sums) / len(self.members), np.float32)

    def rough(self, rows: Integers, banks: Sequence[Vectors]) -> Vectors:
        """Cosines of the queries ``rows`` with whole ``banks``, the members', in float32: [rows n]."""
        both = zip(banks, self.members, strict=True)
        total = sum(queries[rows] @ bank.T for bank, (_, queries) in both)
        return np.asarray(total / np.float32(len(self.members)), np.float32)


def settled(cosines: Cosines, candidates: Neighbours, k: int) -> Neighbours:
    """The first k candidates by (-similarity, index), in an order that no rounding error of a search changes.

    ``candidates`` are more than k for each query, best first, or the whole bank. Cosines that float32 cannot
    tell apart are computed again in float64 and rounded, which makes equal ones equal. If such errors could
    hide one of the first k behind the last candidate, the whole bank is compared.
    """
    doubt, (bank, queries) = cosines.doubt, cosines.members[0]
    count, width = candidates.index.shape
    near = candidates.similarity.copy()
    close = np.zeros(near.shape, np.bool_)
    close[:, 1:] = near[:, :-1] - near[:, 1:] <= doubt
    close[:, :-1] |= close[:, 1:]
    similarity, index = np.empty((count, k), np.float32), np.empty((count, k), np.int64)

    def settle(rows: slice) -> None:
        query, rank = np.nonzero(close[rows])
        query += rows.start
        near[query, rank] = cosines.exact(query, candidates.index[query, rank])
        order = np.lexsort((candidates.index[rows], -near[rows]), axis=1)[:, :k]
        similarity[rows] = np.take_along_axis(near[rows], order, axis=1)
        index[rows] = np.take_along_axis(candidates.index[rows], order, axis=1)

    in_threads(settle, chunks(count, width * queries.shape[1], CHUNK_FLOATS // 8))
    if width == len(bank):
        return Neighbours(similarity, index)
    open_ended = np.flatnonzero(similarity[:, -1] - candidates.similarity.min(axis=1) <= doubt)
    banks = [whole.every() for whole, _ in cosines.members] if open_ended.size else []
    for rows in chunks(len(open_ended), len(bank)):
        part = open_ended[rows]
        for query, row in zip(part, cosines.rough(part, banks), strict=True):
            floor = np.partition(row, len(row) - k)[len(row) - k] - 2 * doubt
            above = np.flatnonzero(row >= floor)
            exact = cosines.exact(np.array([query]), above)
            best = np.argsort(-exact, kind="stable")[:k]
            similarity[query], index[query] = exact[best], above[best]
    return Neighbours(similarity, index)


def nearest(bank: Vectors, queries: Vectors, k: int, *, device: torch.device | None = None) -> Neighbours:
    """The k bank vectors [n dim] of highest cosine to each query [m dim], from one exact search.

    Vectors may have any length; a zero vector has cosine 0 with every vector. If n < k, n neighbours are
    returned. Equal bank vectors (even a bank of one repeated vector) and equal similarities are ordered by
    bank index, also across the k-th place, so the result does not depend on how the search is split into
    blocks. Vectors that are nearly `parallel` are ranked by what they differ in. With device None the search
    is on the CPU. Raises ValueError if a value is NaN or infinite.
    """
    k = min(k, len(bank))
    units = as_unit_rows(bank, "the bank"), as_unit_rows(queries, "the queries")
    if parallel(*units):
        return _nearest_of_parallel(*units, k, device)
    return _nearest(*units, k, device)


def nearest_of_layers(
    banks: Mapping[Key, NDArray[np.float32]],
    queries: Mapping[Key, NDArray[np.float32]],
    layers: Mapping[Key, Sequence[Key]],
    k: int,
    *,
    device: torch.device | None = None,
) -> Iterator[dict[Key, Neighbours]]:
    """Exact search of the k bank vectors with the highest cosine to each query, for each layer.

    ``layers`` lists the members of each; if each has one, it is searched by `nearest`. The cosine of a layer
    is the mean of its members' cosines; ties are ordered by bank index. The products of a member are computed
    once, however many layers have it. They are in float64, so that the cosines, rounded to float32, depend
    neither on the blocks nor on the device. The unit vectors of all queries are in memory in float32,
    together with the similarities of each member and the neighbours of a chunk of queries for all layers.

    Each member has a bank [n dim] and queries [m dim], as in `nearest`. Yields the neighbours of each layer
    for consecutive chunks of queries.
    """
    if not layers:
        return
    if all(len(members) == 1 for members in layers.values()):
        for rows in chunks(len(next(iter(queries.values()))), k):
            yield {
                name: nearest(banks[member], queries[member][rows], k, device=device)
                for name, (member,) in layers.items()
            }
        return
    units = {member: (as_unit_rows(bank), unit_vectors(queries[member])) for member, bank in banks.items()}
    stored, asked = (len(part) for part in next(iter(units.values())))
    k = min(k, stored)
    product_device = None if device is None or device.type == "mps" else device  # MPS has no float64
    cosines = {name: Cosines([units[member] for member in members]) for name, members in layers.items()}
    wanted = min(k + EXTRA, stored)
    for rows in chunks(asked, wanted * len(layers)):
        candidates = products_of_layers(units, layers, rows, wanted, product_device, torch.float64)
        yield {name: settled(cosines[name].of(rows), each, k) for name, each in candidates.items()}


def _nearest(bank: UnitRows, queries: UnitRows, k: int, device: torch.device | None) -> Neighbours:
    unique, group = _collapse(bank)
    wanted, repeated = _collapse(queries)
    full = _expand(search(unique, wanted.every(), min(k, len(unique)), device), group, k)
    return Neighbours(full.similarity[repeated], full.index[repeated])


def parallel(*units: UnitRows) -> bool:
    """Whether unit vectors [n dim] have so nearly one direction that float32 cannot rank their cosines."""
    few = units[0].at(np.arange(0, len(units[0]), max(1, len(units[0]) // FEW)))
    # two of them are apart by up to twice the angle to the middle
    if float((few @ few[:1].T).min(initial=1.0)) < 4 * PARALLEL - 3:
        return False
    middle = units[0].every().mean(axis=0, dtype=np.float64)
    middle /= max(float(np.linalg.norm(middle)), SHORTEST)
    cosines = (each.every() @ middle.astype(np.float32) for each in units)
    return all(float(some.min(initial=1.0)) > PARALLEL for some in cosines)


def _nearest_of_parallel(
    bank: UnitRows, queries: UnitRows, k: int, device: torch.device | None
) -> Neighbours:
    """`nearest` by the distances of unit vectors, from what they differ in from a vector in their middle.

    The distance of two unit vectors u and v is a square of 2 - 2 cos, and for u and v from the middle it is
    smallest where u v - v v / 2 is largest: an inner product with one more number.
    """
    middle = bank.every().mean(axis=0, dtype=np.float64)
    known, asked = ((each.vectors / each.length - middle).astype(np.float32) for each in (bank, queries))
    scale = max(float(np.linalg.norm(each, axis=1).max(initial=0.0)) for each in (known, asked)) or 1.0
    known, asked = known / np.float32(scale), asked / np.float32(scale)
    squares = [np.square(each, dtype=np.float64).sum(axis=1, keepdims=True) for each in (known, asked)]
    longer = np.hstack([known, (-squares[0] / 2).astype(np.float32)])
    both = longer, np.hstack([asked, np.ones_like(asked[:, :1])])
    bank, queries = (UnitRows(each, np.ones((len(each), 1))) for each in both)  # read as they are
    neighbours = _nearest(bank, queries, k, device)
    cosine = 1.0 + scale**2 * (neighbours.similarity - squares[1] / 2)
    return Neighbours(np.minimum(cosine, 1.0).astype(np.float32), neighbours.index)


def vote(neighbours: Neighbours, labels: Integers, k: int, classes: int, temperature: float) -> Integers:
    """Classes of each query ranked by the sum of exp(cosine / temperature) over its k nearest neighbours.

    The result is [queries min(5, classes)], best first, -1 if no further class has a neighbour. Ties go to
    the lower class. Sums are in float64 relative to the best neighbour, so no temperature overflows.
    ``labels`` [n] are the classes of the bank, from 0; if it has fewer than k vectors, all vote.
    """
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


def vote_share(
    neighbours: Neighbours, labels: Integers, given: Integers, k: int, temperature: float
) -> Floats:
    """Share of the `vote` for the class ``given`` to each query: [queries], 0 to 1."""
    similarity = neighbours.similarity[:, :k].astype(np.float64)
    weight = np.exp((similarity - similarity.max(axis=1, keepdims=True)) / temperature)
    own = labels[neighbours.index[:, :k]] == given[:, None]
    share: Floats = (weight * own).sum(axis=1) / weight.sum(axis=1)
    return share.clip(0, 1)


def top_k_correct(ranked: Integers, labels: Integers, k: int) -> NDArray[np.bool_]:
    """Whether each query's label, from 0, is among its first k ranked classes: [queries]."""
    correct: NDArray[np.bool_] = (ranked[:, :k] == labels[:, None]).any(axis=1)
    return correct


def _collapse(unit: UnitRows) -> tuple[UnitRows, Integers]:
    """Distinct rows in order of first occurrence, and the index of the distinct row that each row equals.

    Matrix products may round equal rows differently, depending on their position in a block. Only collapsed
    rows have exactly equal similarities.
    """
    origin, few = np.arange(len(unit)), unit.vectors[:, :: max(1, unit.vectors.shape[1] // HASHED)]
    hashes = _hashes(UnitRows(few, unit.length).every())
    _, same, count = np.unique(hashes, return_inverse=True, return_counts=True)
    alike = np.flatnonzero(count[same] > 1)
    _, first, same = np.unique(_hashes(unit.at(alike)), return_index=True, return_inverse=True)
    origin[alike] = alike[first[same]]
    repeated = np.flatnonzero(origin != np.arange(len(unit)))
    for rows in chunks(len(repeated), unit.vectors.shape[1]):
        part = repeated[rows]
        collided = part[(unit.at(part) != unit.at(origin[part])).any(axis=1)]
        origin[collided] = collided  # a hash collision: the row stands for itself
    heads, group = np.unique(origin, return_inverse=True)
    return unit if len(heads) == len(unit) else UnitRows(unit.vectors[heads], unit.length[heads]), group


def _hashes(vectors: Vectors) -> NDArray[np.uint64]:
    """Hash of the bits of each row of [n dim]: their sum weighted by odd factors, modulo 2^64."""
    factors = np.random.default_rng(0).integers(1 << 63, size=vectors.shape[1:], dtype=np.uint64) * 2 + 1
    hashes = np.empty(len(vectors), np.uint64)

    def fill(rows: slice) -> None:
        bits = (vectors[rows] + np.float32(0)).view(np.uint32)  # equal rows may differ in the sign of a zero
        hashes[rows] = np.einsum("nd,d->n", bits, factors)

    in_threads(fill, chunks(len(vectors), vectors.shape[1], CACHED_FLOATS))
    return hashes


def _expand(distinct: Neighbours, group: Integers, k: int) -> Neighbours:
    """The first k neighbours among all rows, from those among distinct rows with their groups."""
    rows, sizes = np.argsort(group, kind="stable"), np.bincount(group)
    if len(sizes) == len(rows):
        return distinct
    start, shape = np.cumsum(sizes) - sizes, (len(distinct.index), k)
    similarity, index = np.empty(shape, np.float32), np.empty(shape, np.int64)
    alone = np.zeros(len(distinct.index), dtype=np.bool_)
    if distinct.index.shape[1] == k:
        alone = (sizes[distinct.index] == 1).all(axis=1)
        similarity[alone], index[alone] = distinct.similarity[alone], rows[start][distinct.index[alone]]
    for query in np.flatnonzero(~alone):
        numbers = distinct.index[query]
        value = np.repeat(distinct.similarity[query], np.minimum(sizes[numbers], k))
        every = np.concatenate([rows[start[n] : start[n] + min(sizes[n], k)] for n in numbers])
        best = np.lexsort((every, -value))[:k]
        similarity[query], index[query] = value[best], every[best]
    return Neighbours(similarity, index)


def _best(score: Floats, places: int) -> Integers:
    """Columns of the largest scores of each row, -1 if only negative ones are left; overwrites ``score``."""
    ranked = np.empty((len(score), places), dtype=np.int64)
    rows = np.arange(len(score))
    for rank in range(places):
        column = score.argmax(axis=1)
        ranked[:, rank] = np.where(score[rows, column] < 0, -1, column)
        score[rows, column] = -1.0
    return ranked
