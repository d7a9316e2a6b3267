"""Seeded random weights of the mini backbones, in Hugging Face format.

Each tensor is drawn from its name, the backbone and a seed, so weights are the same on every machine.
"""

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import save
from torch import Tensor

from layerboard.zoo.spec import BackboneSpec

_LAYER_SCALE = 0.3
_EMBEDDING_STD = 0.02
_VISUAL_TOKENS = 512


def write_random_weights(spec: BackboneSpec, folder: Path, seed: int) -> None:
    """Write random weights of a mini backbone in Hugging Face format into an existing directory."""
    model = build(spec)
    tensors = {name: draw(name, tensor, f"{seed}/{spec.name}") for name, tensor in model.state_dict().items()}
    (folder / "model.safetensors").write_bytes(save(tensors, metadata={"format": "pt"}))
    model.config.save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(preprocessor(spec), encoding="utf-8", newline="\n")


def preprocessor(spec: BackboneSpec) -> str:
    """The input normalisation of a mini backbone, as JSON in Hugging Face format."""
    size = {"height": spec.input_size, "width": spec.input_size}
    words = {"do_normalize": True, "image_mean": spec.mean, "image_std": spec.std, "size": size}
    return json.dumps(words, indent=2)


def build(spec: BackboneSpec) -> transformers.PreTrainedModel:
    """The network of a mini backbone without weights (on the meta device)."""
    model_class, config = _network(spec)
    config.architectures = [model_class.__name__]
    with torch.device("meta"):
        return model_class(config)


def _network(spec: BackboneSpec) -> tuple[type[transformers.PreTrainedModel], transformers.PreTrainedConfig]:
    if spec.family == "ResNet":
        return transformers.ResNetModel, transformers.ResNetConfig(
            embedding_size=spec.stem_width or spec.stages[0].width,
            hidden_sizes=[stage.width for stage in spec.stages],
            depths=[stage.blocks for stage in spec.stages],
            layer_type="bottleneck",
        )
    shape: dict[str, Any] = {
        "hidden_size": spec.width,
        "num_hidden_layers": spec.depth,
        "num_attention_heads": spec.heads,
        "intermediate_size": 4 * spec.width,
        "image_size": spec.input_size,
        "patch_size": spec.patch_size,
    }
    if spec.family == "CLIP":
        return transformers.CLIPVisionModel, transformers.CLIPVisionConfig(**shape, hidden_act="quick_gelu")
    if spec.family == "BEiT":
        return transformers.BeitForMaskedImageModeling, transformers.BeitConfig(
            **shape,
            layer_norm_eps=1e-6,
            layer_scale_init_value=_LAYER_SCALE,
            use_shared_relative_position_bias=True,
            use_mask_token=True,
            vocab_size=_VISUAL_TOKENS,
        )
    return transformers.ViTModel, transformers.ViTConfig(**shape, layer_norm_eps=1e-6)


def draw(name: str, like: Tensor, seed: str) -> Tensor:
    """Random values for a tensor of that name and shape, float32 on the CPU.

    Matrices preserve the variance of their input, so that untrained features neither vanish nor equal their
    input; norms start as the identity.
    """
    if not like.is_floating_point():
        return torch.zeros(like.shape, dtype=like.dtype)
    leaf = name.rsplit(".", 1)[-1]
    if "lambda" in leaf:
        return torch.full(like.shape, _LAYER_SCALE)
    is_embedding = any(word in name for word in ("token", "position", "class_embedding"))
    if like.ndim < 2 and not is_embedding:
        return torch.ones(like.shape) if leaf in ("weight", "running_var") else torch.zeros(like.shape)
    key = hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=7).digest()
    generator = torch.Generator().manual_seed(int.from_bytes(key, "big"))
    std = _EMBEDDING_STD if is_embedding else 1 / math.sqrt(math.prod(like.shape[1:]))
    return torch.randn(like.shape, generator=generator) * std
