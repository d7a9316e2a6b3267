"""Semantic correspondence: keypoints of one image found in another by the similarity of tokens, and PCK.

Points are x before y in pixels of the view, measured from its upper left edge: pixel i spans [i, i + 1) and
the centre of token i is (i + 0.5) * stride. Between token centres features are bilinear, beyond the outermost
ones constant. Bilinear upsampling commutes with the inner product, so similarity maps are upsampled, never
features.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from tasks.metrics.arrays import SHORTEST

Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Target:
    """An image to find points in, prepared once for all pairs that share it.

    Attributes:
        tokens: [... height width dim] of length 1.
        inverse_norm: [... rows columns] one over the length of the upsampled token at each searched pixel.
        rows: [rows height] bilinear weights of the searched pixels' rows.
        columns: [columns width] the same of their columns.
        corner: Column and row of the first searched pixel.
    """

    tokens: Tensor
    inverse_norm: Tensor
    rows: Tensor
    columns: Tensor
    corner: tuple[int, int]


def sample_points(grid: Tensor, points_xy: Tensor, stride: float) -> Tensor:
    """Bilinear values of a grid at exact positions: [... n dim], in the grid's dtype.

    Args:
        grid: [... height width dim]; leading dimensions, such as layers, share the points.
        points_xy: [n 2] in pixels of the view; beyond the outermost token centres the border value holds.
        stride: Pixels a token.

    Raises:
        ValueError: Wrong shapes, a stride that is not positive, or a coordinate that is NaN or infinite.
    """
    if grid.ndim < 3 or 0 in grid.shape or points_xy.ndim != 2 or points_xy.shape[-1] != 2:
        found = f"{tuple(grid.shape)} and {tuple(points_xy.shape)}"
        raise ValueError(f"expected a grid [... height width dim] and points [n 2], found {found}")
    if not stride > 0:
        raise ValueError(f"the stride must be positive, found {stride}")
    if not bool(torch.isfinite(points_xy).all()):
        raise ValueError("points must not be NaN or infinite")
    height, width = grid.shape[-3:-1]
    points = points_xy.to(grid.device, torch.float64) / stride
    columns = _weights(points[:, 0], width).to(grid)
    rows = _weights(points[:, 1], height).to(grid)
    weight = (rows[:, :, None] * columns[:, None, :]).flatten(1)
    return weight @ grid.flatten(-3, -2)


def prepare_target(grid: Tensor, side: int, content: Box | None = None) -> Target:
    """A target image's tokens and weights, as ``match`` takes them.

    Args:
        grid: [... height width dim] tokens, any length of vector; leading dimensions are matched one by one.
        side: Height and width of the view in pixels.
        content: Left, top, right and bottom of the image inside the padded view; all of the view if None.
            Only pixels with their centre inside are searched.

    Raises:
        ValueError: Wrong shape, a content box without a pixel, or a value that is NaN or infinite.
    """
    tokens = _unit(grid)
    left, top, right, bottom = content or (0.0, 0.0, float(side), float(side))
    columns, rows = _searched(left, right, side), _searched(top, bottom, side)
    if not len(columns) or not len(rows):
        raise ValueError(f"the content box {content} holds no pixel of a view of {side}")
    height, width = tokens.shape[-3:-1]
    across = _weights((columns + 0.5) * (width / side), width)
    down = _weights((rows + 0.5) * (height / side), height)
    norm = _norm(tokens, down.to(tokens.device), across.to(tokens.device))
    inverse = norm.clamp_min(SHORTEST).reciprocal().to(tokens)
    corner = (int(columns[0]), int(rows[0]))
    return Target(tokens, inverse, down.to(tokens), across.to(tokens), corner)


def match(source_vectors: Tensor, target: Target) -> Tensor:
    """Centre of the pixel whose upsampled feature has the highest cosine to each vector: [... n 2], float64.

    Vectors and upsampled target features are both scaled to length 1. Ties, which are exact where the border
    repeats the outermost tokens, go to the lowest row, then to the lowest column.

    Args:
        source_vectors: [... n dim] with the target's leading dimensions.
        target: Of ``prepare_target``.

    Raises:
        ValueError: Shapes do not fit, or a value is NaN or infinite.
    """
    vectors = _unit(source_vectors)
    _check_pair(vectors, target.tokens)
    similarity = _upsample(vectors, target.tokens, target.rows, target.columns)
    similarity *= target.inverse_norm[..., None, :, :]
    column, row = _argmax(similarity)
    pixel = torch.stack([column + target.corner[0], row + target.corner[1]], dim=-1)
    return pixel.to(torch.float64) + 0.5


def match_official(source_grid: Tensor, target_grid: Tensor, points_xy: Tensor, side: int) -> Tensor:
    """Best pixel of each point by the published code's rule: [... n 2] whole numbers x, y, int64.

    The source feature is that of pixel (x truncated, y rounded half to even) of the upsampled unit tokens,
    the score its inner product with all pixels of the upsampled target tokens, without scaling them again.
    Ties go to the lowest row, then to the lowest column.

    Args:
        source_grid: [... height width dim].
        target_grid: The same shape.
        points_xy: [n 2] in pixels of the square view.
        side: Its height and width in pixels.

    Raises:
        ValueError: Shapes do not fit, a value is NaN or infinite, or a point's pixel lies outside the view.

    Source: Walmer et al., Teaching Matters, CVPR 2023, released code.
    """
    height, width = source_grid.shape[-3:-1]
    if height != width or points_xy.ndim != 2 or points_xy.shape[-1] != 2:
        found = f"{tuple(source_grid.shape)} and {tuple(points_xy.shape)}"
        raise ValueError(f"expected a square grid of tokens and points [n 2], found {found}")
    pixel = torch.stack([points_xy[:, 0].trunc(), points_xy[:, 1].round()], dim=-1)
    if not bool(((pixel >= 0) & (pixel < side)).all()):
        raise ValueError(f"a point falls on a pixel outside the view of {side}")
    vectors = sample_points(_unit(source_grid), pixel.to(torch.float64) + 0.5, side / width)
    tokens = _unit(target_grid)
    _check_pair(vectors, tokens)
    every = (torch.arange(side, dtype=torch.float64) + 0.5) / side
    down, across = (_weights(every * length, length).to(tokens) for length in tokens.shape[-3:-1])
    return torch.stack(_argmax(_upsample(vectors, tokens, down, across)), dim=-1)


def pck(
    distance: NDArray[np.float64], threshold_length: NDArray[np.float64] | float, alpha: float
) -> NDArray[np.bool_]:
    """Whether each distance is strictly below alpha times its threshold length; shapes broadcast.

    Args:
        distance: Pixels between predicted and true point.
        threshold_length: Pixels, the longer side of the target's bounding box or of its image.
        alpha: Share of it.

    Raises:
        ValueError: A value is negative, NaN or infinite.
    """
    length = np.asarray(threshold_length, dtype=np.float64)
    if alpha < 0 or not all((np.isfinite(array) & (array >= 0)).all() for array in (distance, length)):
        raise ValueError("distances, threshold lengths and alpha must be finite and not negative")
    return np.asarray(distance < alpha * length)


def _unit(vectors: Tensor) -> Tensor:
    """Vectors of length 1 along the last dimension, at least float32."""
    if vectors.ndim < 2 or not vectors.shape[-1]:
        raise ValueError(f"expected vectors along the last dimension, found shape {tuple(vectors.shape)}")
    values = vectors if vectors.dtype == torch.float64 else vectors.float()
    if not bool(torch.isfinite(values).all()):
        raise ValueError("features must not hold NaN or infinite values")
    return functional.normalize(values, dim=-1)


def _check_pair(vectors: Tensor, tokens: Tensor) -> None:
    if tokens.ndim < 3 or 0 in tokens.shape or vectors.shape[:-2] != tokens.shape[:-3]:
        found = f"{tuple(vectors.shape)} and {tuple(tokens.shape)}"
        raise ValueError(f"expected vectors [... n dim] and tokens [... height width dim], found {found}")
    if vectors.shape[-1] != tokens.shape[-1]:
        raise ValueError(f"widths of source and target differ: {vectors.shape[-1]} and {tokens.shape[-1]}")


def _searched(low: float, high: float, side: int) -> Tensor:
    """Pixels along one axis with their centre in [low, high)."""
    start, stop = max(0, math.ceil(low - 0.5)), min(side, math.ceil(high - 0.5))
    return torch.arange(start, max(start, stop), dtype=torch.float64)


def _weights(position: Tensor, cells: int) -> Tensor:
    """Bilinear weights of positions measured in cells from the edge: [positions cells], float64.

    The position is clamped to the outermost centres, so there one weight is exactly 1.
    """
    place = (position - 0.5).clamp(0, cells - 1)
    lower = place.floor().clamp_max(max(cells - 2, 0))
    share = place - lower
    cell = torch.arange(cells, device=position.device)
    weight = (cell == lower[:, None]) * (1 - share)[:, None]
    return weight + (cell == (lower + 1)[:, None]) * share[:, None]


def _upsample(vectors: Tensor, tokens: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Inner products of vectors with upsampled tokens: [... n rows columns]."""
    small = vectors @ tokens.flatten(-3, -2).mT
    small = small.view(*small.shape[:-1], *tokens.shape[-3:-1])
    return torch.matmul(rows, torch.matmul(small, columns.T))


def _norm(tokens: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Length of the upsampled tokens: [... rows columns], float64.

    A pixel mixes tokens of two neighbouring rows and columns, so its squared length is a sum over inner
    products of tokens at most one step apart, each weighted by products of their rows' and columns' weights.
    """
    exact = tokens.to(torch.float64)
    height, width = exact.shape[-3:-1]
    square = exact.new_zeros((*exact.shape[:-3], len(rows), len(columns)))
    for down in (0, 1):
        for across in (-1, 0, 1) if down else (0, 1):
            near = exact[..., : height - down, max(0, -across) : width - max(0, across), :]
            far = exact[..., down:, max(0, across) : width - max(0, -across), :]
            product = (near * far).sum(-1)
            pair_rows = rows[:, : height - down] * rows[:, down:]
            near_columns = columns[:, max(0, -across) : width - max(0, across)]
            pair_columns = near_columns * columns[:, max(0, across) : width - max(0, -across)]
            twice = 2.0 if down or across else 1.0
            square += twice * (pair_rows @ (product @ pair_columns.T))
    return square.clamp_min(0).sqrt()


def _argmax(similarity: Tensor) -> tuple[Tensor, Tensor]:
    """Column and row of each map's maximum, the first in row-major order."""
    best = similarity.flatten(-2).argmax(-1)
    return best % similarity.shape[-1], best // similarity.shape[-1]
