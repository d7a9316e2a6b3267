"""Labels of cells by a vote of the most similar cells of a memory.

Source: Balazevic et al., Towards In-Context Scene Understanding, NeurIPS 2023.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tasks.metrics.means import Key, mean_of

ROWS_CPU = 1 << 15  # rows of the memory that are compared at a time, as float32
ROWS_GPU = 1 << 17
SIMILARITIES_CPU = 1 << 22  # similarities held at a time
SIMILARITIES_GPU = 1 << 28
LABELS = 1 << 24  # numbers of labels gathered at a time


@dataclass(frozen=True, slots=True)
class Voters:
    """The cells of a memory that are most similar to each query, best first; equal ones by their place.

    Attributes:
        similarity: [queries k] inner products, float32.
        index: [queries k] rows of the memory, int64.
    """

    similarity: Tensor
    index: Tensor

    def first(self, k: int) -> "Voters":
        """The best k of them."""
        return Voters(self.similarity[:, :k], self.index[:, :k])


def most_similar(queries: Tensor, memory: Tensor, k: int) -> Voters:
    """The rows of a memory with the largest inner products, exactly, in a bounded amount of memory.

    Values are not looked at. Of equal ones at the k-th place the earlier row of the memory counts.

    Args:
        queries: [queries dim] float32.
        memory: [rows dim], any floating dtype; products are float32.
        k: How many; all rows if there are fewer.
    """
    return most_similar_of_sets({0: queries}, {0: memory}, {0: (0,)}, k)[0]


def most_similar_of_sets(
    queries: Mapping[Key, Tensor], memory: Mapping[Key, Tensor], sets: Mapping[Key, Sequence[Key]], k: int
) -> dict[Key, Voters]:
    """The same for each set of layers, by the mean of its layers' inner products.

    The products of a layer are made once, however many sets it is in; what is held at a time is bounded as
    for one layer.

    Args:
        queries: Of each layer [queries dim] float32.
        memory: Of each layer [rows dim], any floating dtype; rows in one order.
        sets: For each set its layers.
        k: How many; all rows if there are fewer.
    """
    count, stored = (len(next(iter(part.values()))) for part in (queries, memory))
    here = next(iter(queries.values()))
    rows, similarities = (ROWS_CPU, SIMILARITIES_CPU) if here.is_cpu else (ROWS_GPU, SIMILARITIES_GPU)
    rows = max(1, rows // len(queries))
    step = max(1, similarities // (min(rows, max(1, stored)) * len(queries)))
    parts = [slice(start, start + step) for start in range(0, count, step)] or [slice(0, 0)]
    voters = {name: [_nobody(here[part]) for part in parts] for name in sets}
    for start in range(0, stored, rows):
        banks = {layer: vectors[start : start + rows].float().T for layer, vectors in memory.items()}
        for number, part in enumerate(parts):
            alike = {layer: vectors[part] @ banks[layer] for layer, vectors in queries.items()}
            for name, members in sets.items():
                best = _first(mean_of([alike[vectors] for vectors in members]), k)
                moved = Voters(best.similarity, best.index + start)
                voters[name][number] = _better(voters[name][number], moved, k)
    return {name: _together(some) for name, some in voters.items()}


def vote(voters: Voters, labels: Tensor, temperature: float) -> Tensor:
    """Label vectors of queries: [queries classes], means weighted by the softmax of similarity / temperature.

    Args:
        voters: Of ``most_similar``.
        labels: [rows classes] label vectors of the memory.
        temperature: Positive; infinite for a plain mean.
    """
    weight = (voters.similarity / temperature).softmax(-1)
    step = max(1, LABELS // max(1, weight.shape[1] * labels.shape[1]))
    parts = zip(torch.split(weight, step), torch.split(voters.index, step), strict=True)
    return torch.cat([torch.einsum("qk,qkc->qc", some.to(labels), labels[index]) for some, index in parts])


def _together(parts: Sequence[Voters]) -> Voters:
    return Voters(torch.cat([part.similarity for part in parts]), torch.cat([part.index for part in parts]))


def _nobody(queries: Tensor) -> Voters:
    none = queries.new_empty((len(queries), 0))
    return Voters(none, none.long())


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
