"""Measures of residual sums (skip connection and branch) and of effective receptive fields.

Pure functions of tensors, on any device. Those of residual sums never wait for the device: undefined values
are NaN, and `sum_gap` shows whether features were finite.

Sources: Raghu et al., Do Vision Transformers See Like Convolutional Neural Networks?, NeurIPS 2021,
sections 5 and 6, appendices C and E; Luo et al., Understanding the Effective Receptive Field, NeurIPS 2016.
"""

import numpy as np
import torch
from torch import Tensor

from layerboard.tasks.metrics.arrays import Floats


def norm_ratio(skip: Tensor, branch: Tensor) -> Tensor:
    """Norm of each token's skip [... tokens dim] over its branch's: [... tokens], float32; NaN over 0."""
    return _ratio(_length(skip), _length(branch))


def frobenius_ratio(skip: Tensor, branch: Tensor) -> Tensor:
    """Frobenius norm of the skip [... tokens dim] over that of the branch: [...]; NaN over 0."""
    return _ratio(_length(skip.flatten(-2)), _length(branch.flatten(-2)))


def token_cosines(one: Tensor, other: Tensor) -> Tensor:
    """Cosine of two vectors [... tokens dim] per token: [... tokens], float32; NaN if one is zero."""
    return _ratio((one.float() * other.float()).sum(dim=-1), _length(one) * _length(other))


def sum_gap(summed: Tensor, output: Tensor) -> Tensor:
    """Deviation of a block's output from the sum of skip and branch: [2], float32.

    The first is the largest absolute difference of two entries, the second the largest absolute entry of the
    output. NaN if either tensor contains NaN.
    """
    return torch.stack([(output.float() - summed.float()).abs().amax(), output.float().abs().amax()])


def _length(vectors: Tensor) -> Tensor:
    length: Tensor = torch.linalg.vector_norm(vectors.float(), dim=-1)
    return length


def _ratio(above: Tensor, below: Tensor) -> Tensor:
    """Quotient; NaN for a division by 0."""
    return torch.where(below > 0, above / below, torch.nan)


Pixel = tuple[float, float]  # row and column, where the centre of the first pixel is (0.5, 0.5)

HALF = 0.5 * (1 - 1e-9)  # half the mass, minus a margin for rounding errors of the sum


def half_radius(field: Floats, centre: Pixel) -> float:
    """Smallest radius of a disc around a centre that contains half the mass of a field.

    The field [height width] is the weight of each pixel, not negative, with a sum above 0. The radius is the
    distance to the farthest pixel centre inside, divided by the side of the field (or by the square root of
    its number of pixels if it is not square). It is 0.399 for a uniform field in which the disc fits.
    """
    rows, columns = (np.arange(count) + 0.5 for count in field.shape)
    distance = np.hypot(rows[:, None] - centre[0], columns[None] - centre[1]).ravel()
    order = np.argsort(distance, kind="stable")
    inside = np.cumsum(field.ravel()[order])
    last = order[np.searchsorted(inside, HALF * inside[-1])]
    return float(distance[last] / np.sqrt(field.size))


def half_area(field: Floats) -> float:
    """Share of the pixels, strongest first, that contain half the mass of a field: 0.5 if it is uniform."""
    inside = np.cumsum(np.sort(field, axis=None)[::-1])
    return float((np.searchsorted(inside, HALF * inside[-1]) + 1) / field.size)


def share_inside(field: Floats, rows: slice, columns: slice) -> float:
    """Share of the mass of a field in a rectangle of pixels."""
    return float(field[rows, columns].sum() / field.sum())
