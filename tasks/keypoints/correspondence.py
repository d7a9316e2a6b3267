"""Semantic correspondence: keypoints of one image found in another by the similarity of tokens, and PCK.

Coordinates of points are those of `tasks.metrics.bilinear`. Bilinear upsampling commutes with the inner
product, so similarity maps are upsampled, never features. The maximum of a map may be replaced by an
expectation (soft arg-max). Hits are averaged in the ways of several papers. A ceiling is the best possible
score of a protocol that can predict only the positions of a grid.

Sources of the soft arg-max: INSID3 (visinf/INSID3, commit f1c9622), a Gaussian kernel; GeoAware-SC (commit
99fd6b6), a window.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from layerboard.tasks.metrics.arrays import SHORTEST, Floats, Integers
from layerboard.tasks.metrics.bilinear import Places

SIMILARITIES_CPU = 1 << 18  # similarities in memory at a time: few enough for the cache of a CPU core
SIMILARITIES_GPU = 1 << 26


def best_pixels(vectors: Sequence[Tensor], tokens: Tensor, searched: Places, scaled: bool) -> Tensor:
    """Pixel with the highest inner product with each vector: [... n 2], (x, y) int64.

    ``tokens`` [... height width dim] are the unit tokens of the searched image; with ``scaled``, upsampled
    tokens are normalised to length 1 again. Vectors [... some dim] have the same leading dimensions. Each
    tensor of vectors is one matrix product with the tokens, as the last bits of a product may depend on its
    size. Values are not checked for NaN. Ties go to the lowest row, then to the lowest column.
    `SIMILARITIES_CPU` and `SIMILARITIES_GPU` bound the number of similarities in memory.
    """
    rows, columns = searched.rows.to(tokens), searched.columns.to(tokens)
    products = torch.cat([some @ tokens.flatten(-3, -2).mT for some in vectors], dim=-2)
    products = products.view(*products.shape[:-1], *tokens.shape[-3:-1])
    norm = _norm(tokens, searched.rows, searched.columns) if scaled else None
    inverse = None if norm is None else norm.clamp_min(SHORTEST).reciprocal().to(tokens)[..., None, :, :]
    most = SIMILARITIES_CPU if products.is_cpu else SIMILARITIES_GPU
    maps = math.prod(products.shape[:-3]) * len(rows) * len(columns)
    pixels_of_parts = []
    for small in torch.split(products, max(1, most // maps), dim=-3):
        similarity = torch.matmul(rows, torch.matmul(small, columns.T))
        if inverse is not None:
            similarity *= inverse
        pixels_of_parts.append(_argmax(similarity))
    pixels = torch.cat(pixels_of_parts, dim=-2)
    for axis, first in enumerate(searched.corner):
        pixels[..., axis] += first
    return pixels


def _norm(tokens: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Length of the upsampled tokens: [... rows columns], float64.

    A pixel mixes the tokens of two neighbouring rows and columns. So its squared length is a weighted sum of
    inner products of tokens at most one step apart; the weights are products of bilinear weights.
    """
    exact = tokens.to(torch.float64)
    above, below = exact[..., :-1, :, :], exact[..., 1:, :, :]
    left, right = exact[..., :-1, :], exact[..., 1:, :]
    same = torch.cat([_products(exact, exact), 2 * _products(left, right)], dim=-1)
    diagonal = _products(above[..., :-1, :], below[..., 1:, :])
    diagonal = diagonal + _products(above[..., 1:, :], below[..., :-1, :])
    next_row = 2 * torch.cat([_products(above, below), diagonal], dim=-1)
    down, across = (
        torch.cat([weights.square(), weights[:, :-1] * weights[:, 1:]], dim=1) for weights in (rows, columns)
    )
    square = down @ (torch.cat([same, next_row], dim=-2) @ across.T)
    return square.clamp_min(0).sqrt()


def _products(first: Tensor, second: Tensor) -> Tensor:
    return (first * second).sum(-1)


def _argmax(similarity: Tensor) -> Tensor:
    """Column and row of the maximum of maps [... rows columns], the first in row-major order: [... 2].

    The maximum of each row is found first: an arg-max over whole maps is many times slower on a CPU.
    """
    row = similarity.amax(-1).argmax(-1)
    index = row[..., None, None].expand(*row.shape, 1, similarity.shape[-1])
    column = similarity.gather(-2, index).squeeze(-2).argmax(-1)
    return torch.stack([column, row], dim=-1)


@dataclass(frozen=True, slots=True)
class Axis:
    """Positions along one axis of an image that a protocol can predict, in pixels."""

    first: float
    step: float  # from one to the next; 0 where there is one position
    count: int
    between: bool = False  # whether all between the first and the last one can be predicted, too

    def nearest(self, values: Floats) -> Floats:
        """Position nearest to each value; ties go to the lower one."""
        last = self.first + self.step * (self.count - 1)
        low, high = min(self.first, last), max(self.first, last)
        if self.between or not self.step:
            return np.clip(values, low, high)
        step = np.ceil((values - self.first) / self.step - 0.5)
        return np.asarray(self.first + self.step * np.clip(step, 0, self.count - 1), np.float64)


def least_errors(truth: Floats, columns: Axis, rows: Axis) -> Floats:
    """Distance in pixels of points [points 2], (x, y), to the nearest possible position: [points]."""
    across = columns.nearest(truth[:, 0]) - truth[:, 0]
    return np.asarray(np.hypot(across, rows.nearest(truth[:, 1]) - truth[:, 1]), np.float64)


@dataclass(frozen=True, slots=True)
class SoftArgmax:
    """Soft arg-max: the mean of all positions, weighted by softmax(similarity / beta)."""

    beta: float
    sigma: float | None = None  # width in tokens of a Gaussian around the best position that multiplies them
    window: int | None = None  # tokens on each side of the best position; similarities beyond are set to 0

    def found(self, maps: Tensor) -> tuple[Tensor, Tensor]:
        """Expected column and row [... 2] in similarity maps [... height width], and their pull [...].

        Tokens outside the kernel or the window have similarity 0, and so still some weight: if the best
        similarity is low, the position is pulled to the centre of the grid. The pull is the share of the
        weight on tokens whose similarity is multiplied by less than 0.001. Values are not checked for NaN.
        """
        kernel = self._kernel(maps)
        weight = (maps * kernel / self.beta).flatten(-2).softmax(-1).view_as(maps)
        down, across = (
            torch.arange(length, device=maps.device, dtype=maps.dtype) for length in maps.shape[-2:]
        )
        places = [(weight.sum(-2) * across).sum(-1), (weight.sum(-1) * down).sum(-1)]
        return torch.stack(places, dim=-1), (weight * (kernel < 1e-3)).sum((-2, -1))

    def _kernel(self, maps: Tensor) -> Tensor:
        """Factors of the similarities: [... height width]."""
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


AVERAGES = ("image", "image by category", "keypoint", "category", "category by pairs")
"""Averages of hits, in this order: the mean over image pairs of the share of points that hit; the mean over
categories of that mean; the share of all points that hit; the mean over categories of that share; and the
same with categories weighted by their number of pairs."""


def pck_averages(
    hits: NDArray[np.floating] | NDArray[np.bool_], pair: Integers, categories: Sequence[str]
) -> dict[str, float]:
    """The `AVERAGES` of hits, or of other values, [points], in their unit; NaN if there is no point.

    ``pair`` [points] is the index of each point's image pair, and ``categories`` gives the category of each
    pair, including pairs without a point.
    """
    if not len(hits):
        return dict.fromkeys(AVERAGES, float("nan"))
    counts, sums = np.bincount(pair), np.bincount(pair, hits)
    there = np.flatnonzero(counts)
    share, points, right = sums[there] / counts[there], counts[there], sums[there]
    category = np.unique(np.asarray(categories, str)[there], return_inverse=True)[1]
    pairs = np.bincount(category)
    by_category = np.bincount(category, right) / np.bincount(category, points)
    of_images, by_pairs = np.bincount(category, share) / pairs, np.average(by_category, weights=pairs)
    of_points = right.sum() / points.sum()
    values = (share.mean(), of_images.mean(), of_points, by_category.mean(), by_pairs)
    return dict(zip(AVERAGES, map(float, values), strict=True))
