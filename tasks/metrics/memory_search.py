"""The cells of a memory with the largest inner products, exactly, for one layer or several at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from layerboard.tasks.metrics.neighbours import Key, mean_of

ROWS_CPU = 1 << 15  # rows of the memory compared at a time, as float32
ROWS_GPU = 1 << 17
SIMILARITIES_CPU = 1 << 22  # similarities in memory at a time
SIMILARITIES_GPU = 1 << 28


@dataclass(frozen=True, slots=True)
class MemoryNeighbours:
    """The memory cells most similar to each query, best first; ties by index."""

    similarity: Tensor  # [queries k] inner products, float32
    index: Tensor  # [queries k] rows of the memory, int64

    def first(self, k: int) -> "MemoryNeighbours":
        return MemoryNeighbours(self.similarity[:, :k], self.index[:, :k])


def most_similar(queries: Tensor, memory: Tensor, k: int) -> MemoryNeighbours:
    """The k rows of a memory [rows dim] with the largest inner products with queries [queries dim], exactly.

    Values are not checked for NaN. Ties at the k-th place go to the earlier row; with fewer than k rows, all
    are voters. Queries are float32, the memory has any floating dtype. Memory use is bounded.
    """
    return most_similar_of_layers({0: queries}, {0: memory}, {0: (0,)}, k)[0]


def most_similar_of_layers(
    queries: Mapping[Key, Tensor], memory: Mapping[Key, Tensor], layers: Mapping[Key, Sequence[Key]], k: int
) -> dict[Key, MemoryNeighbours]:
    """The most similar cells for each layer, by the mean of its members' inner products.

    ``layers`` lists the members of each layer. Each member has queries [queries dim] and a memory [rows dim],
    as in `most_similar`, with rows in the same order for all. The products of a member are computed once,
    however many layers have it. Memory use is bounded as for one layer.
    """
    count, stored = (len(next(iter(part.values()))) for part in (queries, memory))
    here = next(iter(queries.values()))
    rows, similarities = (ROWS_CPU, SIMILARITIES_CPU) if here.is_cpu else (ROWS_GPU, SIMILARITIES_GPU)
    rows = max(1, rows // len(queries))
    step = max(1, similarities // (min(rows, max(1, stored)) * len(queries)))
    parts = [slice(start, start + step) for start in range(0, count, step)] or [slice(0, 0)]
    none = [here.new_empty((len(here[part]), 0)) for part in parts]
    voters = {name: [MemoryNeighbours(some, some.long()) for some in none] for name in layers}
    for start in range(0, stored, rows):
        banks = {member: vectors[start : start + rows].float().T for member, vectors in memory.items()}
        for number, part in enumerate(parts):
            alike = {member: vectors[part] @ banks[member] for member, vectors in queries.items()}
            for name, members in layers.items():
                best = _first(mean_of([alike[member] for member in members]), k)
                moved = MemoryNeighbours(best.similarity, best.index + start)
                voters[name][number] = _better(voters[name][number], moved, k)
    return {name: _joined(every, 0) for name, every in voters.items()}


def _joined(parts: Sequence[MemoryNeighbours], dim: int) -> MemoryNeighbours:
    return MemoryNeighbours(
        torch.cat([some.similarity for some in parts], dim), torch.cat([some.index for some in parts], dim)
    )


def _better(first: MemoryNeighbours, second: MemoryNeighbours, k: int) -> MemoryNeighbours:
    """The best k of two lists of voters; the rows of the second come later in the memory."""
    both = _joined((first, second), 1)
    order = both.similarity.sort(dim=1, descending=True, stable=True).indices[:, :k]
    return MemoryNeighbours(both.similarity.gather(1, order), both.index.gather(1, order))


def _first(similarity: Tensor, k: int) -> MemoryNeighbours:
    """The k largest of each row [queries rows], descending; ties by index."""
    count = similarity.shape[1]
    value, index = similarity.topk(min(k + 1, count), dim=1)
    if k < count:
        tied = value[:, k] == value[:, k - 1]
        if not similarity.is_cpu or bool(tied.any()):  # a GPU is not asked: no wait for it
            value, index = _earliest(similarity, value[:, k - 1 : k], k)
        value, index = value[:, :k], index[:, :k]
    index, order = index.sort(dim=1)
    value, order = value.gather(1, order).sort(dim=1, descending=True, stable=True)
    return MemoryNeighbours(value, index.gather(1, order))


def _earliest(similarity: Tensor, least: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest of each row, where ``least`` [queries 1] is the k-th; ties by index."""
    above = similarity > least
    room = k - above.sum(1, keepdim=True)
    equal = similarity == least
    chosen = above | (equal & (equal.cumsum(1, dtype=torch.int32) <= room))
    nearest = torch.where(chosen, similarity, -torch.inf).topk(k, dim=1)
    return nearest.values, nearest.indices
