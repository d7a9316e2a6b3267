"""Regions of images by patch tokens: the part of a grid that looks most like a region of another one."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import conv2d, grid_sample, normalize

from layerboard.zoo.view.geometry import Box

SCALES = tuple(2 ** (step / 2) for step in range(-3, 4))  # sizes of a region, in that of the query
LARGER = 0.2
LEAST = 4  # cells of a smaller version of the query; fewer are alike by chance


class BestRegions(NamedTuple):
    """The best region of each of some grids."""

    score: Tensor  # mean cosine of its tokens with those of the query, -1 to 1: [grids]
    box: Tensor  # left, top, right and bottom in cells: [grids 4]


def query_tokens(grid: Tensor, box: Box) -> list[Tensor]:
    """Tokens of a region at several sizes, [rows columns dim] each, of length 1.

    ``box`` is in cells of the grid [rows columns dim]. Tokens are interpolated at evenly spaced points of the
    box, less the mean token of the grid, which all of its cells share. Sizes with fewer than `LEAST` cells
    are left out, but not the region's own.
    """
    left, top, right, bottom = box
    rows, columns = grid.shape[:2]
    field = _contrasted(grid[None]).permute(0, 3, 1, 2)
    sizes: dict[tuple[int, int], None] = {_cells(box, 1.0): None}
    sizes |= {size: None for size in (_cells(box, scale) for scale in SCALES) if size[0] * size[1] >= LEAST}
    tokens = []
    for tall, wide in sizes:
        y = top + (torch.arange(tall, device=grid.device) + 0.5) * (bottom - top) / tall
        x = left + (torch.arange(wide, device=grid.device) + 0.5) * (right - left) / wide
        points = torch.stack(
            [(2 * x / columns - 1).expand(tall, wide), (2 * y / rows - 1)[:, None].expand(tall, wide)], dim=-1
        )
        sampled = grid_sample(field, points[None].to(field.dtype), padding_mode="border", align_corners=False)
        tokens.append(normalize(sampled[0].permute(1, 2, 0), dim=-1))
    return tokens


def best_regions(tokens: Sequence[Tensor], grids: Tensor) -> BestRegions:
    """The region of each grid [grids rows columns dim] that is most like one of the `query_tokens`.

    Of two sizes the larger one is taken if it is nearly as much alike, since few tokens are alike by chance:
    cosines are compared after they were multiplied by the number of cells to the power `LARGER`. Sizes that
    do not fit into the grids are cut at the middle of the query; ties go to the first size, then to the upper
    left.
    """
    field = normalize(_contrasted(grids), dim=-1).permute(0, 3, 1, 2)
    rows, columns = field.shape[2:]
    score, chosen = torch.full((2, len(grids)), -torch.inf, device=grids.device)
    box = torch.zeros(len(grids), 4, device=grids.device)
    for query in dict.fromkeys(_fitting(each, rows, columns) for each in tokens):
        tall, wide = query.shape[:2]
        alike = conv2d(field, query.permute(2, 0, 1)[None]).flatten(1) / (tall * wide)
        best, index = alike.max(dim=1)
        across = columns - wide + 1
        left, top = index % across, index // across
        boxes = torch.stack([left, top, left + wide, top + tall], dim=1).to(box.dtype)
        weighted = best * (tall * wide) ** LARGER
        better = weighted > chosen
        chosen = torch.where(better, weighted, chosen)
        score, box = torch.where(better, best, score), torch.where(better[:, None], boxes, box)
    return BestRegions(score, box)


def _contrasted(grids: Tensor) -> Tensor:
    """Tokens [grids rows columns dim] of length 1, less their mean over each grid."""
    unit = normalize(grids, dim=-1)
    return unit - unit.mean(dim=(1, 2), keepdim=True)


def _cells(box: Box, scale: float) -> tuple[int, int]:
    left, top, right, bottom = box
    return max(1, round((bottom - top) * scale)), max(1, round((right - left) * scale))


def _fitting(query: Tensor, rows: int, columns: int) -> Tensor:
    """The middle of a query that is larger than a grid."""
    top, left = (max(0, (own - most) // 2) for own, most in zip(query.shape, (rows, columns), strict=False))
    return query[top : top + rows, left : left + columns]
