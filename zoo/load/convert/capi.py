"""CAPI under its authors' names: its encoder; the decoder, which predicts clusters, is left out."""

from collections.abc import Mapping

from torch import Tensor

from zoo.load.convert.names import Converted, Names, heads_of, patches_of, rename, shape_of, single
from zoo.load.rotary_vit import CapiConfig
from zoo.spec import BackboneSpec

EPSILON = 1e-5
"""Of every norm: ``norm_layer_kwargs`` in the authors' ``model.py``."""

_TRAINED_AT = 224
"""Side in pixels of the training images; positions are rotary and the same at every size."""

_CAPI = Names(
    layout="CAPI",
    fixed={
        "registers": "embeddings.register_tokens",
        "patch_embed.weight": "embeddings.patch_embeddings.weight",
        "patch_embed.bias": "embeddings.patch_embeddings.bias",
    },
    block=single(
        {
            "residual1.norm.weight": "norm1.weight",
            **{f"residual1.fn.{part}_proj.weight": f"attention.{part}_proj.weight" for part in "qkv"},
            "residual1.fn.proj.weight": "attention.o_proj.weight",
            "residual1.fn.rope.freqs": "rotary.frequencies",
            "residual2.norm.weight": "norm2.weight",
            "residual2.fn.fc1.weight": "mlp.fc1.weight",
            "residual2.fn.fc2.weight": "mlp.fc2.weight",
        }
    ),
    old_block="encoder.blocks.{}.",
    new_block="layers.{}.",
    unused=(r"^decoder\.", r"^mask_token$"),
)


def convert_capi(tensors: Mapping[str, Tensor], spec: BackboneSpec) -> Converted:
    """The encoder as `zoo.load.rotary_vit.CapiModel`; see `zoo.load.convert.convert`."""
    renamed, depth = rename(tensors, _CAPI, spec)
    patches = patches_of(tensors, "patch_embed.weight", spec)
    config = CapiConfig(
        hidden_size=patches.width,
        num_hidden_layers=depth,
        num_attention_heads=heads_of(patches.width, spec),
        intermediate_size=shape_of(tensors, "encoder.blocks.0.residual2.fn.fc1.weight", 2, spec)[0],
        patch_size=patches.size,
        image_size=_TRAINED_AT // patches.size * patches.size,
        num_channels=patches.channels,
        norm="rms",
        layer_norm_eps=EPSILON,
        bias=False,
        patch_bias=True,
        num_register_tokens=shape_of(tensors, "registers", 3, spec)[1],
        positions=False,
        norm_before=False,
        norm_after="plain",
        coordinates="unit",
    )
    return Converted(config, renamed)
