"""Labels of cells by a vote of the most similar cells of a memory.

Source: Balazevic et al., Towards In-Context Scene Understanding, NeurIPS 2023.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

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
        place: [queries k] rows of the memory, int64.
    """

    similarity: Tensor
    place: Tensor

    def first(self, k: int) -> "Voters":
        """The best k of them."""
        return Voters(self.similarity[:, :k], self.place[:, :k])


def most_similar(queries: Tensor, memory: Tensor, k: int) -> Voters:
    """The rows of a memory with the largest inner products, exactly, in a bounded amount of memory.

    Values are not looked at. Of equal ones at the k-th place the earlier row of the memory counts.

    Args:
        queries: [queries dim] float32.
        memory: [rows dim], any floating dtype; products are float32.
        k: How many; all rows if there are fewer.
    """
    rows, similarities = (ROWS_CPU, SIMILARITIES_CPU) if queries.is_cpu else (ROWS_GPU, SIMILARITIES_GPU)
    parts = torch.split(queries, max(1, similarities // min(rows, max(1, len(memory)))))
    found = [_nobody(part) for part in parts]
    start = 0
    for some in torch.split(memory, rows):
        bank = some.float().T
        for number, part in enumerate(parts):
            best = _first(part @ bank, k)
            found[number] = _better(found[number], Voters(best.similarity, best.place + start), k)
        start += len(some)
    return Voters(torch.cat([one.similarity for one in found]), torch.cat([one.place for one in found]))


def vote(voters: Voters, labels: Tensor, temperature: float) -> Tensor:
    """Label vectors of queries: [queries classes], means weighted by the softmax of similarity / temperature.

    Args:
        voters: Of ``most_similar``.
        labels: [rows classes] label vectors of the memory.
        temperature: Positive; infinite for a plain mean.
    """
    weight = (voters.similarity / temperature).softmax(-1)
    step = max(1, LABELS // max(1, weight.shape[1] * labels.shape[1]))
    parts = zip(torch.split(weight, step), torch.split(voters.place, step), strict=True)
    return torch.cat([torch.einsum("qk,qkc->qc", some.to(labels), labels[place]) for some, place in parts])


def _nobody(queries: Tensor) -> Voters:
    none = queries.new_empty((len(queries), 0))
    return Voters(none, none.long())


def _better(first: Voters, second: Voters, k: int) -> Voters:
    """The best k of two, of which the second ones' rows come later."""
    similarity = torch.cat([first.similarity, second.similarity], dim=1)
    place = torch.cat([first.place, second.place], dim=1)
    order = similarity.sort(dim=1, descending=True, stable=True).indices[:, :k]
    return Voters(similarity.gather(1, order), place.gather(1, order))


def _first(similarity: Tensor, k: int) -> Voters:
    """The k largest of each row [queries rows], descending; equal ones by their place."""
    count = similarity.shape[1]
    value, place = similarity.topk(min(k + 1, count), dim=1)
    if k < count:
        tied = value[:, k] == value[:, k - 1]
        if not similarity.is_cpu or bool(tied.any()):  # a device is not asked
            value, place = _earliest(similarity, value[:, k - 1 : k], k)
        value, place = value[:, :k], place[:, :k]
    place, order = place.sort(dim=1)
    value, order = value.gather(1, order).sort(dim=1, descending=True, stable=True)
    return Voters(value, place.gather(1, order))


def _earliest(similarity: Tensor, least: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest of each row, of which ``least`` [queries 1] is the last; of equal ones the earlier."""
    above = similarity > least
    room = k - above.sum(1, keepdim=True)
    equal = similarity == least
    chosen = above | (equal & (equal.cumsum(1, dtype=torch.int32) <= room))
    found = torch.where(chosen, similarity, -torch.inf).topk(k, dim=1)
    return found.values, found.indices
