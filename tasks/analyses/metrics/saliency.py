"""Whether attention highlights an object: overlap of the strongest cells of a map with the object's mask.

Source: Walmer et al., CVPR 2023, section 4.4 and appendix C.3, and its released code.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from layerboard.tasks.analyses.metrics.attention import Cells
from layerboard.tasks.metrics.arrays import Floats, Mask
from layerboard.tasks.metrics.cell_labels import overlaps

ROUNDING = 1e-6  # values with a smaller relative difference count as equal: they are sums in float32

Shares = NDArray[np.float64]  # share of each cell that an object covers: [rows columns]


@dataclass(frozen=True, slots=True)
class Threshold:
    """Rule that marks the strongest cells of a map, which together contain a share of its mass.

    Cells are sorted by value, ascending, and their shares of the sum are accumulated. Cells whose cumulative
    share exceeds ``1 - mass + margin`` are marked; the margin absorbs rounding errors at the limit itself.
    With ``ties``, cells as strong as the weakest marked one are marked, too. Otherwise equal cells are in
    row-major order, and the last of them count as the strongest.
    """

    mass: float
    margin: float
    ties: bool


def marked(maps: Tensor, rule: Threshold) -> Tensor:
    """Marked cells of a map [... cells], bool; none for a map that is empty or not finite."""
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
    """IoU of the marked cells of maps [images ... cells] with the object cells [images cells]: [images ...].

    float64 in [0, 1]; 0 for an empty map, NaN for a map that is not finite. An image without an object has no
    value.
    """
    cells = marked(maps, rule)
    truth = objects.view(len(objects), *[1] * (maps.ndim - 2), -1)
    overlap = (cells & truth).sum(dim=-1) / (cells | truth).sum(dim=-1).double()
    return overlap + 0 * maps.sum(dim=-1)  # keeps NaN


def exact_cell_shares(mask: Mask | NDArray[np.uint8], rows: Floats, columns: Floats) -> Shares:
    """Exact share of each cell's area that a mask covers; the area outside the image is not covered.

    The mask is [height width], 0 outside the object. ``rows`` [rows + 1] and ``columns`` [columns + 1] are
    the edges of the cells from top to bottom and from left to right, ascending, in pixels of the mask.
    """
    down, right = overlaps(rows, mask.shape[0]), overlaps(columns, mask.shape[1])
    area = np.diff(rows)[:, None] * np.diff(columns)[None]
    return np.asarray(down @ (mask != 0).astype(np.float64) @ right.T / area)


def half_covered(shares: Shares) -> NDArray[np.bool_]:
    """Cells [rows columns] that are at least half covered; without any, the first most covered cell."""
    exact = shares.round(9)  # so that rounding errors do not break ties
    covered = exact >= 0.5
    if not covered.any() and exact.any():
        covered.flat[np.argmax(exact)] = True
    return np.asarray(covered)


def touched(masks: Sequence[NDArray[np.uint8]], cells: Cells) -> NDArray[np.bool_]:
    """Cells [rows columns] that are not zero in any of several resized masks [height width].

    Each mask, times 255, is resized as an 8-bit image, as in the released code. The support of the bicubic
    filter makes objects wider.
    """
    traced = np.zeros(cells, bool)
    for mask in masks:
        picture = Image.fromarray((mask != 0).astype(np.uint8) * np.uint8(255))
        traced |= np.asarray(picture.resize((cells[1], cells[0]), Image.Resampling.BICUBIC)) > 0
    return traced


def centre_square(mask: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The central square of a mask [height width]; an odd surplus loses one pixel more at the end."""
    side = min(mask.shape)
    top, left = ((length - side) // 2 for length in mask.shape)
    return mask[top : top + side, left : left + side]


def held_out_best(values: Floats, splits: int, seed: int) -> float:
    """Held-out score of the best candidate: chosen on one half of the images, scored on the other half.

    Values are [images candidates]; ties go to the first candidate. One generator (PCG64) draws all halves, a
    permutation for each. With an odd number of images, the half on which the candidate is chosen is smaller.
    The result is the mean over the splits, NaN for fewer than two images.
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
    best = (chosen_on / half).round(12).argmax(axis=1)  # so that rounding errors do not break ties
    scored = (values.sum(axis=0) - chosen_on) / (count - half)
    return float(scored[np.arange(splits), best].mean())
