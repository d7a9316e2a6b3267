"""A small checkpoint on disk in the real format and layout of any entry of the registry."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from layerboard.zoo.features import LayerFeatures, Shown
from layerboard.zoo.features.backbone import Backbone
from layerboard.zoo.spec import NO_FILE, BackboneSpec, Layer, Stage
from layerboard.zoo.spec.origin import ORIGINAL
from tests.zoo import hub_models, published, today
from tests.zoo.published import Published, at_size, halves


@dataclass(frozen=True)
class Reduced(Published):
    """A reduced entry of the registry, and the folder of its files."""

    folder: Path


def reduce(spec: BackboneSpec, folder: Path, seed: int = 0) -> Reduced:
    """Write a reduced checkpoint of an entry into a directory."""
    folder.mkdir(parents=True, exist_ok=True)
    small = replace(shrunk(spec), repository=str(folder))
    if spec.origin != ORIGINAL:
        hub_models.write(small, folder, seed)
        return Reduced(small, {}, folder)
    tensors, content = published.of_entry(small, seed)
    if spec.family == "FS":
        save_file(tensors, folder / "model.safetensors")
        architecture = spec.repository.rpartition("/")[2].partition(".")[0]
        (folder / "config.json").write_text(json.dumps({"architecture": architecture, "num_classes": 5}))
        return Reduced(small, tensors, folder)
    is_copy = not spec.original or spec.family in today.ROTARY or spec.family == "Franca"
    name = "pytorch_model.bin" if is_copy else spec.original.rpartition("/")[2]
    torch.save(content, folder / name)
    return Reduced(small if is_copy else replace(small, repository=str(folder / name)), tensors, folder)


def shrunk(spec: BackboneSpec) -> BackboneSpec:
    """The entry with fewer blocks and channels, for small images; heads, patches and prefix tokens stay.

    Nothing is known of its file.
    """
    spec = replace(spec, file=NO_FILE)
    if len(spec.stages) == 1:
        heads, patch = spec.heads or 1, spec.patch_size
        stage = Stage(3, 4 * heads, patch)
        inner = today.gated(stage.width) if halves(spec) else None
        side = published.SIDE * patch
        small = at_size(replace(spec, stages=(stage,), mlp_width=inner, parameters=None), side)
        native = hub_models.native_side(spec)
        return replace(small, trained_size=native) if spec.family == "DINOv2" else small
    factor = spec.width // (4 * spec.heads) if spec.heads else 16
    stages = tuple(Stage(min(s.blocks, 2), s.width // factor, s.stride) for s in spec.stages)
    stem = spec.stem_width and spec.stem_width // 8
    spec = replace(spec, stages=stages, stem_width=stem, parameters=None)
    return at_size(spec, published.SIDE * spec.patch_size // 2)


def pixels(batch: int, height: int, width: int, seed: int = 0) -> Tensor:
    """Random images, uint8 [batch 3 height width]."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (batch, 3, height, width), dtype=torch.uint8, generator=generator)


def normalised(spec: BackboneSpec, images: Tensor) -> Tensor:
    """What the network sees."""
    mean, std = (torch.tensor(values)[:, None, None] for values in (spec.mean, spec.std))
    return (images / 255 - mean) / std


def layers_of(
    backbone: Backbone, images: Tensor, asked: Iterable[Layer] | None = None
) -> dict[str, LayerFeatures]:
    """Copies of the features that a backbone shows of images, by layer in their order."""
    found: dict[str, LayerFeatures] = {}

    def keep(shown: Shown) -> None:
        assert isinstance(shown, LayerFeatures)
        cls = None if shown.cls is None else shown.cls.clone()
        found[str(shown.layer)] = LayerFeatures(shown.layer, cls, shown.grid.clone())

    backbone.visit(images, keep, asked)
    return found


def grids_of(backbone: Backbone, images: Tensor, asked: Iterable[Layer] | None = None) -> dict[str, Tensor]:
    """Their grids, [batch rows columns dim]."""
    return {layer: features.grid for layer, features in layers_of(backbone, images, asked).items()}
