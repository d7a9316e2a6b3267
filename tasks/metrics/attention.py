"""How far attention looks. Pure functions of tensors, on any device."""

import torch
from torch import Tensor
from torch.nn.functional import linear

Cells = tuple[int, int]
"""Rows and columns of a grid."""


def cell_distances(cells: Cells, *, unit: bool, device: torch.device | None = None) -> Tensor:
    """Euclidean distance between the centres of all cells of a grid, [cells cells], float32.

    Args:
        cells: Rows and columns.
        unit: Whether the grid is stretched to the unit square, corner to corner (an axis of one cell has no
            extent); otherwise a cell has the side 1.
        device: Where the result is wanted.
    """
    rows, columns = (torch.arange(count, device=device, dtype=torch.float32) for count in cells)
    if unit:
        rows, columns = rows / max(1, cells[0] - 1), columns / max(1, cells[1] - 1)
    places = torch.cartesian_prod(rows, columns).view(-1, 2)
    return (places[:, None] - places[None]).square().sum(dim=-1).sqrt()


def attention_distance(attention: Tensor, distances: Tensor) -> Tensor:
    """Mean distance over which patches attend, by the attention of each query, averaged over the queries.

    Sources: Raghu et al., NeurIPS 2021, section 5; Walmer et al., CVPR 2023, section 4.3.

    Args:
        attention: [... patches patches], each row of sum 1, or zero.
        distances: [patches patches] as `cell_distances` gives it, or several of them [kinds patches patches],
            for which the attention is read once.

    Returns:
        [...] or [... kinds], float32: 0 where each patch attends to itself; the mean of ``distances`` where
        all patches attend to all alike.
    """
    return linear(attention.flatten(-2), distances.flatten(-2)) / attention.shape[-1]
