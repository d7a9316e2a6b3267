"""Vision Transformers with timm's key names (those of timm and MoCo-v3) as transformers' ``ViTModel``."""

from collections.abc import Mapping
from math import isqrt

from torch import Tensor
from transformers import ViTConfig

from zoo.errors import InputError
from zoo.spec import BackboneSpec

_EPSILON = 1e-6
_WRAPPERS = ("state_dict", "model")
_ENCODER = "module.base_encoder."
_UNUSED = ("head.", "head_dist.", "pre_logits.", "fc_norm.", "mask_token", "decoder")
_TOP = {
    "cls_token": "embeddings.cls_token",
    "pos_embed": "embeddings.position_embeddings",
    "patch_embed.proj.weight": "embeddings.patch_embeddings.projection.weight",
    "patch_embed.proj.bias": "embeddings.patch_embeddings.projection.bias",
    "norm.weight": "layernorm.weight",
    "norm.bias": "layernorm.bias",
}
_BLOCK = {
    "norm1": "layernorm_before",
    "attn.proj": "attention.o_proj",
    "norm2": "layernorm_after",
    "mlp.fc1": "mlp.fc1",
    "mlp.fc2": "mlp.fc2",
}
_QKV = ("attention.q_proj", "attention.k_proj", "attention.v_proj")


def unwrap(content: Mapping[str, object]) -> dict[str, Tensor]:
    """Tensors of the backbone in a checkpoint, under timm's names.

    Training checkpoints keep them under ``state_dict`` or ``model``, and MoCo-v3 beside its momentum encoder;
    of MoCo-v3 this is the query encoder.
    """
    for name in _WRAPPERS:
        inner = content.get(name)
        if isinstance(inner, Mapping):
            content = inner
    tensors = {key: value for key, value in content.items() if isinstance(value, Tensor)}
    if any(key.startswith(_ENCODER) for key in tensors):
        tensors = {key: value for key, value in tensors.items() if key.startswith(_ENCODER)}
        return {key.removeprefix(_ENCODER): value for key, value in tensors.items()}
    return {key.removeprefix("module."): value for key, value in tensors.items()}


def convert(tensors: Mapping[str, Tensor], spec: BackboneSpec) -> tuple[ViTConfig, dict[str, Tensor]]:
    """Configuration and state dict of a ``ViTModel`` without pooler.

    The number of heads cannot be read from tensors: it is the entry's.

    Args:
        tensors: A state dict with timm's names, as `unwrap` gives it.
        spec: Entry, for the heads and for errors.

    Raises:
        InputError: A tensor is missing, unknown, or has a shape that fits no Vision Transformer.
    """
    tensors = {key: value for key, value in tensors.items() if not key.startswith(_UNUSED)}
    depth = 1 + max((int(k.split(".")[1]) for k in tensors if _is_block(k)), default=-1)
    expected = set(_TOP) | {key for index in range(depth) for key in _block_keys(index)}
    _refuse(spec, "lacks", expected - set(tensors))
    _refuse(spec, "has unknown", set(tensors) - expected)
    config = _config(tensors, depth, spec)
    converted = {new: tensors[old] for old, new in _TOP.items()}
    for index in range(depth):
        converted.update(_convert_block(tensors, index, config.hidden_size, spec))
    return config, converted


def _is_block(key: str) -> bool:
    parts = key.split(".")
    return parts[0] == "blocks" and len(parts) > 2 and parts[1].isdigit()


def _block_keys(index: int) -> set[str]:
    return {f"blocks.{index}.{part}.{kind}" for part in (*_BLOCK, "attn.qkv") for kind in ("weight", "bias")}


def _refuse(spec: BackboneSpec, verb: str, keys: set[str]) -> None:
    if keys:
        names = ", ".join(sorted(keys)[:3])
        more = f" and {len(keys) - 3} more" if len(keys) > 3 else ""
        raise InputError(
            f"{spec.name}: the checkpoint {spec.repository} {verb} tensors of a Vision Transformer with "
            f"timm's names: {names}{more}."
        )


def _config(tensors: Mapping[str, Tensor], depth: int, spec: BackboneSpec) -> ViTConfig:
    projection, positions = tensors["patch_embed.proj.weight"], tensors["pos_embed"]
    width, heads = tensors["cls_token"].shape[-1], spec.heads or 0
    side = isqrt(max(positions.shape[1] - 1, 0)) if positions.ndim == 3 else 0
    if (
        projection.ndim != 4
        or projection.shape[2] != projection.shape[3]
        or side * side + 1 != positions.shape[1]
    ):
        raise InputError(
            f"{spec.name}: square patches, a square grid and one class token are expected; the checkpoint "
            f"has patch weights {tuple(projection.shape)} and position embeddings {tuple(positions.shape)}."
        )
    if heads < 1 or width % heads:
        raise InputError(f"{spec.name}: a width of {width} cannot be split into the entry's {heads} heads.")
    patch = projection.shape[-1]
    return ViTConfig(
        hidden_size=width,
        num_hidden_layers=depth,
        num_attention_heads=heads,
        intermediate_size=tensors["blocks.0.mlp.fc1.weight"].shape[0] if depth else 4 * width,
        hidden_act="gelu",
        layer_norm_eps=_EPSILON,
        image_size=side * patch,
        patch_size=patch,
        num_channels=projection.shape[1],
        qkv_bias=True,
    )


def _convert_block(
    tensors: Mapping[str, Tensor], index: int, width: int, spec: BackboneSpec
) -> dict[str, Tensor]:
    converted: dict[str, Tensor] = {}
    for kind in ("weight", "bias"):
        for old, new in _BLOCK.items():
            converted[f"layers.{index}.{new}.{kind}"] = tensors[f"blocks.{index}.{old}.{kind}"]
        stacked = tensors[f"blocks.{index}.attn.qkv.{kind}"]
        if stacked.shape[0] != 3 * width:
            raise InputError(
                f"{spec.name}: blocks.{index}.attn.qkv.{kind} has {stacked.shape[0]} rows, not 3 x {width}."
            )
        for name, part in zip(_QKV, stacked.chunk(3), strict=True):
            converted[f"layers.{index}.{name}.{kind}"] = part.contiguous()
    return converted
