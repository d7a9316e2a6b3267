"""How much of each cell of a grid a mask covers, exactly, and the labels that follow from it."""

import numpy as np
import torch
from torch import Tensor

from tasks.metrics.arrays import VOID, Floats, Integers, Labels, Mask


def cell_areas(mask: Mask, grid: tuple[int, int]) -> Integers:
    """Area that a mask covers of each cell, in units that make it whole: [height width].

    A unit is a pixel's area over the number of cells: a cell that is covered has as many as the mask pixels.

    Args:
        mask: [image height, image width].
        grid: Height and width in cells.
    """
    rows, columns = (_overlap(length, cells) for length, cells in zip(mask.shape, grid, strict=True))
    return np.asarray(rows @ mask.astype(np.float64) @ columns.T, dtype=np.int64)  # whole below 2^53


def cell_shares(mask: Mask, grid: tuple[int, int]) -> Floats:
    """Share of each cell that a mask covers, in [0, 1]: [height width] float64.

    Args:
        mask: [image height, image width].
        grid: Height and width in cells.
    """
    return np.asarray(cell_areas(mask, grid) / mask.size, dtype=np.float64)


def area_labels(mask: Labels, grid: tuple[int, int], channels: int) -> Tensor:
    """Share of each cell that is of each object: [height width channels] float32, the background first.

    Args:
        mask: [image height, image width] object ids; 0 and 255 are background.
        grid: Height and width in cells.
        channels: Objects and the background.
    """
    objects = [cell_shares(mask == number, grid) for number in range(1, channels)]
    background = cell_shares((mask == 0) | (mask == VOID), grid)
    return torch.from_numpy(np.stack([background, *objects], axis=-1).astype(np.float32))


def _overlap(length: int, cells: int) -> Floats:
    """How much of each pixel, ``cells`` long, lies in each cell along one axis: [cells length]."""
    edge = length * np.arange(cells + 1)
    pixel = cells * np.arange(length)
    overlap = np.minimum(edge[1:, None], pixel + cells) - np.maximum(edge[:-1, None], pixel)
    return np.asarray(np.maximum(overlap, 0), dtype=np.float64)
