"""Labels of cells, or of the pixels under them, by a vote of the most similar cells of a memory.

Sources: Balazevic et al., Towards In-Context Scene Understanding, NeurIPS 2023 (cells); the k-NN segmentation
of CAPI (Darcet et al., 2025; facebookresearch/capi, commit 98b4fa1), in which a cell stores the label of each
of its pixels, and every neighbour has one vote (pixels).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from layerboard.tasks.metrics.arrays import Floats, Labels, Mask
from layerboard.tasks.metrics.neighbours import Key, mean_of

ROWS_CPU = 1 << 15  # rows of the memory compared at a time, as float32
ROWS_GPU = 1 << 17
SIMILARITIES_CPU = 1 << 22  # similarities in memory at a time
SIMILARITIES_GPU = 1 << 28
LABELS = 1 << 24  # numbers of labels gathered at a time
VOTES = 1 << 24  # labels of neighbours in memory at a time

Distance = Literal["cosine", "L2"]


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
    return {
        name: MemoryNeighbours(
            torch.cat([some.similarity for some in every]), torch.cat([some.index for some in every])
        )
        for name, every in voters.items()
    }


def vote_labels(voters: MemoryNeighbours, labels: Tensor, temperature: float) -> Tensor:
    """Mean label vector of each query's voters, weighted by softmax(similarity / temperature).

    ``labels`` are those of the memory, [rows classes].
    """
    weight = (voters.similarity / temperature).softmax(-1)
    step = max(1, LABELS // max(1, weight.shape[1] * labels.shape[1]))
    parts = zip(torch.split(weight, step), torch.split(voters.index, step), strict=True)
    return torch.cat([torch.einsum("qk,qkc->qc", some.to(labels), labels[index]) for some, index in parts])


def _better(first: MemoryNeighbours, second: MemoryNeighbours, k: int) -> MemoryNeighbours:
    """The best k of two lists of voters; the rows of the second come later in the memory."""
    similarity = torch.cat([first.similarity, second.similarity], dim=1)
    index = torch.cat([first.index, second.index], dim=1)
    order = similarity.sort(dim=1, descending=True, stable=True).indices[:, :k]
    return MemoryNeighbours(similarity.gather(1, order), index.gather(1, order))


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


def pixel_labels(mask: Labels, grid: tuple[int, int]) -> Labels:
    """The labels of a mask's pixels under each cell of a grid, in row-major order: [height width pixels].

    Raises ValueError if a side of the mask is not a multiple of the number of cells.
    """
    (height, width), (rows, columns) = mask.shape, grid
    if min(grid) < 1 or height % rows or width % columns:
        raise ValueError(f"expected a mask with whole pixels per cell, found {mask.shape} for {grid} cells")
    cells = mask.reshape(rows, height // rows, columns, width // columns).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(cells.reshape(rows, columns, -1))


def judged_cells(labels: Labels, ignored: frozenset[int]) -> Mask:
    """Whether the most frequent label of each cell [... pixels] (ties: smallest) is not ignored: [...]."""
    return np.asarray(~np.isin(most_frequent(torch.from_numpy(labels)).numpy(), sorted(ignored)))


def most_frequent(labels: Tensor) -> Tensor:
    """Most frequent label along the last dimension [... n], ties to the smallest label: [...]."""
    ordered = labels.sort(-1).values
    count = ordered.shape[-1]
    position = torch.arange(count, device=labels.device)
    begins = torch.ones_like(ordered, dtype=torch.bool)
    begins[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    length = position - torch.where(begins, position, 0).cummax(-1).values  # of the run so far, minus 1
    # the first of the longest runs has the smallest label
    return ordered.gather(-1, (length * count + (count - 1 - position)).argmax(-1, keepdim=True))[..., 0]


@dataclass(frozen=True, slots=True)
class Scale:
    """Mean and standard deviation [dim] for standardisation; 1 as the deviation of a constant feature."""

    mean: Floats
    deviation: Floats

    @classmethod
    def of(cls, count: int, total: Floats, squares: Floats) -> "Scale":
        """Scale of ``count`` vectors, from their sum and sum of squares, float64 [dim]."""
        mean = total / count
        variance = np.maximum(squares / count - mean * mean, 0.0)
        constant = variance <= 10 * np.finfo(np.float64).eps * np.maximum(mean * mean, variance)
        return cls(mean, np.where(constant, 1.0, np.sqrt(variance)))

    def apply(self, vectors: Tensor) -> Tensor:
        """Standardised vectors [... dim], in their dtype."""
        mean, deviation = (torch.from_numpy(values).to(vectors) for values in (self.mean, self.deviation))
        return (vectors - mean) / deviation


def comparable_queries(queries: Tensor, distance: Distance) -> Tensor:
    """Queries [queries ...] whose inner products with rows of `remembered` sort these by the distance."""
    if distance == "cosine":
        return functional.normalize(queries, dim=-1)
    return torch.cat([queries, queries.new_ones((len(queries), 1))], 1)


def remembered(memory: Tensor, distance: Distance) -> Tensor:
    """Rows [rows ...] of a memory [rows dim], to be multiplied with queries from `comparable_queries`."""
    if distance == "cosine":
        return functional.normalize(memory, dim=-1)
    # the ranking of rows by |q - r|^2 depends only on 2 q r - |r|^2
    return torch.cat([memory, memory.square().sum(-1, keepdim=True) / -2], 1)


def pixel_vote(voters: MemoryNeighbours, labels: Tensor) -> Tensor:
    """Pixel labels under each query [queries pixels], by a majority vote of neighbours' [rows pixels]."""
    step = max(1, VOTES // max(1, voters.index.shape[1] * labels.shape[1]))
    parts = torch.split(voters.index, step)
    return torch.cat([most_frequent(labels[index].transpose(1, 2)) for index in parts])
