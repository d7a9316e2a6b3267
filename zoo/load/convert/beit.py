"""BEiT under its original names, with relative positions shared by all blocks or each block's own."""

from collections.abc import Mapping

from torch import Tensor
from transformers import BeitConfig

from zoo.load.convert.names import Converted, Names, affine, grid_side, patches_of, rename, shape_of, single
from zoo.load.convert.vit import BLOCK, EMBEDDINGS, EPSILON, FINAL_NORM, hidden_size
from zoo.spec import BackboneSpec

_TABLE = "relative_position_bias_table"
_SHARED = f"rel_pos_bias.{_TABLE}"
_OWN = f"attn.{_TABLE}"
_PREFIX_OFFSETS = 3
"""Rows of a table for the class token: to it, from it, and from it to itself."""

_BLOCK = {
    **single(affine(BLOCK)),
    "attn.qkv.weight": tuple(f"attention.{part}_proj.weight" for part in "qkv"),
    "attn.q_bias": ("attention.q_proj.bias",),
    "attn.v_bias": ("attention.v_proj.bias",),
    "gamma_1": ("lambda_1",),
    "gamma_2": ("lambda_2",),
}
_UNUSED = (r"^(head|lm_head|fc_norm)\.", r"^mask_token$", r"relative_position_index$")


def convert_beit(tensors: Mapping[str, Tensor], spec: BackboneSpec) -> Converted:
    """BEiT as ``BeitModel``; see `zoo.load.convert.convert`.

    Fine-tuned files have ``fc_norm``, a norm of the pooled patches alone, in place of the final norm.
    """
    pooled, own = "fc_norm.weight" in tensors, f"blocks.0.{_OWN}" in tensors
    names = Names(
        layout="BEiT",
        fixed={
            **EMBEDDINGS,
            **({} if pooled else FINAL_NORM),
            **({} if own else {_SHARED: f"shared_position_bias.{_TABLE}"}),
        },
        block={**_BLOCK, **({_OWN: (f"relative_position_bias.{_TABLE}",)} if own else {})},
        old_block="blocks.{}.",
        new_block="layers.{}.",
        unused=_UNUSED,
    )
    renamed, depth = rename(tensors, names, spec)
    patches = patches_of(tensors, "patch_embed.proj.weight", spec)
    name = f"blocks.0.{_OWN}" if own else _SHARED
    rows, heads = shape_of(tensors, name, 2, spec)
    side = (1 + grid_side(rows - _PREFIX_OFFSETS, name, spec)) // 2
    config = BeitConfig(
        hidden_size=patches.width,
        num_hidden_layers=depth,
        num_attention_heads=heads,
        intermediate_size=hidden_size(tensors, spec),
        hidden_act="gelu",
        layer_norm_eps=EPSILON,
        image_size=side * patches.size,
        patch_size=patches.size,
        num_channels=patches.channels,
        use_relative_position_bias=own,
        use_shared_relative_position_bias=not own,
        use_mean_pooling=pooled,
        use_mask_token=False,
    )
    return Converted(config, renamed)
