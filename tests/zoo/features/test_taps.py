"""The inside of blocks: what its taps are to each other, in every family."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from layerboard.zoo.entries.architecture import Sublayers
from layerboard.zoo.errors import InputError
from layerboard.zoo.features import AttentionMaps, LayerFeatures, Shown
from layerboard.zoo.features.hooked import HookedBackbone
from layerboard.zoo.load.infer import infer
from layerboard.zoo.registry.find import find
from layerboard.zoo.spec import CONVNET_TAPS, BackboneSpec, Layer, Tap
from tests.zoo.conftest import Loader, Small
from tests.zoo.load.test_infer import save
from tests.zoo.reduced import grids_of, layers_of, pixels

BIAS: dict[str, object] = {"layer_scale_init_value": 0.1}
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
    "radio": ("RadioModel", {"max_img_size": 112, "num_registers": 3}),
    "pixio": ("PixioModel", {}),
    "tips": ("Tipsv2VisionModel", {}),
    "tips-gated": ("Tipsv2VisionModel", {"use_swiglu_ffn": True}),
    "capi": ("CapiModel", {"num_register_tokens": 8}),
    "pe": ("PerceptionEncoderModel", {"class_token": True}),
    "pe-scaled": ("PerceptionEncoderModel", {"layer_scale": True, "norm_after": "none"}),
    "aimv2": ("Aimv2VisionModel", {}),
    "aimv2-native": ("Aimv2VisionModel", {"is_native": True}),
}
"""Class and options of a small network of every family whose inside is known."""


_BUILT: dict[str, HookedBackbone] = {}


def build(family: str, folder: Path, loader: Loader) -> HookedBackbone:
    """The network of a family, made once a process; not to be changed."""
    if family not in _BUILT:
        name, options = FAMILIES[family]
        save(folder, name, **options)
        backbone = loader(infer(str(folder), None, None))
        assert isinstance(backbone, HookedBackbone)
        _BUILT[family] = backbone
    return _BUILT[family]


def taps_of(spec: BackboneSpec) -> tuple[Tap, ...]:
    return (*spec.inside, "block")


def block_of(backbone: HookedBackbone, index: int, images: Tensor) -> dict[Tap, Tensor]:
    """All that a block shows in one forward, with all its prefix tokens, [batch tokens dim]."""
    seen: dict[Tap, Tensor] = {}
    shown = backbone._shown

    def keep(layer: Layer, activation: Tensor | None, batch: int, cells: tuple[int, int]) -> Shown:
        assert activation is not None
        seen[layer.tap] = activation.clone()
        return shown(layer, activation, batch, cells)

    layers = [Layer(index, tap) for tap in taps_of(backbone.spec)]
    maps = Layer(index, "probabilities")

    def check(found: Shown) -> None:
        """Maps say which of their tokens are patches."""
        if isinstance(found, AttentionMaps):
            patch = backbone.spec.patch_size
            assert found.prefix_tokens == backbone.spec.prefix_tokens
            assert found.cells == (images.shape[2] // patch, images.shape[3] // patch)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backbone, "_shown", keep)
        backbone.visit(images, check, [*layers, *([] if backbone.refusal([maps]) else [maps])])
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
    down = next(block.get_submodule(n) for n in parts.hidden if n in dict(block.named_modules()))
    one, two = (getattr(block, name) if name else None for name in (parts.attention_scale, parts.mlp_scale))
    if family.startswith(("dinov", "radio", "tips", "pe-scaled")):
        one, two = (block.get_submodule(f"layer_scale{half}").lambda1 for half in (1, 2))
    for tap, projected, scale in (
        ("attention", block.get_submodule(parts.heads)(seen["heads"]), one),
        ("mlp", down(seen["mlp_hidden"]), two),
    ):
        assert deviation(projected if scale is None else projected * scale, seen[tap]) < 1e-5
        assert float(seen[tap].abs().max()) > 1e-3
    norms = [part for part in block.children() if "Norm" in type(part).__name__]
    for tap, source in (("norm1", seen["input"]), ("norm2", seen["mid"])):
        assert any(torch.allclose(norm(source), seen[tap], rtol=1e-4, atol=1e-4) for norm in norms)
    query, key, value = (
        seen[tap].unflatten(-1, (4, -1)).transpose(1, 2) for tap in ("query", "key", "value")
    )
    maps = (query @ key.mT / query.shape[-1] ** 0.5 + bias_of(backbone, block, (4, 3))).softmax(-1)
    assert ("probabilities" in seen) == (family != "data2vec")
    if "probabilities" in seen:
        torch.testing.assert_close(seen["probabilities"], maps, rtol=0, atol=1e-6)
    assert deviation((maps @ value).transpose(1, 2).flatten(2), seen["heads"]) < 1e-5


def test_layers_that_are_not_there(loader: Loader, monkeypatch: pytest.MonkeyPatch) -> None:
    backbone = loader(find(["mini-dino"])[0])
    assert isinstance(backbone, HookedBackbone)
    for layer in (Layer(0, "norm1"), Layer(13, "mlp")):
        with pytest.raises(InputError, match=f"mini-dino has no layer {layer}; its layers are 0, 1, "):
            backbone.visit(pixels(1, 64, 64), lambda _: None, [layer])
    monkeypatch.setattr(backbone, "_network", replace(backbone._network, parts=None))
    with pytest.raises(InputError, match="where the mlp of its blocks is, if they have one, is not known"):
        backbone.visit(pixels(1, 64, 64), lambda _: None, [Layer(3, "mlp")])


def bias_of(backbone: HookedBackbone, block: nn.Module, cells: tuple[int, int]) -> Tensor:
    """What is added to the scores of a block before the soft-max: relative positions, or nothing."""
    for holder in (block, backbone._network.body):
        for module in holder.modules():
            if hasattr(module, "relative_position_bias_table"):
                found: Tensor = module(cells)
                return found
    return torch.zeros(())


CONVNETS = ("resnet50", "moco-resnet50", "bit-50", "convnext-t", "convnextv2-t", "dinov3-convnext-t")


@pytest.mark.parametrize("name", CONVNETS)
def test_the_identity_of_a_residual_block(name: str, small: Small, loader: Loader) -> None:
    backbone = loader(small(name).spec)
    assert isinstance(backbone, HookedBackbone)
    side = backbone.spec.input_size
    images = pixels(2, side, 2 * side)
    whole = grids_of(backbone, images)
    for index in range(1, backbone.spec.depth + 1):
        layers = [Layer(index, tap) for tap in (*CONVNET_TAPS, "block")]
        found = layers_of(backbone, images, layers).values()
        seen = {features.layer.tap: features.grid for features in found}
        assert tuple(seen) == ("input", "skip", "branch", "block")
        total = seen["skip"] + seen["branch"]
        total = total.relu() if "resnet" in name else total
        assert deviation(total, seen["block"]) < 1e-5
        assert torch.equal(seen["block"], whole[str(index)])
        assert float(seen["branch"].abs().max()) > 0
        if seen["skip"].shape == seen["input"].shape and name != "bit-50":
            assert torch.equal(seen["skip"], seen["input"]) == (index > 1 or "next" in name)
        if seen["input"].shape == whole[str(index - 1)].shape and "next" not in name:
            assert torch.equal(seen["input"], whole[str(index - 1)])


def grid_of(shown: Shown) -> Tensor:
    assert isinstance(shown, LayerFeatures)
    return shown.grid


def test_a_block_without_skips(loader: Loader) -> None:
    """In the middle of such a block is what attention gives, alone, and at its end what the MLP gives."""
    backbone = loader(find(["mini-fs64-noskip6"])[0])
    assert isinstance(backbone, HookedBackbone)
    for index in (5, 6):
        seen = block_of(backbone, index, pixels(2, 64, 64))
        skip, mid = (seen["input"], seen["mid"]) if index == 5 else (torch.zeros(()), torch.zeros(()))
        assert deviation(skip + seen["attention"], seen["mid"]) < 1e-5
        assert deviation(mid + seen["mlp"], seen["block"]) < 1e-5
    assert deviation(seen["input"] + seen["attention"], seen["mid"]) > 0.1
    assert deviation(seen["mid"] + seen["mlp"], seen["block"]) > 0.1


@pytest.mark.parametrize("name", ["mini-resnet", *CONVNETS, *FAMILIES])
def test_what_is_held_stays_as_it_was_shown(name: str, small: Small, tmp_path: Path, loader: Loader) -> None:
    """Also after its block, until the forward ends: networks that overwrite are shown as copies."""
    if name in FAMILIES:
        backbone = build(name, tmp_path, loader)
    else:
        loaded = loader(find([name])[0] if name.startswith("mini") else small(name).spec)
        assert isinstance(loaded, HookedBackbone)
        backbone = loaded
    spec = backbone.spec
    side = spec.input_size
    layers = [*spec.layers, *(Layer(index, tap) for index in range(1, spec.depth + 1) for tap in spec.inside)]
    held: list[tuple[Layer, Tensor, Tensor]] = []

    def visitor(shown: Shown) -> None:
        held.append((shown.layer, grid_of(shown), grid_of(shown).clone()))

    backbone.visit(pixels(2, side, side), visitor, layers)
    assert len(held) == len(layers)
    assert [str(layer) for layer, now, then in held if not torch.equal(now, then)] == []


@pytest.mark.parametrize(
    ("name", "live"),
    [
        ("mini-fs", {"input", "norm1", "query", "key", "value", "attention", "norm2", "mlp"}),
        ("mini-beit", {"input", "norm1", "query", "key", "value", "norm2"}),
        ("mini-resnet", {"input", "skip"}),
    ],
)
def test_taps_compute_nothing_twice_and_copy_nothing(name: str, live: set[Tap], loader: Loader) -> None:
    """No module runs more often than in a bare forward, and what modules give is shown itself."""
    backbone = loader(find([name])[0])
    assert isinstance(backbone, HookedBackbone)
    calls: Counter[str] = Counter()
    given: list[Tensor] = []

    def note(path: str, output: object) -> None:
        calls[path] += 1
        given.extend(one for one in [output] if isinstance(one, Tensor))
        given.extend(output[:1] if isinstance(output, tuple) else ())

    for path, module in backbone._network.body.named_modules():
        module.register_forward_hook(lambda _, __, output, path=path: note(path, output))
    backbone.visit(pixels(2, 64, 64), lambda _: None, [Layer(2)])
    bare = calls.copy()
    calls.clear()
    shared: set[Tap] = set()

    def visitor(shown: Shown) -> None:
        storage = grid_of(shown).untyped_storage().data_ptr()
        if storage in {one.untyped_storage().data_ptr() for one in given}:
            shared.add(shown.layer.tap)

    backbone.visit(pixels(2, 64, 64), visitor, [Layer(2, tap) for tap in backbone.spec.inside])
    assert calls == bare
    assert live <= shared
    assert "branch" not in shared  # overwritten by the sum
