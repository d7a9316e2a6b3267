"""Whether attention marks an object: the cells that hold most of a map, and how they overlap with a mask.

Source: Walmer et al., CVPR 2023, section 4.4 and appendix C.3, and its released code.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from layerboard.tasks.metrics.arrays import Floats, Mask
from layerboard.tasks.metrics.attention import Cells
from layerboard.tasks.metrics.cell_labels import overlaps

ROUNDING = 1e-6  # relative difference of values that count as equal: they are sums in single precision

Shares = NDArray[np.float64]  # share of each cell that an object covers: [rows columns]


@dataclass(frozen=True, slots=True)
class Threshold:
    """Which cells of a map are marked: the strongest ones that together hold a share of its mass.

    Cells are sorted by value, ascending, and their values, divided by the sum, are added up; those whose sum
    exceeds ``1 - mass + margin`` are marked: the margin keeps rounding from deciding where a sum is the limit
    itself. With ``ties`` cells as strong as the weakest marked one are marked, too; otherwise equal ones are
    in row-major order, and the last of them count as the strongest.
    """

    mass: float
    margin: float
    ties: bool


def marked(maps: Tensor, rule: Threshold) -> Tensor:
    """Cells that a map [... cells] marks, bool; none of a map that is empty or not finite."""
    values = maps.double()
    total = values.sum(dim=-1, keepdim=True)
    values = values / torch.where(total > 0, total, 1)
    ascending, order = values.sort(dim=-1, stable=True)
    strong = ascending.cumsum(dim=-1) > 1 - rule.mass + rule.margin
    if rule.ties:
        weakest = ascending.masked_fill(~strong, torch.inf).amin(dim=-1, keepdim=True)
        return values >= weakest * (1 - ROUNDING)
    return torch.zeros_like(strong).scatter_(-1, order, strong)


def saliency_iou(maps: Tensor, objects: Tensor, rule: Threshold) -> Tensor:
    """Intersection over union of the cells that maps [images ... cells] mark and the object's [images cells].

    [images ...], float64 in [0, 1]; 0 of an empty map, NaN of one that is not finite. An image without any
    object has no value.
    """
    cells = marked(maps, rule)
    truth = objects.view(len(objects), *[1] * (maps.ndim - 2), -1)
    overlap = (cells & truth).sum(dim=-1) / (cells | truth).sum(dim=-1).double()
    return overlap + 0 * maps.sum(dim=-1)  # what is not finite stays so


def cell_shares(mask: Mask | NDArray[np.uint8], rows: Floats, columns: Floats) -> Shares:
    """Exact share of each cell's area that a mask covers; what lies outside the mask's image is not covered.

    The mask is [height width], 0 where the object is not; cells have edges [rows + 1] from top to bottom and
    [columns + 1] from left to right, ascending, in pixels of the mask.
    """
    down, right = overlaps(rows, mask.shape[0]), overlaps(columns, mask.shape[1])
    area = np.diff(rows)[:, None] * np.diff(columns)[None]
    return np.asarray(down @ (mask != 0).astype(np.float64) @ right.T / area)


def half_covered(shares: Shares) -> NDArray[np.bool_]:
    """Cells [rows columns] of which half is covered; if none is, the first of the largest share, if any."""
    exact = shares.round(9)  # ties are those of areas, not of rounding
    covered = exact >= 0.5
    if not covered.any() and exact.any():
        covered.flat[np.argmax(exact)] = True
    return np.asarray(covered)


def touched(masks: Sequence[NDArray[np.uint8]], cells: Cells) -> NDArray[np.bool_]:
    """Cells [rows columns] in which any of several masks [height width] leaves a trace, by the released code.

    Each mask, times 255, is resized as an 8-bit image, bicubic, whose support makes objects wider.
    """
    traced = np.zeros(cells, bool)
    for mask in masks:
        picture = Image.fromarray((mask != 0).astype(np.uint8) * np.uint8(255))
        traced |= np.asarray(picture.resize((cells[1], cells[0]), Image.Resampling.BICUBIC)) > 0
    return traced


def centre_square(mask: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The middle square of a mask [height width]; of an odd surplus the end loses one pixel more."""
    side = min(mask.shape)
    top, left = ((length - side) // 2 for length in mask.shape)
    return mask[top : top + side, left : left + side]


def held_out_best(values: Floats, splits: int, seed: int) -> float:
    """Mean score of the candidate that is best on one half of the images, on the other half.

    Values are [images candidates]; of equal candidates the first is taken. The generator (PCG64) draws all
    halves, one permutation after the other; of an odd number the first half, on which the candidate is
    chosen, is smaller. The mean is over the splits, NaN of fewer than two images.
    """
    count = len(values)
    half = count // 2
    if half == 0:
        return float("nan")
    generator = np.random.Generator(np.random.PCG64(seed))
    first = np.zeros((splits, count))
    for row in first:
        row[generator.permutation(count)[:half]] = 1
    chosen_on = first @ values
    best = (chosen_on / half).round(12).argmax(axis=1)  # ties are not decided by rounding
    scored = (values.sum(axis=0) - chosen_on) / (count - half)
    return float(scored[np.arange(splits), best].mean())
