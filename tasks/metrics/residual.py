"""Measures of a residual sum: what a branch adds to its skip. Pure functions of tensors, on any device.

None of them waits for the device: what has no value is NaN, and `sum_gap` tells whether features were finite.

Source: Raghu et al., Do Vision Transformers See Like Convolutional Neural Networks?, NeurIPS 2021, section 6
and appendix E.
"""

import torch
from torch import Tensor


def norm_ratio(skip: Tensor, branch: Tensor) -> Tensor:
    """Length of each token's skip over that of its branch (L2 over the channels).

    Args:
        skip: [... tokens dim].
        branch: The same shape.

    Returns:
        [... tokens], float32, at least 0; NaN where the branch is zero.
    """
    return _ratio(_length(skip), _length(branch))


def frobenius_ratio(skip: Tensor, branch: Tensor) -> Tensor:
    """Length of the skip of all tokens together over that of their branch (Frobenius norms).

    Args:
        skip: [... tokens dim].
        branch: The same shape.

    Returns:
        [...], float32, at least 0; NaN where the branch is zero everywhere.
    """
    return _ratio(_length(skip.flatten(-2)), _length(branch.flatten(-2)))


def cosine(one: Tensor, other: Tensor) -> Tensor:
    """Cosine of two vectors a token: [... tokens] of two [... tokens dim], float32; NaN where one is zero."""
    lengths = _length(one) * _length(other)
    return _ratio((one.float() * other.float()).sum(dim=-1), lengths)


def sum_gap(summed: Tensor, output: Tensor) -> Tensor:
    """How far an output is from the sum that it should be.

    Args:
        summed: Skip and branch added, of any shape.
        output: The same shape.

    Returns:
        [2], float32: the largest difference of two entries, and the largest entry of the output, both
        absolute; NaN where a value of either tensor is.
    """
    gap = (output.float() - summed.float()).abs().amax()
    return torch.stack([gap, output.float().abs().amax()])


def _length(vectors: Tensor) -> Tensor:
    length: Tensor = torch.linalg.vector_norm(vectors.float(), dim=-1)
    return length


def _ratio(above: Tensor, below: Tensor) -> Tensor:
    """A quotient, NaN where nothing can be divided by."""
    return torch.where(below > 0, above / below, torch.nan)
