"""OpenAI's CLIP: the vision tower of its state dict."""

from collections.abc import Mapping

from torch import Tensor
from transformers import CLIPVisionConfig

from zoo.load.convert.names import (
    Converted,
    Names,
    affine,
    grid_side,
    heads_of,
    patches_of,
    refuse,
    rename,
    shape_of,
    single,
)
from zoo.spec import BackboneSpec

_CLIP = Names(
    layout="OpenAI's CLIP",
    fixed={
        "class_embedding": "embeddings.class_embedding",
        "positional_embedding": "embeddings.position_embedding.weight",
        "conv1.weight": "embeddings.patch_embedding.weight",
        **affine({"ln_pre": "pre_layrnorm", "ln_post": "post_layernorm"}),
    },
    block={
        **single(
            affine(
                {
                    "ln_1": "layer_norm1",
                    "attn.out_proj": "self_attn.out_proj",
                    "ln_2": "layer_norm2",
                    "mlp.c_fc": "mlp.fc1",
                    "mlp.c_proj": "mlp.fc2",
                }
            )
        ),
        **{
            f"attn.in_proj_{kind}": tuple(f"self_attn.{part}_proj.{kind}" for part in "qkv")
            for kind in ("weight", "bias")
        },
    },
    old_block="transformer.resblocks.{}.",
    new_block="encoder.layers.{}.",
    unused=(r"^proj$",),
)


_OPENAI = ("clip-b32", "clip-b16", "clip-l14")
"""Entries of OpenAI's own networks: others may have the exact GELU, and a state dict does not tell."""


def convert_clip(tensors: Mapping[str, Tensor], spec: BackboneSpec) -> Converted:
    """The vision tower as ``CLIPVisionModel``, in whatever precision it is; see `zoo.load.convert.convert`.

    The activation x * sigmoid(1.702 x) and the epsilon are OpenAI's.
    """
    is_clip = not spec.model_types or "clip_vision_model" in spec.model_types
    if is_clip and spec.entry not in _OPENAI:
        refuse(
            spec,
            "it is CLIP under OpenAI's names, whose activation is only known of OpenAI's own networks "
            f"({', '.join(_OPENAI)}); give a directory in Hugging Face format",
        )
    renamed, depth = rename(tensors, _CLIP, spec)
    patches = patches_of(tensors, "conv1.weight", spec)
    rows = shape_of(tensors, "positional_embedding", 2, spec)[0]
    side = grid_side(rows - 1, "positional_embedding", spec)
    inner = "transformer.resblocks.0.mlp.c_fc.weight"
    config = CLIPVisionConfig(
        hidden_size=patches.width,
        num_hidden_layers=depth,
        num_attention_heads=heads_of(patches.width, spec),
        intermediate_size=shape_of(tensors, inner, 2, spec)[0],
        hidden_act="quick_gelu",
        layer_norm_eps=1e-5,
        image_size=side * patches.size,
        patch_size=patches.size,
        num_channels=patches.channels,
    )
    return Converted(config, renamed)
