"""Semantic correspondence: keypoints of one image found in another by the similarity of tokens, and PCK.

Points are as in `tasks.metrics.bilinear`. Bilinear upsampling commutes with the inner product, so similarity
maps are upsampled, never features.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from tasks.metrics.arrays import SHORTEST
from tasks.metrics.bilinear import (
    Box,
    Places,
    official_pixels,
    official_places,
    official_search,
    point_places,
    sampled,
    searched_places,
)

SIMILARITIES_CPU = 1 << 18  # similarities held at a time: few enough to stay in the cache of a core
SIMILARITIES_GPU = 1 << 26


@dataclass(frozen=True, slots=True)
class Target:
    """An image to find points in, prepared once for all pairs that share it.

    Attributes:
        tokens: [... height width dim] of length 1.
        inverse_norm: [... rows columns] one over the length of the upsampled token at each searched pixel;
            None where upsampled tokens are not scaled again.
        rows: [rows height] bilinear weights of the searched pixels' rows.
        columns: [columns width] the same of their columns.
        corner: Column and row of the first searched pixel.
    """

    tokens: Tensor
    inverse_norm: Tensor | None
    rows: Tensor
    columns: Tensor
    corner: tuple[int, int]


def searchable(tokens: Tensor, searched: Places, scaled: bool) -> Target:
    """A target image, ready to be searched; values are not looked at.

    Args:
        tokens: [... height width dim] of length 1.
        searched: Of ``searched_places``, on their device.
        scaled: Whether upsampled tokens are scaled to length 1 again.
    """
    inverse = None
    if scaled:
        norm = _norm(tokens, searched.rows, searched.columns)
        inverse = norm.clamp_min(SHORTEST).reciprocal().to(tokens)
    return Target(tokens, inverse, searched.rows.to(tokens), searched.columns.to(tokens), searched.corner)


def best_pixels(vectors: Sequence[Tensor], target: Target) -> Tensor:
    """Pixel of the highest inner product with each vector: [... n 2] whole numbers x, y, int64.

    Values are not looked at. Ties go to the lowest row, then to the lowest column. Memory is bounded: so many
    vectors are matched at once as `SIMILARITIES_CPU` and `SIMILARITIES_GPU` say.

    Args:
        vectors: Vectors [... some dim] with the target's leading dimensions, n together; each tensor is one
            product with the tokens, as the last bits of a product may depend on its size.
        target: Of ``searchable``, for all vectors.
    """
    tokens = target.tokens.flatten(-3, -2).mT
    products = torch.cat([some @ tokens for some in vectors], dim=-2)
    most = SIMILARITIES_CPU if products.is_cpu else SIMILARITIES_GPU
    maps = math.prod(products.shape[:-2]) * len(target.rows) * len(target.columns)
    pixels_of_parts = []
    products = products.view(*products.shape[:-1], *target.tokens.shape[-3:-1])
    for small in torch.split(products, max(1, most // maps), dim=-3):
        similarity = torch.matmul(target.rows, torch.matmul(small, target.columns.T))
        if target.inverse_norm is not None:
            similarity *= target.inverse_norm[..., None, :, :]
        pixels_of_parts.append(_argmax(similarity))
    pixels = torch.cat(pixels_of_parts, dim=-2)
    for axis, first in enumerate(target.corner):
        pixels[..., axis] += first
    return pixels


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
        shapes = f"{tuple(grid.shape)} and {tuple(points_xy.shape)}"
        raise ValueError(f"expected a grid [... height width dim] and points [n 2], found {shapes}")
    if not bool(torch.isfinite(points_xy).all()):
        raise ValueError("points must not be NaN or infinite")
    places = point_places(points_xy.to(grid.device), (grid.shape[-3], grid.shape[-2]), stride)
    return sampled(grid, places, [len(points_xy)])


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
    size = (tokens.shape[-3], tokens.shape[-2])
    return searchable(tokens, searched_places(side, size, content).on(tokens.device), scaled=True)


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
    return best_pixels([vectors], target).to(torch.float64) + 0.5


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
        shapes = f"{tuple(source_grid.shape)} and {tuple(points_xy.shape)}"
        raise ValueError(f"expected a square grid of tokens and points [n 2], found {shapes}")
    pixel = official_pixels(points_xy)
    if not bool(((pixel >= 0) & (pixel < side)).all()):
        raise ValueError(f"a point falls on a pixel outside the view of {side}")
    places = official_places(points_xy.to(source_grid.device), (height, width), side)
    vectors, tokens = sampled(_unit(source_grid), places, [len(points_xy)]), _unit(target_grid)
    _check_pair(vectors, tokens)
    search = official_search(side, (tokens.shape[-3], tokens.shape[-2])).on(tokens.device)
    return best_pixels([vectors], searchable(tokens, search, scaled=False))


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
        shapes = f"{tuple(vectors.shape)} and {tuple(tokens.shape)}"
        raise ValueError(f"expected vectors [... n dim] and tokens [... height width dim], found {shapes}")
    if vectors.shape[-1] != tokens.shape[-1]:
        raise ValueError(f"widths of source and target differ: {vectors.shape[-1]} and {tokens.shape[-1]}")


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


def _argmax(similarity: Tensor) -> Tensor:
    """Column and row of the maximum of maps [... rows columns], the first in row-major order: [... 2].

    The maximum of each row comes first: an arg-max over whole maps is many times slower on a CPU.
    """
    row = similarity.amax(-1).argmax(-1)
    index = row[..., None, None].expand(*row.shape, 1, similarity.shape[-1])
    column = similarity.gather(-2, index).squeeze(-2).argmax(-1)
    return torch.stack([column, row], dim=-1)
