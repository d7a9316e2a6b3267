"""Measures of attention probabilities. Pure functions of tensors, on any device."""

import torch
from torch import Tensor

Cells = tuple[int, int]
"""Rows and columns of a grid."""


def patch_attention(probabilities: Tensor, prefix_tokens: int) -> Tensor:
    """How patches attend to patches: prefix rows and columns are cut off, and each row sums to 1 again.

    Args:
        probabilities: [... queries keys] in [0, 1]; prefix tokens first, then patches in row-major order.
        prefix_tokens: Class token and registers.

    Returns:
        [... patches patches], float32; a row that gives nothing to patches stays zero.
    """
    patches = probabilities[..., prefix_tokens:, prefix_tokens:].float()
    total = patches.sum(dim=-1, keepdim=True)
    return torch.where(total > 0, patches / total, patches)


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
        attention: [... patches patches] as `patch_attention` gives it.
        distances: [patches patches] as `cell_distances` gives it.

    Returns:
        [...], float32: 0 where each patch attends to itself; the mean of ``distances`` where all patches
        attend to all alike.
    """
    return (attention * distances).sum(dim=-1).mean(dim=-1)
