"""Bilinear weights of places in a view on a grid of tokens, which all layers of that grid share.

Points are x before y in pixels of the view, measured from its upper left edge: pixel i spans [i, i + 1) and
the centre of token i is (i + 0.5) * stride. Between token centres features are bilinear, beyond the outermost
ones constant.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Places:
    """Bilinear weights of places in a view on a grid of tokens, float64.

    Of points there are as many rows as columns, one pair each; of pixels that are searched, every row is
    combined with every column.
    """

    rows: Tensor  # [rows height] weights along the first axis
    columns: Tensor  # [columns width] weights along the second
    corner: tuple[int, int] = (0, 0)  # column and row of the first pixel

    def on(self, device: torch.device) -> "Places":
        """The weights on a device, which the host does not wait for."""
        rows, columns = (weights.to(device, non_blocking=True) for weights in (self.rows, self.columns))
        return Places(rows, columns, self.corner)


def point_places(points_xy: Tensor, grid: tuple[int, int], stride: float) -> Places:
    """Where points [n 2], in pixels of the view, lie on a grid of so many tokens (height, width).

    ``stride`` is pixels a token. Raises ValueError for a stride that is not positive, or points of another
    shape.
    """
    if points_xy.ndim != 2 or points_xy.shape[-1] != 2:
        raise ValueError(f"expected points [n 2], found {tuple(points_xy.shape)}")
    if not stride > 0:
        raise ValueError(f"the stride must be positive, found {stride}")
    points = points_xy.to(torch.float64) / stride
    return Places(_weights(points[:, 1], grid[0]), _weights(points[:, 0], grid[1]))


def searched_places(side: int, grid: tuple[int, int], content: Box) -> Places:
    """The pixels of a square view that are searched: those with their centre inside the image.

    The content is the left, top, right and bottom of the image inside the padded view. Raises ValueError
    where it holds no pixel.
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
    """Every row with every column, both in tokens from the upper left edge: [columns] and [rows]."""
    return Places(_weights(down.double(), grid[0]), _weights(across.double(), grid[1]))


def image_places(size: tuple[int, int], grid: tuple[int, int]) -> Places:
    """The pixels of an image (width, height) that a grid (height, width) is stretched over: all of them."""
    across, down = ((torch.arange(length, dtype=torch.float64) + 0.5) / length for length in size)
    return area_places(across * grid[1], down * grid[0], grid)


def aligned_places(points_xy: Tensor, grid: tuple[int, int], side: int) -> Places:
    """Where points [n 2] of a square view lie on a grid with its outermost tokens on the corners of the view.

    Source: the correspondence of probe3d (El Banani et al., CVPR 2024; commit a1f1464), which samples so.
    """
    most = torch.tensor([grid[1] - 1, grid[0] - 1], dtype=torch.float64)
    return point_places(points_xy.to(torch.float64) / side * most + 0.5, grid, 1.0)


def sampled(grid: Tensor, points: Places, parts: Sequence[int]) -> Tensor:
    """Bilinear values of a grid [... height width dim] at points on its device: [... n dim].

    Values are not looked at. ``parts``: how many points go into each product, n together, as the last bits of
    a product may depend on its size.
    """
    rows, columns = points.rows.to(grid), points.columns.to(grid)
    weights = (rows[:, :, None] * columns[:, None, :]).flatten(1)
    return torch.cat([some @ grid.flatten(-3, -2) for some in torch.split(weights, list(parts))], dim=-2)


def official_pixels(points_xy: Tensor) -> Tensor:
    """Pixels at which published code takes features: column truncated, row rounded half to even, [n 2]."""
    return torch.stack([points_xy[:, 0].trunc(), points_xy[:, 1].round()], dim=-1)


def searched_pixels(low: float, high: float, side: int) -> range:
    """Pixels along one axis of a view of so many pixels with their centre in [low, high)."""
    start, stop = max(0, math.ceil(low - 0.5)), min(side, math.ceil(high - 0.5))
    return range(start, max(start, stop))


def _weights(position: Tensor, cells: int) -> Tensor:
    """Bilinear weights of positions measured in cells from the edge: [positions cells], float64.

    The position is clamped to the outermost centres, so there one weight is exactly 1.
    """
    clamped = (position - 0.5).clamp(0, cells - 1)
    lower = clamped.floor().clamp_max(max(cells - 2, 0))
    share = clamped - lower
    cell = torch.arange(cells, device=position.device)
    weight = (cell == lower[:, None]) * (1 - share)[:, None]
    return weight + (cell == (lower + 1)[:, None]) * share[:, None]
