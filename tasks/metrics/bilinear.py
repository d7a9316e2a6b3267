"""Bilinear weights that sample a grid of tokens at positions in the view; layers with equal grids share them.

Points are (x, y) in pixels of the view, measured from its upper left corner: pixel i spans [i, i + 1) and the
centre of token i is at (i + 0.5) * stride. Features are interpolated bilinearly between token centres, and
are constant beyond the outermost ones.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Places:
    """Bilinear weights of positions in a view on a grid of tokens, float64.

    For points, row i and column i belong to point i. For searched pixels, every row is combined with every
    column.
    """

    rows: Tensor  # [rows height] weights along the first axis
    columns: Tensor  # [columns width] weights along the second
    corner: tuple[int, int] = (0, 0)  # column and row of the first pixel

    def on(self, device: torch.device) -> "Places":
        """The weights on a device, copied without waiting for it."""
        rows, columns = (weights.to(device, non_blocking=True) for weights in (self.rows, self.columns))
        return Places(rows, columns, self.corner)


def point_places(points_xy: Tensor, grid: tuple[int, int], stride: float) -> Places:
    """Weights of points [n 2], in pixels of the view, on a grid of (height, width) tokens.

    ``stride`` is the side of a token in pixels.
    """
    points = points_xy.to(torch.float64) / stride
    return Places(_weights(points[:, 1], grid[0]), _weights(points[:, 0], grid[1]))


def searched_places(side: int, grid: tuple[int, int], content: Box) -> Places:
    """Weights of the searched pixels of a square view: those whose centre is inside the image.

    ``content`` is the left, top, right and bottom of the image inside the padded view. Raises ValueError if
    it contains no pixel.
    """
    left, top, right, bottom = content
    columns, rows = searched_pixels(left, right, side), searched_pixels(top, bottom, side)
    if not len(columns) or not len(rows):
        raise ValueError(f"the content box {content} holds no pixel of a view of {side}")
    height, width = grid
    across = _weights((torch.tensor(columns, dtype=torch.float64) + 0.5) * (width / side), width)
    down = _weights((torch.tensor(rows, dtype=torch.float64) + 0.5) * (height / side), height)
    return Places(down, across, (columns[0], rows[0]))


def area_places(across: Tensor, down: Tensor, grid: tuple[int, int]) -> Places:
    """Weights of all pairs of a row [rows] and a column [columns], in tokens from the upper left corner."""
    return Places(_weights(down.double(), grid[0]), _weights(across.double(), grid[1]))


def image_places(size: tuple[int, int], grid: tuple[int, int]) -> Places:
    """Weights of all pixels of an image (width, height) that a grid (height, width) is stretched over."""
    across, down = ((torch.arange(length, dtype=torch.float64) + 0.5) / length for length in size)
    return area_places(across * grid[1], down * grid[0], grid)


def aligned_places(points_xy: Tensor, grid: tuple[int, int], side: int) -> Places:
    """Weights of points [n 2] of a square view on a grid whose corner tokens lie on the corners of the view.

    Source: the correspondence of probe3d (El Banani et al., CVPR 2024; commit a1f1464).
    """
    most = torch.tensor([grid[1] - 1, grid[0] - 1], dtype=torch.float64)
    return point_places(points_xy.to(torch.float64) / side * most + 0.5, grid, 1.0)


def sampled(grid: Tensor, points: Places, parts: Sequence[int]) -> Tensor:
    """Bilinear values of a grid [... height width dim] at points on its device: [... n dim].

    Values are not checked for NaN. ``parts`` gives the number of points in each matrix product, n in all: the
    last bits of a product may depend on its size.
    """
    rows, columns = points.rows.to(grid), points.columns.to(grid)
    weights = (rows[:, :, None] * columns[:, None, :]).flatten(1)
    return torch.cat([some @ grid.flatten(-3, -2) for some in torch.split(weights, list(parts))], dim=-2)


def official_pixels(points_xy: Tensor) -> Tensor:
    """Pixels [n 2] where published code samples features: column truncated, row rounded half to even."""
    return torch.stack([points_xy[:, 0].trunc(), points_xy[:, 1].round()], dim=-1)


def searched_pixels(low: float, high: float, side: int) -> range:
    """Pixels along one axis, of 0 to ``side`` - 1, whose centre is in [low, high)."""
    start, stop = max(0, math.ceil(low - 0.5)), min(side, math.ceil(high - 0.5))
    return range(start, max(start, stop))


def _weights(position: Tensor, cells: int) -> Tensor:
    """Bilinear weights of positions measured in cells from the edge: [positions cells], float64.

    Positions are clamped to the outermost centres, where one weight is exactly 1.
    """
    clamped = (position - 0.5).clamp(0, cells - 1)
    lower = clamped.floor().clamp_max(max(cells - 2, 0))
    share = clamped - lower
    cell = torch.arange(cells, device=position.device)
    weight = (cell == lower[:, None]) * (1 - share)[:, None]
    return weight + (cell == (lower + 1)[:, None]) * share[:, None]
