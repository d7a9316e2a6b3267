"""Labels of the pixels under a cell by a vote, position by position, of the most similar cells of a memory.

Source: the k-NN segmentation of CAPI (Darcet et al., 2025; facebookresearch/capi, commit 98b4fa1): a cell
remembers the label of each of its pixels, and every neighbour has one vote.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from tasks.metrics.arrays import Floats, Labels, Mask
from tasks.metrics.label_vote import Voters, most_similar

Distance = Literal["cosine", "L2"]
VOTES = 1 << 24  # labels of neighbours held at a time


def pixel_labels(mask: Labels, grid: tuple[int, int]) -> Labels:
    """The labels of the pixels under each cell, in row-major order: [height width pixels].

    Args:
        mask: [image height, image width] labels.
        grid: Height and width in cells.

    Raises:
        ValueError: A side of the mask is no multiple of its cells.
    """
    (height, width), (rows, columns) = mask.shape, grid
    if min(grid) < 1 or height % rows or width % columns:
        raise ValueError(f"expected a mask of whole pixels a cell, found {mask.shape} for {grid} cells")
    cells = mask.reshape(rows, height // rows, columns, width // columns).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(cells.reshape(rows, columns, -1))


def judged_cells(labels: Labels, ignored: frozenset[int]) -> Mask:
    """Cells [...] whose most frequent label, the smallest of equals, is not ignored.

    Args:
        labels: [... pixels] of ``pixel_labels``.
        ignored: Labels that are not judged.
    """
    frequent = most_frequent(torch.from_numpy(labels)).numpy()
    return np.asarray(~np.isin(frequent, sorted(ignored)))


def most_frequent(labels: Tensor) -> Tensor:
    """The most frequent of the last dimension's labels [... some], the smallest of equals: [...]."""
    ordered = labels.sort(-1).values
    count = ordered.shape[-1]
    position = torch.arange(count, device=labels.device)
    begins = torch.ones_like(ordered, dtype=torch.bool)
    begins[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    length = position - torch.where(begins, position, 0).cummax(-1).values  # of the run so far, less one
    # of the longest runs the first one, whose label is the smallest
    best = (length * count + (count - 1 - position)).argmax(-1, keepdim=True)
    return ordered.gather(-1, best)[..., 0]


@dataclass(frozen=True, slots=True)
class Scale:
    """What features are standardised by: [dim] mean and standard deviation, 1 where nothing varies.

    Made of sums, so that it can be found in one pass.
    """

    mean: Floats
    deviation: Floats

    @classmethod
    def of(cls, count: int, total: Floats, squares: Floats) -> "Scale":
        """Of so many vectors with those sums, and sums of squares, float64 [dim]."""
        mean = total / count
        variance = np.maximum(squares / count - mean * mean, 0.0)
        constant = variance <= 10 * np.finfo(np.float64).eps * np.maximum(mean * mean, variance)
        return cls(mean, np.where(constant, 1.0, np.sqrt(variance)))

    def apply(self, vectors: Tensor) -> Tensor:
        """Standardised vectors [... dim], in their dtype."""
        mean, deviation = (torch.from_numpy(values).to(vectors) for values in (self.mean, self.deviation))
        return (vectors - mean) / deviation


def nearest_cells(queries: Tensor, memory: Tensor, k: int, distance: Distance) -> Voters:
    """The k rows of a memory that are nearest to each query; of equal ones the earlier.

    Args:
        queries: [queries dim] float32.
        memory: [rows dim].
        k: How many.
        distance: By the angle, or by the straight line.
    """
    return most_similar(compared(queries, distance), remembered(memory, distance), k)


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
    """Label of each pixel under each query: [queries pixels]; every neighbour has one vote a pixel.

    Args:
        voters: Of ``nearest_cells``.
        labels: [rows pixels] uint8, of ``pixel_labels``.
    """
    step = max(1, VOTES // max(1, voters.index.shape[1] * labels.shape[1]))
    return torch.cat(
        [most_frequent(labels[index].transpose(1, 2)) for index in torch.split(voters.index, step)]
    )
