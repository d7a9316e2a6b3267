"""Attention: its distance, average maps and their deviation, entropy, and rollout through the layers.

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

    With ``unit``, centre i of g cells along an axis lies at i / (g - 1), so the centres span the unit square
    (an axis of one cell has no extent). Otherwise the side of a cell is 1.
    """
    rows, columns = (torch.arange(count, device=device, dtype=torch.float32) for count in cells)
    if unit:
        rows, columns = rows / max(1, cells[0] - 1), columns / max(1, cells[1] - 1)
    places = torch.cartesian_prod(rows, columns).view(-1, 2)
    return (places[:, None] - places[None]).square().sum(dim=-1).sqrt()


def attention_distance(attention: Tensor, distances: Tensor) -> Tensor:
    """Attention-weighted mean distance from a query patch to the keys, averaged over the queries.

    ``attention`` is [... patches patches], and its rows sum to 1 or are zero. ``distances`` is [patches
    patches] from `cell_distances`, or several of them [kinds patches patches], for which the attention is
    read once. The result, [...] or [... kinds], float32, is 0 if each patch attends to itself only, and the
    mean distance if attention is uniform.
    """
    # one float32 sum over all pairs of a large grid is wrong in the fourth digit; a sum per query is not
    rows = torch.einsum("...qk,nqk->...qn", attention, distances.view(-1, *distances.shape[-2:]))
    return rows.mean(dim=-2, dtype=torch.float64).float().view(attention.shape[:-2] + distances.shape[:-2])


PART_BYTES = 1 << 22  # bytes of maps handled at once by functions that make copies, on a CPU
PART_BYTES_ON_DEVICE = 1 << 26  # the same on a GPU, where a few large operations are faster


def patch_query_map(attention: Tensor, prefix_tokens: int) -> Tensor:
    """Mean attention [... keys], float32, of the patch queries to each token, from [... queries keys]."""
    return attention[..., prefix_tokens:, :].mean(dim=-2, dtype=torch.float32)


def patch_deviation(attention: Tensor, prefix_tokens: int, over: Literal["queries", "heads"]) -> Tensor:
    """Standard deviation of attention [... heads queries keys] over the query patches, or over the heads.

    It is averaged over the key patches, and that over the heads also over the query patches: [... heads] or
    [...], float32. Rows and columns of prefix tokens are cut from the attention, and rows are not
    renormalised, as in the released code. The deviation is unbiased: 0 if all attend alike; over queries 1 /
    sqrt(N) if each of N patches attends to itself only; NaN for a single patch or head.
    """
    together = 2 if over == "queries" else 3

    def measure(part: Tensor) -> Tensor:
        inside, along = part[..., prefix_tokens:, prefix_tokens:].float(), -together
        # torch's std and norms are ten times slower along any dimension but the last
        squares = (inside - inside.mean(dim=along, keepdim=True)).square_().sum(dim=along)
        deviation = squares.div_(inside.shape[along] - 1).sqrt_()
        return deviation.mean(dim=tuple(range(along + 1, 0)))

    return _by_parts(measure, attention, together=together)


def centre_distance(maps: Floats, cells: Cells) -> Floats:
    """Mean distance of a map's mass [... cells] from the centre of the unit square: [...].

    The corner cells of the grid lie on the corners of the unit square (an axis of one cell lies in its
    middle). It is 0 if all mass is in the middle, 0.4112 for a uniform map of 14 x 14 cells, NaN for an empty
    map.
    """
    rows, columns = (np.linspace(-0.5, 0.5, count) if count > 1 else np.zeros(1) for count in cells)
    distance = np.hypot(rows[:, None], columns[None]).ravel()
    total = maps.sum(axis=-1)
    weighed: NDArray[np.float64] = maps @ distance
    return np.asarray(np.divide(weighed, total, out=np.full_like(weighed, np.nan), where=total > 0))


def entropy(attention: Tensor) -> Tensor:
    """Entropy of each query's attention, divided by that of uniform attention: [... queries], float32.

    The rows of the attention [... queries keys] sum to 1. The result is 0 if a query attends to one token, or
    if there is only one; it is 1 for uniform attention.
    """
    return _by_parts(_nats, attention, together=2) / max(math.log(attention.shape[-1]), 1)


def _nats(attention: Tensor) -> Tensor:
    values = attention.float()
    least = torch.finfo(values.dtype).tiny  # 0 ln 0 = 0
    return -values.clamp_min(least).log_().mul_(values).sum(dim=-1)


def _by_parts(measure: Callable[[Tensor], Tensor], attention: Tensor, *, together: int) -> Tensor:
    """Results of ``measure`` on maps, a few at a time, so that its copies are small and stay in the cache."""
    lead, last = attention.shape[:-together], attention.shape[-together:]
    flat = attention.reshape(-1, *last)
    size = PART_BYTES if attention.device.type == "cpu" else PART_BYTES_ON_DEVICE
    parts = torch.split(flat, max(1, size // max(1, 4 * last.numel())))  # copies are float32
    measured = torch.cat([measure(part) for part in parts])
    return measured.view(lead + measured.shape[1:])


Fusion = Literal["mean", "max", "min"]


def fuse_heads(attention: Tensor, fusion: Fusion) -> Tensor:
    """One map [... queries keys], float32, fused from those of all heads [... heads queries keys]."""
    if fusion == "mean":
        return attention.mean(dim=-3, dtype=torch.float32)
    return (attention.amax(dim=-3) if fusion == "max" else attention.amin(dim=-3)).float()


def discard(fused: Tensor, share: float) -> Tensor:
    """Maps [... T T] with a share, in [0, 1), of their smallest entries set to 0.

    Entries below the value of rank ``floor(share * T * T)`` (ascending, from 0) are discarded, so equal
    entries are treated alike. The entry of the first token for itself is always kept. A share of 0 discards
    nothing.
    """
    if share == 0:
        return fused
    flat = fused.flatten(-2)
    least = _ranked(flat, math.floor(round(share * flat.shape[-1], 6)))
    thinned = fused * (fused >= least[..., None, None])
    thinned[..., 0, 0] = fused[..., 0, 0]
    return thinned


def _ranked(values: Tensor, rank: int) -> Tensor:
    """The value with a given rank (ascending, from 0) in each row of [... values]: [...]."""
    if values.device.type == "cpu":  # numpy selects ten times as fast
        return torch.from_numpy(np.partition(values.numpy(), rank, axis=-1)[..., rank])
    return values.kthvalue(rank + 1, dim=-1).values


def roll(fused: Tensor, before: Tensor | None, *, out: Tensor | None = None) -> Tensor:
    """Rollout after one more layer: how much of each token (column) has reached each token (row).

    The result is [batch T T], float32, with rows that sum to 1. ``fused`` is the attention of the layer,
    after `fuse_heads` and `discard`; ``before`` is the rollout after the previous layer, None for the first.
    The residual connection has the same weight as attention whose rows sum to 1. ``out`` may be ``before``.
    """
    if before is None:
        mixed = fused + torch.eye(fused.shape[-1], device=fused.device)
    else:
        mixed = torch.baddbmm(before, fused, before)  # (F + I) R without a tensor for F + I
    return torch.div(mixed, fused.sum(dim=-1, keepdim=True) + 1, out=out)


def output_map(rolled: Tensor, prefix_tokens: int) -> Tensor:
    """Rollout from each patch to the class token, or to the patches if there is none: [... patches]."""
    return rolled[..., 0, prefix_tokens:] if prefix_tokens else rolled.mean(dim=-2)
