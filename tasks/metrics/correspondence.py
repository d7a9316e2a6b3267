"""Semantic correspondence: keypoints of one image found in another by the similarity of tokens, and PCK.

Points are as in `tasks.metrics.bilinear`. Bilinear upsampling commutes with the inner product, so
similarity maps are upsampled, never features. The highest place of a map may be an expected one (soft arg-
max); hits are averaged in the ways of several papers; a ceiling says how well points could be found by a
protocol that can only say certain positions: a product of two axes, so that the nearest position is the
nearest one of each axis.

Sources of the soft arg-max: INSID3 (visinf/INSID3, commit f1c9622), a Gaussian kernel; GeoAware-SC (commit
99fd6b6), a window.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from math import acos, pi, sqrt

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from tasks.metrics.arrays import SHORTEST, Floats, Integers
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


@dataclass(frozen=True, slots=True)
class Axis:
    """Positions along one axis of an image, in its pixels.

    Attributes:
        first: The first one.
        step: From one to the next; 0 where there is one position.
        count: How many there are.
        between: Whether all that lies between the first and the last one can be said, too.
    """

    first: float
    step: float
    count: int
    between: bool = False

    def nearest(self, values: Floats) -> Floats:
        """The position nearest to each value; of two equally near ones the lower."""
        last = self.first + self.step * (self.count - 1)
        low, high = min(self.first, last), max(self.first, last)
        if self.between or not self.step:
            return np.clip(values, low, high)
        step = np.ceil((values - self.first) / self.step - 0.5)
        return np.asarray(self.first + self.step * np.clip(step, 0, self.count - 1), np.float64)


def least_errors(truth: Floats, columns: Axis, rows: Axis) -> Floats:
    """Distance of each point to the nearest position that can be said, in pixels of the image: [points].

    Args:
        truth: [points 2] x, y.
        columns: What can be said of x.
        rows: What can be said of y.
    """
    across = columns.nearest(truth[:, 0]) - truth[:, 0]
    down = rows.nearest(truth[:, 1]) - truth[:, 1]
    return np.asarray(np.hypot(across, down), np.float64)


def share_within(cell: float, radius: float) -> float:
    """Share of a square cell that lies within a radius of its centre.

    It is the ceiling that is to be expected of points that are spread evenly.

    Args:
        cell: Side of the cell.
        radius: In the same unit.

    Raises:
        ValueError: A length is not positive.
    """
    if not (cell > 0 and radius > 0):
        raise ValueError(f"expected a side and a radius above 0, found {cell} and {radius}")
    half = cell / 2
    if radius >= half * sqrt(2):
        return 1.0
    inside = pi * radius**2
    if radius > half:
        inside -= 4 * (radius**2 * acos(half / radius) - half * sqrt(radius**2 - half**2))
    return inside / cell**2


@dataclass(frozen=True, slots=True)
class SoftArgmax:
    """How similarities become a place: the mean of all places, weighted by softmax(similarity / beta).

    Attributes:
        beta: Temperature.
        sigma: Of a Gaussian around the best place that similarities are multiplied by, in tokens; None for no
            kernel.
        window: Tokens around the best place, to each side, beyond which similarities are 0; None for all.
    """

    beta: float
    sigma: float | None = None
    window: int | None = None

    def found(self, maps: Tensor) -> tuple[Tensor, Tensor]:
        """Expected column and row of maps [... height width], [... 2], and their pull, [...].

        What the kernel or the window hides counts as a similarity of 0, not as none: where the best one is
        low, places are pulled to the centre of the grid. The pull is the share of the weight that lies where
        similarities count as next to 0. Values are not looked at.
        """
        kernel = self._kernel(maps)
        weight = (maps * kernel / self.beta).flatten(-2).softmax(-1).view_as(maps)
        down, across = (
            torch.arange(length, device=maps.device, dtype=maps.dtype) for length in maps.shape[-2:]
        )
        places = [(weight.sum(-2) * across).sum(-1), (weight.sum(-1) * down).sum(-1)]
        return torch.stack(places, dim=-1), (weight * (kernel < 1e-3)).sum((-2, -1))

    def places(self, maps: Tensor) -> Tensor:
        """Expected column and row of maps [... height width]: [... 2], as of `found`."""
        return self.found(maps)[0]

    def pull(self, maps: Tensor) -> Tensor:
        """Share of the weight [...] that lies where similarities count as next to 0, as of `found`."""
        return self.found(maps)[1]

    def _kernel(self, maps: Tensor) -> Tensor:
        """What similarities are multiplied by: [... height width]."""
        height, width = maps.shape[-2:]
        best = maps.flatten(-2).argmax(-1)[..., None, None]
        down = (torch.arange(height, device=maps.device)[:, None] - best // width).to(maps)
        across = (torch.arange(width, device=maps.device) - best % width).to(maps)
        kernel = torch.ones_like(maps)
        if self.sigma is not None:
            kernel = kernel * torch.exp(-(across.square() + down.square()) / (2 * self.sigma**2))
        if self.window is not None:
            kernel = kernel * ((across.abs() <= self.window) & (down.abs() <= self.window))
        return kernel


@dataclass(frozen=True, slots=True)
class PckAverages:
    """Shares of hits, in their unit; NaN where there is no point.

    Attributes:
        image_all: Mean over all pairs of the share of each; pairs without a point are left out.
        image_category: Mean over categories of the mean over their pairs.
        point_all: Share of all points.
        point_category: Mean over categories of the share of their points.
        point_by_pairs: The same, categories weighted by how many pairs they have.
    """

    image_all: float
    image_category: float
    point_all: float
    point_category: float
    point_by_pairs: float


def pck_averages(
    hits: NDArray[np.floating] | NDArray[np.bool_], pair: Integers, categories: Sequence[str]
) -> PckAverages:
    """Averages of the hits of points.

    Args:
        hits: [points] whether each point was hit, or what a hit is worth; averages are in its unit.
        pair: [points] number of the pair of images that each point is of.
        categories: Category of each pair, also of those without a point.

    Raises:
        ValueError: There is not one pair a point, or no category of a pair.
    """
    if hits.shape != pair.shape or (len(pair) and not 0 <= pair.min() <= pair.max() < len(categories)):
        raise ValueError(
            f"expected a pair a point and a category a pair, found {len(pair)} for {len(hits)} points"
        )
    if not len(hits):
        return PckAverages(*[float("nan")] * 5)
    counts, sums = np.bincount(pair), np.bincount(pair, hits)
    there = np.flatnonzero(counts)
    share, points, right = sums[there] / counts[there], counts[there], sums[there]
    category = np.unique(np.asarray(categories, str)[there], return_inverse=True)[1]
    pairs = np.bincount(category)
    by_category = np.bincount(category, right) / np.bincount(category, points)
    return PckAverages(
        image_all=float(share.mean()),
        image_category=float((np.bincount(category, share) / pairs).mean()),
        point_all=float(right.sum() / points.sum()),
        point_category=float(by_category.mean()),
        point_by_pairs=float(np.average(by_category, weights=pairs)),
    )
