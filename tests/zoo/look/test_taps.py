"""The inside of blocks: what its taps are to each other, in every family."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from tests.zoo.conftest import Loader
from tests.zoo.load.test_infer import save
from tests.zoo.reduced import pixels
from zoo.features import Shown
from zoo.load.infer import infer
from zoo.look.backbone import HookedBackbone
from zoo.look.sublayers import Sublayers, submodule
from zoo.spec import BackboneSpec, Layer, Tap

BIAS = {"layer_scale_init_value": 0.1}
FAMILIES: dict[str, tuple[str, dict[str, object]]] = {
    "vit": ("ViTModel", {}),
    "deit": ("DeiTModel", {}),
    "mae": ("ViTMAEModel", {}),
    "msn": ("ViTMSNModel", {}),
    "ijepa": ("IJepaModel", {}),
    "clip": ("CLIPVisionModel", {}),
    "metaclip2": ("MetaClip2VisionModel", {}),
    "mlcd": ("MLCDVisionModel", {}),
    "siglip": ("SiglipVisionModel", {}),
    "beit": ("BeitModel", BIAS | {"use_relative_position_bias": True}),
    "beit-shared": ("BeitForMaskedImageModeling", BIAS | {"use_shared_relative_position_bias": True}),
    "beit-unscaled": ("BeitModel", {"layer_scale_init_value": 0.0}),
    "data2vec": ("Data2VecVisionModel", BIAS | {"use_shared_relative_position_bias": True}),
    "dinov2": ("Dinov2Model", {}),
    "dinov2-gated": ("Dinov2Model", {"use_swiglu_ffn": True}),
    "dinov2-registers": ("Dinov2WithRegistersModel", {"num_register_tokens": 3}),
    "dinov3": ("DINOv3ViTModel", {"num_register_tokens": 4}),
    "dinov3-gated": ("DINOv3ViTModel", {"num_register_tokens": 4, "use_gated_mlp": True}),
    "aimv2": ("Aimv2VisionModel", {}),
    "aimv2-native": ("Aimv2VisionModel", {"is_native": True}),
}
"""Class and options of a small network of every family whose inside is known."""


def build(family: str, folder: Path, loader: Loader) -> HookedBackbone:
    name, options = FAMILIES[family]
    save(folder, name, **options)
    backbone = loader(infer(str(folder), None, None))
    assert isinstance(backbone, HookedBackbone)
    return backbone


def taps_of(spec: BackboneSpec) -> tuple[Tap, ...]:
    return (*spec.inside, "block")


def block_of(backbone: HookedBackbone, index: int, images: Tensor) -> dict[Tap, Tensor]:
    """All that a block shows in one forward, with all its prefix tokens, [batch tokens dim]."""
    seen: dict[Tap, Tensor] = {}
    split = backbone._split

    def keep(layer: Layer, activation: Tensor | None, batch: int, cells: tuple[int, int]) -> Shown:
        assert activation is not None
        seen[layer.tap] = activation.clone()
        return split(layer, activation, batch, cells)

    layers = [Layer(index, tap) for tap in taps_of(backbone.spec)]
    maps = Layer(index, "probabilities")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backbone, "_split", keep)
        backbone.visit(images, lambda _: None, [*layers, *([] if backbone.refusal([maps]) else [maps])])
    return seen


def deviation(found: Tensor, expected: Tensor) -> float:
    """Largest difference, relative to the largest number."""
    return float((found - expected).abs().max() / expected.abs().max())


@pytest.mark.parametrize("family", FAMILIES)
def test_the_identities_of_a_block(family: str, tmp_path: Path, loader: Loader) -> None:
    backbone = build(family, tmp_path, loader)
    seen = block_of(backbone, 2, pixels(2, 56, 42))
    assert deviation(seen["input"] + seen["attention"], seen["mid"]) < 1e-5
    assert deviation(seen["mid"] + seen["mlp"], seen["block"]) < 1e-5
    block = backbone._network.blocks[1]
    parts = backbone._network.parts
    assert isinstance(parts, Sublayers)
    down = submodule(block, parts.projections.hidden)
    scale = getattr(block, parts.mlp_scale) if parts.mlp_scale else None
    if "dinov" in family:
        scale = block.get_submodule("layer_scale2").lambda1
    projected = down(seen["mlp_hidden"])
    assert deviation(projected if scale is None else projected * scale, seen["mlp"]) < 1e-5
    query, key, value = (
        seen[tap].unflatten(-1, (4, -1)).transpose(1, 2) for tap in ("query", "key", "value")
    )
    maps = (query @ key.mT / query.shape[-1] ** 0.5 + bias_of(backbone, block, (4, 3))).softmax(-1)
    assert ("probabilities" in seen) == (family != "data2vec")
    if "probabilities" in seen:
        torch.testing.assert_close(seen["probabilities"], maps, rtol=0, atol=1e-6)
    assert deviation((maps @ value).transpose(1, 2).flatten(2), seen["heads"]) < 1e-5


def bias_of(backbone: HookedBackbone, block: nn.Module, cells: tuple[int, int]) -> Tensor:
    """What is added to the scores of a block before the soft-max: relative positions, or nothing."""
    for holder in (block, backbone._network.body):
        for module in holder.modules():
            if hasattr(module, "relative_position_bias_table"):
                found: Tensor = module(cells)
                return found
    return torch.zeros(())
