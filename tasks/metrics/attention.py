"""Attention: how far it looks, average maps and how they vary, and what reaches a token through layers.

Pure functions of tensors, on any device. Attention is [... queries keys], prefix tokens (class token,
registers) first, then the patches of a grid in row-major order.

Sources: Raghu et al., NeurIPS 2021, section 5 (distance); Walmer et al., CVPR 2023, sections 4.1 and 4.3,
and its released code (maps, distance); Abnar and Zuidema, ACL 2020 (rollout), whose heads are fused and
small entries discarded as in common practice.
"""

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from layerboard.tasks.metrics.arrays import Floats

Cells = tuple[int, int]  # rows and columns of a grid


def cell_distances(cells: Cells, *, unit: bool, device: torch.device | None = None) -> Tensor:
    """Euclidean distance between the centres of all cells of a grid, [cells cells], float32.

    With ``unit`` centre i of g along an axis lies at i / (g - 1), so that they span the unit square (an axis
    of one cell has no extent); otherwise a cell has the side 1.
    """
    rows, columns = (torch.arange(count, device=device, dtype=torch.float32) for count in cells)
    if unit:
        rows, columns = rows / max(1, cells[0] - 1), columns / max(1, cells[1] - 1)
    places = torch.cartesian_prod(rows, columns).view(-1, 2)
    return (places[:, None] - places[None]).square().sum(dim=-1).sqrt()


def attention_distance(attention: Tensor, distances: Tensor) -> Tensor:
    """Mean distance over which patches attend, by the attention of each query, averaged over the queries.

    Attention is [... patches patches], each row of sum 1, or zero; distances [patches patches] as of
    `cell_distances`, or several of them [kinds patches patches], for which the attention is read once. The
    result, [...] or [... kinds], float32, is 0 where each patch attends to itself, and the mean distance
    where all attend to all alike.

    Sources: Raghu et al., NeurIPS 2021, section 5; Walmer et al., CVPR 2023, section 4.3.
    """
    # one float32 sum over all pairs of a large grid is wrong in the fourth digit; each query's is not
    rows = torch.einsum("...qk,nqk->...qn", attention, distances.view(-1, *distances.shape[-2:]))
    return rows.mean(dim=-2, dtype=torch.float64).float().view(attention.shape[:-2] + distances.shape[:-2])


PART_BYTES = 1 << 22  # maps of which a number is computed at once where that takes copies, on a processor
PART_BYTES_ON_DEVICE = 1 << 26  # elsewhere, where few large operations are faster than many small ones


def patch_query_map(attention: Tensor, prefix_tokens: int) -> Tensor:
    """How patches attend to each token on average: [... keys], float32, of [... queries keys]."""
    return attention[..., prefix_tokens:, :].mean(dim=-2, dtype=torch.float32)


def deviation_over_queries(attention: Tensor, prefix_tokens: int) -> Tensor:
    """How much what patches attend to depends on the patch: standard deviation over queries, mean over keys.

    Of attention [... queries keys], prefix rows and columns are cut off and rows are not renormalised, as in
    the released code; the deviation is unbiased, [...] float32: 0 where all patches attend alike, 1 / sqrt(N)
    where each of N attends to itself, NaN where there is one.
    """
    return _by_parts(
        lambda part: _deviation(_inside(part, prefix_tokens), -2).mean(dim=-1), attention, together=2
    )


def deviation_over_heads(attention: Tensor, prefix_tokens: int) -> Tensor:
    """How much heads differ: deviation over heads [... heads queries keys], mean over the rest: [...]."""
    return _by_parts(
        lambda part: _deviation(_inside(part, prefix_tokens), -3).mean(dim=(-2, -1)), attention, together=3
    )


def centre_distance(maps: Floats, cells: Cells) -> Floats:
    """Mean distance from the centre of the unit square of what a map [... cells] weighs: [...].

    The grid is stretched to the unit square, corner to corner (an axis of one cell lies in its middle). 0
    where all lies in the middle, 0.4112 of a uniform map of 14 x 14 cells; NaN of an empty map.
    """
    rows, columns = (np.linspace(-0.5, 0.5, count) if count > 1 else np.zeros(1) for count in cells)
    distance = np.hypot(rows[:, None], columns[None]).ravel()
    total = maps.sum(axis=-1)
    weighed: NDArray[np.float64] = maps @ distance
    return np.asarray(np.divide(weighed, total, out=np.full_like(weighed, np.nan), where=total > 0))


def entropy(attention: Tensor) -> Tensor:
    """Entropy of what each query attends to, over that of uniform attention: [... queries], float32.

    Rows of attention [... queries keys] have the sum 1. 0 where a query attends to one token, or there is
    one; 1 where it attends to all alike.
    """
    return _by_parts(_nats, attention, together=2) / max(math.log(attention.shape[-1]), 1)


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


Fusion = Literal["mean", "max", "min"]


def fuse_heads(attention: Tensor, fusion: Fusion) -> Tensor:
    """One map of all heads: [... queries keys], float32, of [... heads queries keys]."""
    if fusion == "mean":
        return attention.mean(dim=-3, dtype=torch.float32)
    return (attention.amax(dim=-3) if fusion == "max" else attention.amin(dim=-3)).float()


def discard(fused: Tensor, share: float) -> Tensor:
    """Maps [... T T] whose smallest entries are 0; a share, in [0, 1), of 0 discards nothing.

    Entries below the value of rank ``floor(share * T * T)`` (ascending, from 0) are discarded, so that equal
    ones are treated alike; that of the first token for itself never is.
    """
    if share == 0:
        return fused
    flat = fused.flatten(-2)
    least = _ranked(flat, math.floor(round(share * flat.shape[-1], 6)))
    thinned = fused * (fused >= least[..., None, None])
    thinned[..., 0, 0] = fused[..., 0, 0]
    return thinned


def _ranked(values: Tensor, rank: int) -> Tensor:
    """The value of a rank (ascending, from 0) of each row: [...] of [... values]."""
    if values.device.type == "cpu":  # numpy selects ten times as fast
        return torch.from_numpy(np.partition(values.numpy(), rank, axis=-1)[..., rank])
    return values.kthvalue(rank + 1, dim=-1).values


def roll(fused: Tensor, before: Tensor | None, *, out: Tensor | None = None) -> Tensor:
    """Rollout after one more layer: how much of each token (column) has reached each token (row).

    [batch T T], float32; rows sum to 1. ``fused`` is the layer's attention, fused and thinned, ``before`` the
    rollout after the layer before, None where each token has reached itself alone. The residual connection
    counts as much as attention whose rows sum to 1. ``out``, where it is wanted, may be ``before`` itself.
    """
    if before is None:
        mixed = fused + torch.eye(fused.shape[-1], device=fused.device)
    else:
        mixed = torch.baddbmm(before, fused, before)  # (F + I) R without a tensor for F + I
    return torch.div(mixed, fused.sum(dim=-1, keepdim=True) + 1, out=out)


def output_map(rolled: Tensor, prefix_tokens: int) -> Tensor:
    """How much of each patch [... patches] has reached the class token, or patches where there is none."""
    return rolled[..., 0, prefix_tokens:] if prefix_tokens else rolled.mean(dim=-2)
