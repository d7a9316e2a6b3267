"""State dicts under the names of the original code, as networks of transformers.

The layout is recognised from the names. It may be timm's Vision Transformer (FS, DINO, MoCo-v3, MAE, iBOT,
DeiT), DINOv2 and Franca, CAPI, BEiT, OpenAI's CLIP, the Perception Encoder or torchvision's ResNet, on its
own or inside a training checkpoint.
"""

import re
from collections.abc import Callable, Mapping

from torch import Tensor

from zoo.errors import InputError
from zoo.load.convert.beit import convert_beit
from zoo.load.convert.capi import convert_capi
from zoo.load.convert.clip import convert_clip
from zoo.load.convert.names import Converted, listed
from zoo.load.convert.perception import convert_perception, is_perception_encoder
from zoo.load.convert.resnet import convert_resnet
from zoo.load.convert.unwrap import unwrap
from zoo.load.convert.vit import convert_dinov2, convert_vit
from zoo.spec import BackboneSpec

__all__ = ["Converted", "convert", "has_names_of_transformers", "kind_of", "told_heads", "unwrap"]

_LAYOUTS: tuple[tuple[str, Callable[[Mapping[str, Tensor], BackboneSpec], Converted]], ...] = (
    ("layer1.0.conv1.weight", convert_resnet),
    ("encoder.blocks.0.residual1.norm.weight", convert_capi),
    ("class_embedding", convert_clip),
    ("blocks.0.attn.q_bias", convert_beit),
    ("blocks.0.ls1.gamma", convert_dinov2),
    ("patch_embed.proj.weight", convert_vit),
)
"""A name that tells each layout from those below it, and what converts it."""

_OF_TRANSFORMERS = re.compile(r"(^|\.)(embeddings|embedder)\.|(^|\.)encoder\.(layer|layers|stages)\.")
_OF_HEADS = re.compile(r"(^|\.)(head|head_dist|fc|classifier|predictor|lm_head|dino_head|ibot_head)\.")
_TIMM_HEADS = {"tiny": 3, "small": 6, "base": 12, "large": 16, "huge": 16}


def convert(tensors: Mapping[str, Tensor], spec: BackboneSpec) -> Converted:
    """Configuration and tensors of a network of transformers.

    The number of heads cannot be read from most layouts: it is the entry's.

    Args:
        tensors: A state dict under original names, as `unwrap` gives it.
        spec: Entry, for the heads and for errors.

    Raises:
        InputError: The layout is not known, or a tensor is missing, unknown or of another shape.
    """
    if is_perception_encoder(tensors):
        return convert_perception(tensors, spec)
    for mark, converter in _LAYOUTS:
        if mark in tensors:
            return converter(tensors, spec)
    if tensors and all(_OF_HEADS.search(name) for name in tensors):
        raise InputError(
            f"{spec.name}: {spec.repository} holds only a head ({listed(tensors)}); give the backbone's file."
        )
    raise InputError(
        f"{spec.name}: the tensors of {spec.repository} have names of no known layout: {listed(tensors)}; "
        "known are those of timm's Vision Transformer, BEiT, DINOv2, Franca, CAPI, OpenAI's CLIP, the "
        "Perception Encoder and torchvision's ResNet."
    )


def kind_of(tensors: Mapping[str, Tensor], converted: Converted) -> str:
    """Model type of what was converted; an MAE is told by its decoder, which conversion leaves out."""
    has_decoder = any(name.startswith("decoder_") for name in tensors)
    return "vit_mae" if has_decoder else str(converted.config.model_type)


def has_names_of_transformers(tensors: Mapping[str, Tensor]) -> bool:
    """Whether the state dict was saved by transformers, and so needs its ``config.json``."""
    return any(_OF_TRANSFORMERS.search(name) for name in tensors)


def told_heads(values: Mapping[str, object]) -> int | None:
    """Attention heads that timm's ``config.json`` implies, by its arguments or else its architecture.

    None where it says nothing of them.
    """
    arguments = values.get("model_args")
    for holder in (values, arguments):
        heads = holder.get("num_heads") if isinstance(holder, Mapping) else None
        if isinstance(heads, int):
            return heads
    size = re.match(r"(?:vit|deit|beit)_([a-z]+)_", str(values.get("architecture")))
    return _TIMM_HEADS.get(size[1]) if size else None
