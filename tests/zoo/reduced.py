"""A small checkpoint on disk in the real format and layout of any entry of the registry."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from tests.zoo import layouts, originals
from tests.zoo.layouts import Tensors
from zoo.spec import BackboneSpec, Stage

SIDE = 4
"""Patches a side of the reduced training images."""

HUB_EPSILON = 1e-6


@dataclass(frozen=True)
class Reduced:
    """A reduced entry, its tensors under the original names, and where they lie."""

    spec: BackboneSpec
    tensors: Tensors
    folder: Path

    def reference(self, images: Tensor) -> list[Tensor]:
        """Every layer by the original architecture, for normalised images."""
        heads = self.spec.heads or 0
        if self.spec.family == "CLIP":
            return originals.clip(self.tensors, images, heads)
        if self.spec.family == "BEiT":
            return originals.beit(self.tensors, images, heads, HUB_EPSILON)
        if self.spec.family == "ResNet":
            return originals.resnet(self.tensors, images)
        return originals.vit(self.tensors, images, heads, HUB_EPSILON)


def reduce(spec: BackboneSpec, folder: Path, seed: int = 0) -> Reduced:
    """Write a reduced checkpoint of an entry into a directory."""
    folder.mkdir(parents=True, exist_ok=True)
    if spec.family == "ResNet":
        stages = tuple(Stage(min(s.blocks, 2), s.width // 16, s.stride) for s in spec.stages)
        small = replace(spec, repository=str(folder), stages=stages, stem_width=8, input_size=64)
        tensors = layouts.fill(layouts.resnet_shapes(8, [(s.blocks, s.width) for s in stages]), seed)
        save_file(layouts.hub_resnet(tensors), folder / "model.safetensors")
        _write_config(
            folder,
            model_type="resnet",
            architectures=["ResNetForImageClassification"],
            embedding_size=8,
            hidden_sizes=[s.width for s in stages],
            depths=[s.blocks for s in stages],
        )
        return Reduced(small, tensors, folder)
    heads, patch = spec.heads or 1, spec.patch_size
    small = replace(
        spec,
        repository=str(folder),
        stages=(Stage(3, 4 * heads, patch),),
        input_size=SIDE * patch,
    )
    return Reduced(small, _write_transformer(small, folder, seed), folder)


def _write_transformer(spec: BackboneSpec, folder: Path, seed: int) -> Tensors:
    depth, width, patch, heads = spec.depth, spec.width, spec.patch_size, spec.heads or 1
    shape = {
        "hidden_size": width,
        "num_hidden_layers": depth,
        "num_attention_heads": heads,
        "intermediate_size": 4 * width,
        "image_size": SIDE * patch,
        "patch_size": patch,
        "layer_norm_eps": HUB_EPSILON,
    }
    if spec.family == "CLIP":
        tensors = layouts.fill(layouts.clip_shapes(depth, width, patch, SIDE), seed)
        save_file(layouts.hub_clip(tensors), folder / "model.safetensors")
        del shape["layer_norm_eps"]
        _write_config(folder, model_type="clip", architectures=["CLIPModel"], vision_config=shape)
        return tensors
    if spec.family == "BEiT":
        tensors = layouts.fill(layouts.beit_shapes(depth, width, heads, patch, SIDE), seed)
        torch.save(layouts.hub_beit(tensors), folder / "pytorch_model.bin")
        _write_config(
            folder,
            model_type="beit",
            architectures=["BeitForMaskedImageModeling"],
            use_shared_relative_position_bias=True,
            use_mask_token=True,
            vocab_size=16,
            **shape,
        )
        return tensors
    tensors = layouts.fill(layouts.vit_shapes(depth, width, patch, SIDE), seed)
    if spec.family == "FS":
        save_file(tensors, folder / "model.safetensors")
        _write_config(folder, architecture="vit_base_patch16_224", num_classes=5)
    elif spec.family == "MoCo":
        encoder = {f"module.base_encoder.{name}": tensor for name, tensor in tensors.items()}
        momentum = {f"module.momentum_encoder.{name}": -tensor for name, tensor in tensors.items()}
        torch.save({"epoch": 300, "state_dict": encoder | momentum}, folder / "pytorch_model.bin")
    elif spec.family == "MAE":
        del tensors["head.weight"], tensors["head.bias"]
        save_file(layouts.hub_mae(tensors), folder / "model.safetensors")
        _write_config(folder, model_type="vit_mae", architectures=["ViTMAEForPreTraining"], **shape)
    else:
        save_file(layouts.hub_vit(tensors), folder / "model.safetensors")
        _write_config(folder, model_type="vit", architectures=["ViTModel"], **shape)
    return tensors


def _write_config(folder: Path, **values: object) -> None:
    (folder / "config.json").write_text(json.dumps(values), encoding="utf-8")


def pixels(batch: int, height: int, width: int, seed: int = 0) -> Tensor:
    """Random images, uint8 [batch 3 height width]."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (batch, 3, height, width), dtype=torch.uint8, generator=generator)


def normalised(spec: BackboneSpec, images: Tensor) -> Tensor:
    """What the network sees."""
    mean, std = (torch.tensor(values)[:, None, None] for values in (spec.mean, spec.std))
    return (images / 255 - mean) / std
