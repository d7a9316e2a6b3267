"""Attention rollout: what reaches a token through all layers up to one. Pure functions of tensors.

Source: Abnar and Zuidema, ACL 2020; heads are fused and small entries discarded as in common practice.
"""

from math import floor
from typing import Literal

import numpy as np
import torch
from torch import Tensor

Fusion = Literal["mean", "max", "min"]


def fuse_heads(attention: Tensor, fusion: Fusion) -> Tensor:
    """One map of all heads: [... queries keys], float32, of [... heads queries keys]."""
    if fusion == "mean":
        return attention.mean(dim=-3, dtype=torch.float32)
    return (attention.amax(dim=-3) if fusion == "max" else attention.amin(dim=-3)).float()


def discard(fused: Tensor, share: float) -> Tensor:
    """Maps whose smallest entries are 0.

    Entries below the value of rank ``floor(share * T * T)`` (ascending, from 0) are discarded, so that equal
    ones are treated alike; that of the first token for itself never is.

    Args:
        fused: [... T T].
        share: In [0, 1); 0 discards nothing.
    """
    if share == 0:
        return fused
    flat = fused.flatten(-2)
    least = _ranked(flat, floor(round(share * flat.shape[-1], 6)))
    thinned = fused * (fused >= least[..., None, None])
    thinned[..., 0, 0] = fused[..., 0, 0]
    return thinned


def _ranked(values: Tensor, rank: int) -> Tensor:
    """The value of a rank (ascending, from 0) of each row: [...] of [... values]."""
    if values.device.type == "cpu":  # numpy selects ten times as fast
        return torch.from_numpy(np.partition(values.numpy(), rank, axis=-1)[..., rank])
    return values.kthvalue(rank + 1, dim=-1).values


def roll(fused: Tensor, before: Tensor | None, *, identity: bool, out: Tensor | None = None) -> Tensor:
    """Rollout after one more layer.

    Args:
        fused: [batch T T], the layer's attention, fused and thinned.
        before: Rollout after the layer before, [batch T T]; None before the first, where each token has
            reached itself alone.
        identity: Whether the residual connection counts as much as the attention.
        out: Where it is wanted, [batch T T] float32; may be ``before`` itself.

    Returns:
        [batch T T], float32: how much of each token (column) has reached each token (row); rows sum to 1,
        unless they give nothing at all.
    """
    if before is None:
        mixed = fused + torch.eye(fused.shape[-1], device=fused.device) if identity else fused
    else:
        # (F + I) R without a tensor for F + I
        mixed = torch.baddbmm(before, fused, before, beta=int(identity))
    total = fused.sum(dim=-1, keepdim=True) + int(identity)
    return torch.div(mixed, torch.where(total > 0, total, 1), out=out)


def output_map(rolled: Tensor, prefix_tokens: int) -> Tensor:
    """How much of each patch has reached the class token, or the patches on average where there is none.

    Args:
        rolled: [... T T] as `roll` gives it.
        prefix_tokens: Tokens before the patches, the class token first; 0 where there is none.

    Returns:
        [... patches]; not normalised.
    """
    if prefix_tokens:
        return rolled[..., 0, prefix_tokens:]
    return rolled.mean(dim=-2)
