"""What is inside one block of the original architectures, in plain torch, from the block's input."""

import math
import re
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from tests.zoo.layouts import Tensors
from tests.zoo.originals import relative_bias
from tests.zoo.reduced import Reduced

_CLIP = (
    (r"^transformer\.resblocks\.", "blocks."),
    (r"\.ln_(\d)\.", r".norm\1."),
    (r"\.attn\.in_proj_", ".attn.qkv."),
    (r"\.attn\.out_proj\.", ".attn.proj."),
    (r"\.mlp\.c_fc\.", ".mlp.fc1."),
    (r"\.mlp\.c_proj\.", ".mlp.fc2."),
)


@dataclass(frozen=True)
class Inside:
    """Sublayers by tap, [batch tokens width], and probabilities [batch heads queries keys]."""

    taps: dict[str, Tensor]
    probabilities: Tensor


def inside(reduced: Reduced, x: Tensor, index: int, cells: tuple[int, int]) -> Inside:
    """The inside of block ``index`` (from 1) of a ViT, CLIP or BEiT, from its input [batch tokens width]."""
    tensors, heads = reduced.tensors, reduced.spec.heads or 1
    is_clip = reduced.spec.family == "CLIP"
    block = _block(tensors, index - 1, is_clip=is_clip)
    epsilon = 1e-5 if is_clip else 1e-6
    width = x.shape[-1]
    norm1 = functional.layer_norm(x, (width,), block["norm1.weight"], block["norm1.bias"], epsilon)
    projected = functional.linear(norm1, block["attn.qkv.weight"], block["attn.qkv.bias"]).chunk(3, -1)
    query, key, value = (
        part.view(*part.shape[:2], heads, width // heads).transpose(1, 2) for part in projected
    )
    scores = query @ key.transpose(-1, -2) / math.sqrt(width // heads)
    if reduced.spec.family == "BEiT":
        scores = scores + relative_bias(tensors["rel_pos_bias.relative_position_bias_table"], cells)
    exponentials = (scores - scores.amax(-1, keepdim=True)).exp()
    probabilities = exponentials / exponentials.sum(-1, keepdim=True)
    mixed = (probabilities @ value).transpose(1, 2).flatten(2)
    attention = functional.linear(mixed, block["attn.proj.weight"], block["attn.proj.bias"])
    attention = attention * block.get("gamma_1", torch.ones(()))
    y = x + attention
    norm2 = functional.layer_norm(y, (width,), block["norm2.weight"], block["norm2.bias"], epsilon)
    hidden = functional.linear(norm2, block["mlp.fc1.weight"], block["mlp.fc1.bias"])
    hidden = hidden * torch.sigmoid(1.702 * hidden) if is_clip else functional.gelu(hidden)
    mlp = functional.linear(hidden, block["mlp.fc2.weight"], block["mlp.fc2.bias"])
    mlp = mlp * block.get("gamma_2", torch.ones(()))
    taps = {"input": x, "norm1": norm1, **dict(zip(("query", "key", "value"), projected, strict=True))}
    taps |= {"heads": mixed, "attention": attention, "mid": y, "norm2": norm2}
    taps |= {"mlp_hidden": hidden, "mlp": mlp, "block": y + mlp}
    return Inside(taps, probabilities)


def _block(tensors: Tensors, index: int, *, is_clip: bool) -> Tensors:
    """Tensors of one block under timm's names without the block's."""
    out: Tensors = {}
    for name, tensor in tensors.items():
        for pattern, replacement in _CLIP if is_clip else ():
            name = re.sub(pattern, replacement, name)
        if name.startswith(f"blocks.{index}."):
            out[name.removeprefix(f"blocks.{index}.")] = tensor
    if "attn.q_bias" in out:
        bias = out["attn.q_bias"]
        out["attn.qkv.bias"] = torch.cat([bias, torch.zeros_like(bias), out["attn.v_bias"]])
    return out
