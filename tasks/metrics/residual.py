"""What a branch adds to its skip, and how far from a cell the pixels lie that move it (receptive fields).

Pure functions of tensors, on any device. None of those of residual sums waits for the device: what has no
value is NaN, and `sum_gap` tells whether features were finite.

Sources: Raghu et al., Do Vision Transformers See Like Convolutional Neural Networks?, NeurIPS 2021,
sections 5 and 6, appendices C and E; Luo et al., Understanding the Effective Receptive Field, NeurIPS 2016.
"""

import numpy as np
import torch
from torch import Tensor

from layerboard.tasks.metrics.arrays import Floats


def norm_ratio(skip: Tensor, branch: Tensor) -> Tensor:
    """Length of each token's skip [... tokens dim] over its branch's: [... tokens], float32; NaN over 0."""
    return _ratio(_length(skip), _length(branch))


def frobenius_ratio(skip: Tensor, branch: Tensor) -> Tensor:
    """Length of the skip of all tokens [... tokens dim] together over their branch's: [...]; NaN over 0."""
    return _ratio(_length(skip.flatten(-2)), _length(branch.flatten(-2)))


def cosine(one: Tensor, other: Tensor) -> Tensor:
    """Cosine of two vectors a token: [... tokens] of two [... tokens dim], float32; NaN where one is zero."""
    return _ratio((one.float() * other.float()).sum(dim=-1), _length(one) * _length(other))


def sum_gap(summed: Tensor, output: Tensor) -> Tensor:
    """How far an output is from the sum of skip and branch that it should be: [2], float32.

    The largest difference of two entries, and the largest entry of the output, both absolute; NaN where a
    value of either tensor is.
    """
    return torch.stack([(output.float() - summed.float()).abs().amax(), output.float().abs().amax()])


def _length(vectors: Tensor) -> Tensor:
    length: Tensor = torch.linalg.vector_norm(vectors.float(), dim=-1)
    return length


def _ratio(above: Tensor, below: Tensor) -> Tensor:
    """A quotient, NaN where nothing can be divided by."""
    return torch.where(below > 0, above / below, torch.nan)


Pixel = tuple[float, float]  # row and column in pixel edges: the centre of the first pixel is (0.5, 0.5)

HALF = 0.5 * (1 - 1e-9)  # half the mass, less what rounding of a sum may take away


def half_radius(field: Floats, centre: Pixel) -> float:
    """Smallest radius of a disc around a centre that holds half the mass of a field.

    The field [height width] is how strongly each pixel counts, not negative, with a sum above 0. The radius
    reaches to the farthest pixel centre inside, over the side of the field (of a field that is no square, the
    root of its number of pixels): 0.399 where all pixels count alike and the disc fits.
    """
    rows, columns = (np.arange(count) + 0.5 for count in field.shape)
    distance = np.hypot(rows[:, None] - centre[0], columns[None] - centre[1]).ravel()
    order = np.argsort(distance, kind="stable")
    inside = np.cumsum(field.ravel()[order])
    last = order[np.searchsorted(inside, HALF * inside[-1])]
    return float(distance[last] / np.sqrt(field.size))


def half_area(field: Floats) -> float:
    """Share of the pixels, strongest first, that hold half the mass of such a field: 0.5 of equal ones."""
    inside = np.cumsum(np.sort(field, axis=None)[::-1])
    return float((np.searchsorted(inside, HALF * inside[-1]) + 1) / field.size)


def share_inside(field: Floats, rows: slice, columns: slice) -> float:
    """Share of the mass of such a field in a rectangle of pixels."""
    return float(field[rows, columns].sum() / field.sum())
