"""Norms, attention and MLP of every block, by the interface that shows the blocks."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from layerboard.zoo.errors import InputError
from layerboard.zoo.features.hooked import HookedBackbone
from layerboard.zoo.load.infer import infer
from layerboard.zoo.registry.find import find
from layerboard.zoo.spec import TRANSFORMER_TAPS, Layer
from tests.zoo.conftest import Loader
from tests.zoo.inside import inside
from tests.zoo.load.test_architecture import flat
from tests.zoo.load.test_infer import save
from tests.zoo.reduced import Reduced, normalised, pixels

TAPS = (*TRANSFORMER_TAPS, "block")


def places(depth: int) -> list[Layer]:
    """Every tap of every block, in no helpful order."""
    return [Layer(index, tap) for tap in sorted(TAPS) for index in range(depth, 0, -1)]


@pytest.mark.parametrize("name", ["fs-b16", "clip-b16", "dino-s16", "moco-b16", "mae-b16", "beit-b16"])
def test_sublayers_are_those_of_the_original(
    name: str, small: Callable[[str], Reduced], loader: Loader
) -> None:
    reduced = small(name)
    images = pixels(2, reduced.spec.input_size, reduced.spec.input_size)
    layers = reduced.reference(normalised(reduced.spec, images))
    side = reduced.spec.input_size // reduced.spec.patch_size
    seen: dict[Layer, Tensor] = {}
    loader(reduced.spec).visit(
        images, lambda features: seen.update({features.layer: flat(features)}), places(reduced.spec.depth)
    )
    assert [layer.tap for layer in seen] == list(TAPS) * reduced.spec.depth
    assert [layer.index for layer in seen] == [1] * 12 + [2] * 12 + [3] * 12
    for layer, found in seen.items():
        expected = inside(reduced, layers[layer.index - 1], layer.index, (side, side)).taps[layer.tap]
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4, msg=f"layer {layer} differs")


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("ViTModel", {}),
        ("ViTMSNModel", {}),
        ("MetaClip2VisionModel", {}),
        ("MLCDVisionModel", {}),
        ("Aimv2VisionModel", {}),
        ("DeiTModel", {}),
        ("IJepaModel", {}),
        ("SiglipVisionModel", {}),
        ("Dinov2Model", {}),
        ("Dinov2Model", {"use_swiglu_ffn": True}),
        ("Dinov2WithRegistersModel", {"num_register_tokens": 3}),
        ("DINOv3ViTModel", {"num_register_tokens": 4}),
        ("Data2VecVisionModel", {"use_relative_position_bias": True, "layer_scale_init_value": 0.1}),
        ("BeitModel", {"layer_scale_init_value": 0.1}),
        ("BeitModel", {"layer_scale_init_value": 0.0}),
    ],
)
def test_a_block_is_its_input_and_what_its_branches_add(
    name: str, options: dict[str, object], tmp_path: Path, loader: Loader
) -> None:
    save(tmp_path, name, **options)
    backbone = loader(infer(str(tmp_path), None, None))
    assert isinstance(backbone, HookedBackbone)
    seen: dict[str, Tensor] = {}
    wanted = [*places(2), Layer(0)]
    backbone.visit(
        pixels(2, 56, 42), lambda f: seen.update({str(f.layer): f.grid.flatten(1, 2).clone()}), wanted
    )
    for index in (1, 2):
        before, attention, mlp = seen[str(index - 1)], seen[f"{index}.attention"], seen[f"{index}.mlp"]
        torch.testing.assert_close(before + attention + mlp, seen[str(index)], rtol=1e-4, atol=1e-4)
        block = backbone._network.blocks[index - 1]
        norms = [part for part in block.children() if "Norm" in type(part).__name__]
        for tap, source in (("norm1", before), ("norm2", before + attention)):
            found = seen[f"{index}.{tap}"]
            assert any(torch.allclose(norm(source), found, rtol=1e-4, atol=1e-4) for norm in norms)
        assert float(attention.abs().max()) > 1e-3
        assert float(mlp.abs().max()) > 1e-3


def test_taps_do_not_change_the_blocks(loader: Loader) -> None:
    backbone = loader(find(["mini-beit"])[0])
    alone: list[Tensor] = []
    beside: list[Tensor] = []
    backbone.visit(pixels(2, 64, 64), lambda f: alone.append(flat(f)))
    backbone.visit(
        pixels(2, 64, 64),
        lambda f: beside.append(flat(f)) if f.layer.tap in ("block", "final") else None,
        [*backbone.spec.layers, *places(12)],
    )
    assert all(torch.equal(a, b) for a, b in zip(alone, beside, strict=True))


@pytest.mark.parametrize("layer", [Layer(0, "norm1"), Layer(13, "mlp")])
def test_blocks_that_are_not_there(layer: Layer, loader: Loader) -> None:
    with pytest.raises(
        InputError,
        match=f"mini-dino has no layer {layer}; its layers are 0, 1, .* and input, norm1, .* and mlp of",
    ):
        loader(find(["mini-dino"])[0]).visit(pixels(1, 64, 64), lambda _: None, [layer])


def test_a_convnet_has_no_sublayers_of_a_transformer(loader: Loader) -> None:
    with pytest.raises(
        InputError,
        match=r"mini-resnet has no layer 3.norm1; its layers are 0, 1, .*, 12, and input, skip and branch of",
    ):
        loader(find(["mini-resnet"])[0]).visit(pixels(1, 64, 64), lambda _: None, [Layer(3, "norm1")])


def test_sublayers_that_are_not_known(loader: Loader, monkeypatch: pytest.MonkeyPatch) -> None:
    backbone = loader(find(["mini-dino"])[0])
    assert isinstance(backbone, HookedBackbone)
    monkeypatch.setattr(backbone, "_network", replace(backbone._network, parts=None))
    with pytest.raises(InputError, match="where the mlp of its blocks is, if they have one, is not known"):
        backbone.visit(pixels(1, 64, 64), lambda _: None, [Layer(3, "mlp")])
