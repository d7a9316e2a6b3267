"""The Perception Encoder under its authors' names: the vision tower, without its attention pooling."""

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from zoo.load.convert.names import (
    Converted,
    Names,
    affine,
    grid_side,
    heads_of,
    patches_of,
    rename,
    shape_of,
    single,
)
from zoo.load.rotary_vit import PerceptionEncoderConfig
from zoo.spec import BackboneSpec

EPSILON = 1e-5
"""Of every norm in the authors' ``pe.py``."""

THETA = 10_000.0
"""Base of the rotary frequencies in the authors' ``rope.py``."""

_PE = Names(
    layout="the Perception Encoder",
    fixed={
        "conv1.weight": "embeddings.patch_embeddings.weight",
        "positional_embedding": "embeddings.position_embeddings",
        **affine({"ln_pre": "embeddings.norm"}),
    },
    block={
        **single(
            affine(
                {
                    "ln_1": "norm1",
                    "attn.out_proj": "attention.o_proj",
                    "ln_2": "norm2",
                    "mlp.c_fc": "mlp.fc1",
                    "mlp.c_proj": "mlp.fc2",
                }
            )
        ),
        **{
            f"attn.in_proj_{kind}": tuple(f"attention.{part}_proj.{kind}" for part in "qkv")
            for kind in ("weight", "bias")
        },
    },
    old_block="transformer.resblocks.{}.",
    new_block="layers.{}.",
    unused=(r"^proj$", r"^attn_pool\."),
)
_FINAL = affine({"ln_post": "norm"})
_SCALES = single({"ls_1.gamma": "layer_scale1.lambda1", "ls_2.gamma": "layer_scale2.lambda1"})
_CLASS = {"class_embedding": "embeddings.cls_token"}


def is_perception_encoder(tensors: Mapping[str, Tensor]) -> bool:
    """Whether tensors with OpenAI's names are of a Perception Encoder: pooled by attention, or not at all."""
    if "conv1.weight" not in tensors or "transformer.resblocks.0.ln_1.weight" not in tensors:
        return False
    return "attn_pool.probe" in tensors or not {"ln_post.weight", "ln_post.bias", "proj"} & tensors.keys()


def convert_perception(tensors: Mapping[str, Tensor], spec: BackboneSpec) -> Converted:
    """The vision tower as `zoo.load.rotary_vit.PerceptionEncoderModel`; see `zoo.load.convert.convert`.

    The authors rotate neighbouring channels of a head as pairs, the network here its halves: rows of queries
    and keys change their places inside each head, which changes no product of the two.
    """
    final, scaled, classed = (
        name in tensors for name in ("ln_post.weight", "transformer.resblocks.0.ls_1.gamma", *_CLASS)
    )
    names = replace(
        _PE,
        fixed={**_PE.fixed, **(_FINAL if final else {}), **(_CLASS if classed else {})},
        block={**_PE.block, **(_SCALES if scaled else {})},
    )
    renamed, depth = rename(tensors, names, spec)
    patches = patches_of(tensors, "conv1.weight", spec)
    heads = heads_of(patches.width, spec)
    rows = shape_of(tensors, "positional_embedding", 2, spec)[0]
    side = grid_side(rows - classed, "positional_embedding", spec)
    config = PerceptionEncoderConfig(
        hidden_size=patches.width,
        num_hidden_layers=depth,
        num_attention_heads=heads,
        intermediate_size=shape_of(tensors, "transformer.resblocks.0.mlp.c_fc.weight", 2, spec)[0],
        patch_size=patches.size,
        image_size=side * patches.size,
        num_channels=patches.channels,
        layer_norm_eps=EPSILON,
        class_token=classed,
        norm_after="weights" if final else "none",
        layer_scale=scaled,
    )
    return Converted(config, _with_halves(renamed, heads, depth, patches.width // heads))


def _with_halves(renamed: dict[str, Tensor], heads: int, depth: int, channels: int) -> dict[str, Tensor]:
    """Tensors of the class's shapes, with frequencies, and with halves of heads in place of neighbours."""
    table = "embeddings.position_embeddings"
    out = renamed | {table: renamed[table][None]}
    if _CLASS["class_embedding"] in out:
        out[_CLASS["class_embedding"]] = out[_CLASS["class_embedding"]].view(1, 1, -1)
    for index in range(depth):
        out[f"layers.{index}.rotary.frequencies"] = frequencies(channels)
        for part in "qk":
            for kind in ("weight", "bias"):
                name = f"layers.{index}.attention.{part}_proj.{kind}"
                rows = out[name]
                # Of other shapes, and of heads that cannot be turned, loading says that they do not fit.
                if len(rows) == heads * channels and channels % 4 == 0:
                    pairs = rows.reshape(heads, channels // 2, 2, *rows.shape[1:])
                    out[name] = pairs.transpose(1, 2).flatten(0, 2)
    return out


def frequencies(channels: int) -> Tensor:
    """Angles a row and a column, float32 [2 channels], of heads of that many channels.

    Half of the pairs turn with the column, the other half with the row: ``Rope2D`` in the authors'
    ``rope.py``.
    """
    steps = THETA ** -(torch.arange(0, channels // 2, 2) / (channels // 2))
    still = torch.zeros_like(steps)
    by_row, by_column = torch.cat([still, steps]), torch.cat([steps, still])
    return torch.stack([by_row.repeat(2), by_column.repeat(2)])
