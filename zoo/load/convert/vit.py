"""Vision Transformers under timm's names (FS, DINO, MoCo-v3, MAE, DeiT), and DINOv2, which adds to them."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from torch import Tensor
from transformers import DeiTConfig, Dinov2Config, Dinov2WithRegistersConfig, PreTrainedConfig, ViTConfig

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
from zoo.spec import BackboneSpec

EPSILON = 1e-6
"""Of every layer norm in the original code of these families."""

EMBEDDINGS = {
    "cls_token": "embeddings.cls_token",
    **affine({"patch_embed.proj": "embeddings.patch_embeddings.projection"}),
}
MLP = {"mlp.fc1": "mlp.fc1", "mlp.fc2": "mlp.fc2"}
BLOCK = {"norm1": "layernorm_before", "attn.proj": "attention.o_proj", "norm2": "layernorm_after", **MLP}
FINAL_NORM = affine({"norm": "layernorm"})
_QKV = {
    f"attn.qkv.{kind}": tuple(f"attention.{part}_proj.{kind}" for part in "qkv")
    for kind in ("weight", "bias")
}

_VIT = Names(
    layout="a Vision Transformer with timm's names",
    fixed={**EMBEDDINGS, **FINAL_NORM, "pos_embed": "embeddings.position_embeddings"},
    block={**single(affine(BLOCK)), **_QKV},
    old_block="blocks.{}.",
    new_block="layers.{}.",
    unused=(r"^(head|head_dist|pre_logits|fc_norm)\.", r"^(mask_token|masked_embed)$", r"^decoder"),
)
_DEIT = replace(
    _VIT,
    layout="a distilled DeiT",
    fixed={**_VIT.fixed, "dist_token": "embeddings.distillation_token"},
)

_DINOV2_BLOCK = {
    **single(affine({"norm1": "norm1", "attn.proj": "attention.o_proj", "norm2": "norm2"})),
    **_QKV,
    "ls1.gamma": ("layer_scale1.lambda1",),
    "ls2.gamma": ("layer_scale2.lambda1",),
}
_GATED_MLP = {
    f"mlp.w12.{kind}": (f"mlp.gate_proj.{kind}", f"mlp.up_proj.{kind}") for kind in ("weight", "bias")
}
_GATED_RATIO = 4
"""Of the MLP's width to the network's, before a gated MLP takes two thirds of it."""

_DINOV2 = replace(
    _VIT,
    layout="DINOv2",
    unused=(*_VIT.unused, r"^(dino|ibot|rasa)_head\."),  # Franca's RASA moves the last layer's tokens alone.
    block={**_DINOV2_BLOCK, **single(affine(MLP))},
    new_block="encoder.layer.{}.",
)
_GATED_DINOV2 = replace(
    _DINOV2, block={**_DINOV2_BLOCK, **_GATED_MLP, **single(affine({"mlp.w3": "mlp.down_proj"}))}
)


def convert_vit(tensors: Mapping[str, Tensor], spec: BackboneSpec) -> Converted:
    """A plain or distilled Vision Transformer as ``ViTModel`` or ``DeiTModel``; see `zoo.load.convert`."""
    distilled = "dist_token" in tensors
    renamed, depth = rename(tensors, _DEIT if distilled else _VIT, spec)
    side = _grid(tensors, 1 + distilled, spec)
    patches = patches_of(tensors, "patch_embed.proj.weight", spec)
    configure: Callable[..., PreTrainedConfig] = DeiTConfig if distilled else ViTConfig
    config = configure(
        hidden_size=patches.width,
        num_hidden_layers=depth,
        num_attention_heads=heads_of(patches.width, spec),
        intermediate_size=hidden_size(tensors, spec),
        hidden_act="gelu",
        layer_norm_eps=EPSILON,
        image_size=side * patches.size,
        patch_size=patches.size,
        num_channels=patches.channels,
        qkv_bias=True,
    )
    return Converted(config, renamed)


def convert_dinov2(tensors: Mapping[str, Tensor], spec: BackboneSpec) -> Converted:
    """DINOv2 and Franca, with or without registers, as ``Dinov2Model`` or ``Dinov2WithRegistersModel``."""
    gated = "blocks.0.mlp.w12.weight" in tensors
    names = _GATED_DINOV2 if gated else _DINOV2
    configure: Callable[..., PreTrainedConfig] = Dinov2Config
    if "register_tokens" in tensors:
        names = replace(names, fixed={**names.fixed, "register_tokens": "embeddings.register_tokens"})
        count = shape_of(tensors, "register_tokens", 3, spec)[1]
        configure = partial(Dinov2WithRegistersConfig, num_register_tokens=count)
    renamed, depth = rename(tensors, names, spec)
    side = _grid(tensors, 1, spec)
    patches = patches_of(tensors, "patch_embed.proj.weight", spec)
    config = configure(
        hidden_size=patches.width,
        num_hidden_layers=depth,
        num_attention_heads=heads_of(patches.width, spec),
        mlp_ratio=_GATED_RATIO if gated else hidden_size(tensors, spec) // patches.width,
        layer_norm_eps=EPSILON,
        image_size=side * patches.size,
        patch_size=patches.size,
        num_channels=patches.channels,
        use_swiglu_ffn=gated,
        use_mask_token=False,
    )
    return Converted(config, renamed)


def hidden_size(tensors: Mapping[str, Tensor], spec: BackboneSpec) -> int:
    """Width inside the MLP."""
    return shape_of(tensors, "blocks.0.mlp.fc1.weight", 2, spec)[0]


def _grid(tensors: Mapping[str, Tensor], prefix: int, spec: BackboneSpec) -> int:
    rows = shape_of(tensors, "pos_embed", 3, spec)[1]
    return grid_side(rows - prefix, "pos_embed", spec)
