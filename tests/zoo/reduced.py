"""A small checkpoint on disk in the real format and layout of any entry of the registry."""

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from layerboard.zoo.spec import BackboneSpec, Stage
from layerboard.zoo.spec.origin import ORIGINAL
from layerboard.zoo.spec.weights import NO_FILE
from tests.zoo import hub_models, layouts, originals, today
from tests.zoo.hub_models import native_side
from tests.zoo.layouts import Tensors

SIDE = 4
"""Patches a side of the reduced training images."""

EPSILON = 1e-6

_PAPER = re.compile(r"(clip|dino|mae)-[sblh]\d+$|beit-[bl]16$")
"""Names of transformers of the paper whose repositories were written by transformers 4."""


@dataclass(frozen=True)
class Published:
    """An entry, of which a file or directory holds a network, and its tensors under the original names.

    There are no tensors where tests know no original: of what only transformers' own format has.
    """

    spec: BackboneSpec
    tensors: Tensors

    def reference(self, images: Tensor) -> list[Tensor]:
        """Every layer by the original architecture, for normalised images."""
        heads = self.spec.heads or 0
        if self.spec.heads is None:
            return originals.resnet(self.tensors, images)
        if self.spec.family == "PE":
            return today.pe(self.tensors, images, heads)
        if self.spec.family == "CAPI":
            return today.capi(self.tensors, images, heads)
        if "class_embedding" in self.tensors:
            return originals.clip(self.tensors, images, heads)
        if "blocks.0.attn.q_bias" in self.tensors:
            return originals.beit(self.tensors, images, heads, EPSILON)
        return originals.vit(self.tensors, images, heads, EPSILON)


@dataclass(frozen=True)
class Reduced(Published):
    """A reduced entry of the registry, and the folder of its files."""

    folder: Path


def reduce(spec: BackboneSpec, folder: Path, seed: int = 0) -> Reduced:
    """Write a reduced checkpoint of an entry into a directory."""
    folder.mkdir(parents=True, exist_ok=True)
    small = replace(shrunk(spec), repository=str(folder))
    if spec.origin == ORIGINAL:
        architecture = spec.repository.rpartition("/")[2].partition(".")[0]
        return _original(small, architecture, folder, seed)
    if not is_of_transformers_4(spec):
        hub_models.write(small, folder, seed)
        return Reduced(small, {}, folder)
    if spec.heads is None:
        tensors = layouts.fill(_resnet_shapes(small), seed)
        save_file(layouts.hub_resnet(tensors), folder / "model.safetensors")
        _write_config(
            folder,
            model_type="resnet",
            architectures=["ResNetForImageClassification"],
            embedding_size=small.stem_width,
            hidden_sizes=[s.width for s in small.stages],
            depths=[s.blocks for s in small.stages],
        )
        return Reduced(small, tensors, folder)
    return Reduced(small, _write_transformer(small, folder, seed), folder)


def is_of_transformers_4(spec: BackboneSpec) -> bool:
    """Whether the repository was written by transformers 4, whose names of tensors differ."""
    return spec.name in ("resnet50", "resnet101", "resnet152") or _PAPER.match(spec.name) is not None


def shrunk(spec: BackboneSpec) -> BackboneSpec:
    """The entry with fewer blocks and channels, for small images; heads, patches and prefix tokens stay.

    Nothing is known of its file.
    """
    spec = replace(spec, file=NO_FILE)
    if len(spec.stages) == 1:
        heads, patch = spec.heads or 1, spec.patch_size
        stage = Stage(3, 4 * heads, patch)
        inner = today.gated(stage.width) if halves(spec) else None
        small = at_size(replace(spec, stages=(stage,), mlp_width=inner, parameters=None), SIDE * patch)
        return replace(small, trained_size=native_side(spec)) if spec.family == "DINOv2" else small
    factor = spec.width // (4 * spec.heads) if spec.heads else 16
    stages = tuple(Stage(min(s.blocks, 2), s.width // factor, s.stride) for s in spec.stages)
    stem = spec.stem_width and spec.stem_width // 8
    spec = replace(spec, stages=stages, stem_width=stem, parameters=None)
    return at_size(spec, SIDE * spec.patch_size // 2)


def at_size(spec: BackboneSpec, side: int) -> BackboneSpec:
    """The entry as one that was trained on, and is evaluated at, images of another size."""
    return replace(spec, input_size=side, trained_size=spec.trained_size and side)


def halves(spec: BackboneSpec) -> bool:
    """Whether its MLP is gated as DINOv2's is, with two thirds of the usual width."""
    return spec.gated_mlp and spec.family in ("DINOv2", "Franca", "TIPS")


def _resnet_shapes(spec: BackboneSpec) -> layouts.Shapes:
    return layouts.resnet_shapes(spec.stem_width or 0, [(s.blocks, s.width) for s in spec.stages])


def _original(spec: BackboneSpec, architecture: str, folder: Path, seed: int) -> Reduced:
    """A file as its authors publish it, or the repository on the Hub that holds a copy.

    ``architecture`` is what the configuration of a repository of timm calls it.
    """
    if spec.family in today.SHAPES:
        tensors = layouts.fill(today.SHAPES[spec.family](spec), seed)
        torch.save(today.CONTENT[spec.family](tensors), folder / "pytorch_model.bin")
        return Reduced(spec, tensors, folder)
    if spec.heads is None:
        shapes = _resnet_shapes(spec)
        del shapes["fc.weight"], shapes["fc.bias"]
    else:
        shapes = layouts.vit_shapes(
            spec.depth, spec.width, spec.patch_size, SIDE, 5 if spec.family == "FS" else 0
        )
    tensors = layouts.fill(shapes, seed)
    if spec.family == "FS":
        save_file(tensors, folder / "model.safetensors")
        _write_config(folder, architecture=architecture, num_classes=5)
        return Reduced(spec, tensors, folder)
    content: dict[str, object] = {**tensors}
    if spec.family == "MoCo":
        encoder = {f"module.base_encoder.{name}": tensor for name, tensor in tensors.items()}
        momentum = {f"module.momentum_encoder.{name}": -tensor for name, tensor in tensors.items()}
        content = {"epoch": 300, "state_dict": encoder | momentum}
    elif spec.family == "iBOT":
        content = {"state_dict": content}
    name = spec.original.rpartition("/")[2] or "pytorch_model.bin"
    torch.save(content, folder / name)
    repository = folder / name if spec.original else folder
    return Reduced(replace(spec, repository=str(repository)), tensors, folder)


def _write_transformer(spec: BackboneSpec, folder: Path, seed: int) -> Tensors:
    """A repository of the paper's families, written by transformers 4."""
    depth, width, patch, heads = spec.depth, spec.width, spec.patch_size, spec.heads or 1
    shape = {
        "hidden_size": width,
        "num_hidden_layers": depth,
        "num_attention_heads": heads,
        "intermediate_size": 4 * width,
        "image_size": SIDE * patch,
        "patch_size": patch,
        "layer_norm_eps": EPSILON,
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
    if spec.family == "MAE":
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
