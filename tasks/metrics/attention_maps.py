"""Average attention maps, how they vary, and what they give to special tokens. Pure functions.

Source: Walmer et al., CVPR 2023, section 4.1, and its released code. Attention is [... queries keys], prefix
tokens (class token, registers) first, then the patches of a grid in row-major order.
"""

import math
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tasks.metrics.arrays import Floats
from tasks.metrics.attention import Cells

PART_BYTES = 1 << 22
"""Maps of which a number is computed at once where that takes copies of them, on a processor."""

PART_BYTES_ON_DEVICE = 1 << 26
"""The same on any other device, where few large operations are faster than many small ones."""


def patch_query_map(attention: Tensor, prefix_tokens: int) -> Tensor:
    """How patches attend to each token on average: [... keys], float32, of [... queries keys]."""
    return attention[..., prefix_tokens:, :].mean(dim=-2, dtype=torch.float32)


def deviation_over_queries(attention: Tensor, prefix_tokens: int) -> Tensor:
    """How much what patches attend to depends on the patch: standard deviation over queries, mean over keys.

    Prefix rows and columns are cut off and rows are not renormalised, as in the released code; the deviation
    is unbiased. 0 where all patches attend alike, 1 / sqrt(N) where each of N attends to itself.

    Args:
        attention: [... queries keys].
        prefix_tokens: Class token and registers.

    Returns:
        [...], float32; NaN where there is one patch.
    """
    return _by_parts(
        lambda part: _deviation(_inside(part, prefix_tokens), -2).mean(dim=-1), attention, together=2
    )


def deviation_over_heads(attention: Tensor, prefix_tokens: int) -> Tensor:
    """How much heads differ: standard deviation over heads, mean over queries and keys of the patches.

    Args:
        attention: [... heads queries keys].
        prefix_tokens: Class token and registers.

    Returns:
        [...], float32; NaN where there is one head.
    """
    return _by_parts(
        lambda part: _deviation(_inside(part, prefix_tokens), -3).mean(dim=(-2, -1)), attention, together=3
    )


def centre_distance(maps: Floats, cells: Cells) -> Floats:
    """Mean distance from the centre of the unit square of what a map [... cells] weighs.

    The grid is stretched to the unit square, corner to corner (an axis of one cell lies in its middle).

    Returns:
        [...]: 0 where all lies in the middle, 0.4112 of a uniform map of 14 x 14 cells; NaN of an empty map.
    """
    rows, columns = (np.linspace(-0.5, 0.5, count) if count > 1 else np.zeros(1) for count in cells)
    distance = np.hypot(rows[:, None], columns[None]).ravel()
    total = maps.sum(axis=-1)
    weighed: NDArray[np.float64] = maps @ distance
    return np.asarray(np.divide(weighed, total, out=np.full_like(weighed, np.nan), where=total > 0))


def entropy(attention: Tensor) -> Tensor:
    """Entropy of what each query attends to, over that of uniform attention: [... queries].

    Args:
        attention: [... queries keys], each row of sum 1.

    Returns:
        float32: 0 where it attends to one token, 1 where it attends to all alike; 0 where there is one token.
    """
    nats = _by_parts(_nats, attention, together=2)
    return nats / max(math.log(attention.shape[-1]), 1)


def _nats(attention: Tensor) -> Tensor:
    values = attention.float()
    least = torch.finfo(values.dtype).tiny  # 0 ln 0 = 0
    return -values.clamp_min(least).log_().mul_(values).sum(dim=-1)


def _by_parts(measure: Callable[[Tensor], Tensor], attention: Tensor, *, together: int) -> Tensor:
    """What is measured of maps [... together], of some at a time: copies stay small, and in the cache."""
    lead, last = attention.shape[:-together], attention.shape[-together:]
    flat = attention.reshape(-1, *last)
    size = PART_BYTES if attention.device.type == "cpu" else PART_BYTES_ON_DEVICE
    parts = torch.split(flat, max(1, size // max(1, 4 * last.numel())))  # copies are float32
    measured = torch.cat([measure(part) for part in parts])
    return measured.view(lead + measured.shape[1:])


def _inside(attention: Tensor, prefix_tokens: int) -> Tensor:
    return attention[..., prefix_tokens:, prefix_tokens:].float()


def _deviation(values: Tensor, dim: int) -> Tensor:
    """Unbiased standard deviation along a dimension; NaN of one value."""
    # torch's own, and its norms, are ten times as slow along any dimension but the last
    squares = (values - values.mean(dim=dim, keepdim=True)).square_().sum(dim=dim)
    return squares.div_(values.shape[dim] - 1).sqrt_()
