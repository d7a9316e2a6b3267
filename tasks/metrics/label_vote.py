"""Labels of cells, or of the pixels under them, by a vote of the most similar cells of a memory.

Sources: Balazevic et al., Towards In-Context Scene Understanding, NeurIPS 2023; of pixels the k-NN
segmentation of CAPI (Darcet et al., 2025; facebookresearch/capi, commit 98b4fa1): a cell remembers the
label of each of its pixels, and every neighbour has one vote.
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

ROWS_CPU = 1 << 15  # rows of the memory that are compared at a time, as float32
ROWS_GPU = 1 << 17
SIMILARITIES_CPU = 1 << 22  # similarities held at a time
SIMILARITIES_GPU = 1 << 28
LABELS = 1 << 24  # numbers of labels gathered at a time
VOTES = 1 << 24  # labels of neighbours held at a time

Distance = Literal["cosine", "L2"]


@dataclass(frozen=True, slots=True)
class Voters:
    """The cells of a memory that are most similar to each query, best first; equal ones by their place."""

    similarity: Tensor  # [queries k] inner products, float32
    index: Tensor  # [queries k] rows of the memory, int64

    def first(self, k: int) -> "Voters":
        return Voters(self.similarity[:, :k], self.index[:, :k])


def most_similar(queries: Tensor, memory: Tensor, k: int) -> Voters:
    """The k rows of a memory [rows dim] with the largest inner products with queries [queries dim], exactly.

    Values are not looked at. Of equal ones at the k-th place the earlier row of the memory counts; all rows
    are voters if there are fewer. Queries are float32, the memory of any floating dtype; memory use is
    bounded.
    """
    return most_similar_of_sets({0: queries}, {0: memory}, {0: (0,)}, k)[0]


def most_similar_of_sets(
    queries: Mapping[Key, Tensor], memory: Mapping[Key, Tensor], sets: Mapping[Key, Sequence[Key]], k: int
) -> dict[Key, Voters]:
    """The most similar cells for each set of layers, by the mean of its layers' inner products.

    Queries [queries dim] and memory [rows dim] are of each layer, rows in one order, as ``most_similar``
    takes them; each set names its layers. The products of a layer are made once, however many sets it is in;
    what is held at a time is bounded as for one layer.
    """
    count, stored = (len(next(iter(part.values()))) for part in (queries, memory))
    here = next(iter(queries.values()))
    rows, similarities = (ROWS_CPU, SIMILARITIES_CPU) if here.is_cpu else (ROWS_GPU, SIMILARITIES_GPU)
    rows = max(1, rows // len(queries))
    step = max(1, similarities // (min(rows, max(1, stored)) * len(queries)))
    parts = [slice(start, start + step) for start in range(0, count, step)] or [slice(0, 0)]
    none = [here.new_empty((len(here[part]), 0)) for part in parts]
    voters = {name: [Voters(some, some.long()) for some in none] for name in sets}
    for start in range(0, stored, rows):
        banks = {layer: vectors[start : start + rows].float().T for layer, vectors in memory.items()}
        for number, part in enumerate(parts):
            alike = {layer: vectors[part] @ banks[layer] for layer, vectors in queries.items()}
            for name, members in sets.items():
                best = _first(mean_of([alike[vectors] for vectors in members]), k)
                moved = Voters(best.similarity, best.index + start)
                voters[name][number] = _better(voters[name][number], moved, k)
    return {
        name: Voters(
            torch.cat([some.similarity for some in every]), torch.cat([some.index for some in every])
        )
        for name, every in voters.items()
    }


def vote(voters: Voters, labels: Tensor, temperature: float) -> Tensor:
    """Label vectors of queries: means of the voters' [rows classes] by the softmax of similarity / T."""
    weight = (voters.similarity / temperature).softmax(-1)
    step = max(1, LABELS // max(1, weight.shape[1] * labels.shape[1]))
    parts = zip(torch.split(weight, step), torch.split(voters.index, step), strict=True)
    return torch.cat([torch.einsum("qk,qkc->qc", some.to(labels), labels[index]) for some, index in parts])


def _better(first: Voters, second: Voters, k: int) -> Voters:
    """The best k of two, of which the second ones' rows come later."""
    similarity = torch.cat([first.similarity, second.similarity], dim=1)
    index = torch.cat([first.index, second.index], dim=1)
    order = similarity.sort(dim=1, descending=True, stable=True).indices[:, :k]
    return Voters(similarity.gather(1, order), index.gather(1, order))


def _first(similarity: Tensor, k: int) -> Voters:
    """The k largest of each row [queries rows], descending; equal ones by their place."""
    count = similarity.shape[1]
    value, index = similarity.topk(min(k + 1, count), dim=1)
    if k < count:
        tied = value[:, k] == value[:, k - 1]
        if not similarity.is_cpu or bool(tied.any()):  # a device is not asked
            value, index = _earliest(similarity, value[:, k - 1 : k], k)
        value, index = value[:, :k], index[:, :k]
    index, order = index.sort(dim=1)
    value, order = value.gather(1, order).sort(dim=1, descending=True, stable=True)
    return Voters(value, index.gather(1, order))


def _earliest(similarity: Tensor, least: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest of each row, of which ``least`` [queries 1] is the last; of equal ones the earlier."""
    above = similarity > least
    room = k - above.sum(1, keepdim=True)
    equal = similarity == least
    chosen = above | (equal & (equal.cumsum(1, dtype=torch.int32) <= room))
    nearest = torch.where(chosen, similarity, -torch.inf).topk(k, dim=1)
    return nearest.values, nearest.indices


def pixel_labels(mask: Labels, grid: tuple[int, int]) -> Labels:
    """The labels of a mask's pixels under each cell of a grid, in row-major order: [height width pixels].

    Raises ValueError where a side of the mask is no multiple of its cells.
    """
    (height, width), (rows, columns) = mask.shape, grid
    if min(grid) < 1 or height % rows or width % columns:
        raise ValueError(f"expected a mask of whole pixels a cell, found {mask.shape} for {grid} cells")
    cells = mask.reshape(rows, height // rows, columns, width // columns).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(cells.reshape(rows, columns, -1))


def judged_cells(labels: Labels, ignored: frozenset[int]) -> Mask:
    """Cells [...] of labels [... pixels] whose most frequent one, the smallest of equals, is not ignored."""
    return np.asarray(~np.isin(most_frequent(torch.from_numpy(labels)).numpy(), sorted(ignored)))


def most_frequent(labels: Tensor) -> Tensor:
    """The most frequent of the last dimension's labels [... some], the smallest of equals: [...]."""
    ordered = labels.sort(-1).values
    count = ordered.shape[-1]
    position = torch.arange(count, device=labels.device)
    begins = torch.ones_like(ordered, dtype=torch.bool)
    begins[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    length = position - torch.where(begins, position, 0).cummax(-1).values  # of the run so far, less one
    # of the longest runs the first one, whose label is the smallest
    return ordered.gather(-1, (length * count + (count - 1 - position)).argmax(-1, keepdim=True))[..., 0]


@dataclass(frozen=True, slots=True)
class Scale:
    """What features are standardised by: [dim] mean and standard deviation, 1 where nothing varies."""

    mean: Floats
    deviation: Floats

    @classmethod
    def of(cls, count: int, total: Floats, squares: Floats) -> "Scale":
        """The scale of so many vectors, by their sums and sums of squares, float64 [dim]."""
        mean = total / count
        variance = np.maximum(squares / count - mean * mean, 0.0)
        constant = variance <= 10 * np.finfo(np.float64).eps * np.maximum(mean * mean, variance)
        return cls(mean, np.where(constant, 1.0, np.sqrt(variance)))

    def apply(self, vectors: Tensor) -> Tensor:
        """Standardised vectors [... dim], in their dtype."""
        mean, deviation = (torch.from_numpy(values).to(vectors) for values in (self.mean, self.deviation))
        return (vectors - mean) / deviation


def compared(queries: Tensor, distance: Distance) -> Tensor:
    """Queries [queries ...] whose inner products with rows of ``remembered`` order these by a distance."""
    if distance == "cosine":
        return functional.normalize(queries, dim=-1)
    return torch.cat([queries, queries.new_ones((len(queries), 1))], 1)


def remembered(memory: Tensor, distance: Distance) -> Tensor:
    """Rows [rows ...] of a memory [rows dim], to be multiplied with ``compared`` queries."""
    if distance == "cosine":
        return functional.normalize(memory, dim=-1)
    # of |q - r|^2 what differs between rows is 2 q r - |r|^2
    return torch.cat([memory, memory.square().sum(-1, keepdim=True) / -2], 1)


def pixel_vote(voters: Voters, labels: Tensor) -> Tensor:
    """Labels of pixels under each query, [queries pixels]: a vote of every neighbour's [rows pixels]."""
    step = max(1, VOTES // max(1, voters.index.shape[1] * labels.shape[1]))
    parts = torch.split(voters.index, step)
    return torch.cat([most_frequent(labels[index].transpose(1, 2)) for index in parts])
