"""No forward waits for its device or mixes devices, seen where there is no GPU.

Tensors of the device ``meta`` have shapes and no values: to ask for one raises, and so does a mix of devices.
"""

from pathlib import Path

import pytest
import torch
import transformers
from torch import Tensor

from layerboard.zoo.entries import ARCHITECTURES
from layerboard.zoo.features import AttentionMaps, Shown
from layerboard.zoo.features.backbone import Backbone
from layerboard.zoo.features.hooked import HookedBackbone
from layerboard.zoo.load import rotary_vit
from layerboard.zoo.load.backbone import load_backbone
from layerboard.zoo.load.infer import infer
from layerboard.zoo.registry.find import find
from layerboard.zoo.spec import BackboneSpec, Layer, Tap
from tests.zoo.conftest import Small
from tests.zoo.features.test_taps import FAMILIES
from tests.zoo.load.test_infer import save
from tests.zoo.reduced import pixels

META = torch.device("meta")
OTHERS: dict[str, tuple[str, dict[str, object]]] = {
    "focalnet": ("FocalNetModel", {"embed_dim": 16, "depths": [1, 2], "hidden_sizes": [16, 32]})
}
"""Architectures that no entry of the registry has."""

ENTRIES = {
    "moco-resnet50": "resnet",
    "bit-50": "bit",
    "convnext-t": "convnext",
    "convnextv2-t": "convnextv2",
    "dinov3-convnext-t": "dinov3_convnext",
    "swin-t": "swin",
    "swinv2-t": "swinv2",
    "moco-s16": "vit",
    "beit-b16": "beit",
    "sam-b16": "sam_vision_model",
    "vjepa2-l16": "vjepa2",
    "hiera-t": "hiera",
}
"""Model type of entries of networks with stages, in layouts of their own, or inside a larger network."""


def on_meta(spec: BackboneSpec, cache: Path) -> Backbone:
    return load_backbone(spec, device=META, cache_dir=cache)


def tensors(shown: Shown) -> list[Tensor]:
    if isinstance(shown, AttentionMaps):
        return [shown.probabilities, shown.patches]
    return [shown.grid, shown.mean, shown.patchwise(64), *([] if shown.cls is None else [shown.cls])]


def walk(backbone: Backbone) -> None:
    """Show every layer, and the inside of a block, of images that are not square where that is taken."""
    spec = backbone.spec
    taps: tuple[Tap, ...] = (*spec.inside, "probabilities")
    inside = (Layer(1, tap) for tap in taps)
    layers = [layer for layer in dict.fromkeys((*spec.layers, *inside)) if not backbone.refusal([layer])]
    layers.sort(key=lambda layer: layer.place)
    seen = set()

    def visitor(shown: Shown) -> None:
        assert {tensor.device for tensor in tensors(shown)} == {META}
        seen.add(shown.layer)

    height = spec.input_size
    backbone.visit(pixels(2, height, height if spec.fixed_size else 2 * height), visitor, layers)
    assert seen == set(layers)


@pytest.mark.parametrize("name", [*FAMILIES, *OTHERS])
def test_a_forward_of_every_architecture_asks_for_no_value(name: str, tmp_path: Path) -> None:
    class_name, options = (FAMILIES | OTHERS)[name]
    save(tmp_path, class_name, **options)
    walk(on_meta(infer(str(tmp_path), None, None), tmp_path / "cache"))


@pytest.mark.parametrize("name", ENTRIES)
def test_a_forward_of_every_network_with_stages_asks_for_no_value(
    name: str, small: Small, cache: Path
) -> None:
    backbone = on_meta(small(name).spec, cache)
    assert isinstance(backbone, HookedBackbone)
    assert backbone._network.body.config.model_type == ENTRIES[name]  # type: ignore[union-attr]
    walk(backbone)


def test_the_floor_draws_for_its_device(cache: Path) -> None:
    (spec,) = find(["mini-random"])
    walk(on_meta(spec, cache))


def test_no_architecture_is_left_out() -> None:
    names = [class_name for class_name, _ in (FAMILIES | OTHERS).values()]
    classes = [getattr(transformers, name, None) or getattr(rotary_vit, name) for name in names]
    types = {one.config_class.model_type for one in classes} | set(ENTRIES.values())
    assert types == {architecture.model_type for architecture in ARCHITECTURES}
