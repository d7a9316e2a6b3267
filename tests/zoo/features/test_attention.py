"""Attention probabilities: one block at a time, and only where they are asked for."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from layerboard.zoo.errors import InputError
from layerboard.zoo.features import AttentionMaps, LayerFeatures, Shown
from layerboard.zoo.features.hooked import HookedBackbone
from layerboard.zoo.load.infer import infer
from layerboard.zoo.registry.find import find
from layerboard.zoo.spec import TRANSFORMER_TAPS, BackboneSpec, Layer
from tests.zoo.conftest import Loader
from tests.zoo.features import test_split as hierarchy
from tests.zoo.load.test_convert import rows
from tests.zoo.load.test_infer import save
from tests.zoo.reduced import grids_of, layers_of, pixels


def hooked(spec: BackboneSpec, loader: Loader) -> HookedBackbone:
    backbone = loader(spec)
    assert isinstance(backbone, HookedBackbone)
    return backbone


def probabilities(spec: BackboneSpec) -> list[Layer]:
    """Those of every block."""
    return [Layer(index, "probabilities") for index in range(1, spec.depth + 1)]


def implementation(backbone: HookedBackbone) -> str:
    return str(backbone._network.body.config._attn_implementation)  # type: ignore[union-attr]


def test_the_usual_attention_comes_back_even_after_an_error(kept: Loader) -> None:
    backbone = hooked(find(["mini-beit"])[0], kept)
    images = pixels(2, 64, 64)
    before = grids_of(backbone, images)
    assert implementation(backbone) == "sdpa"

    def fails(maps: AttentionMaps) -> None:
        assert implementation(backbone) == "eager"
        raise RuntimeError(str(maps.layer))

    with pytest.raises(RuntimeError, match=r"5\.probabilities"):
        backbone.visit(images, fails, [Layer(5, "probabilities")])
    assert implementation(backbone) == "sdpa"
    after = grids_of(backbone, images)
    assert all(torch.equal(before[layer], after[layer]) for layer in before)


def test_only_one_block_is_in_memory(kept: Loader) -> None:
    import weakref

    alive: list[weakref.ref[Tensor]] = []

    def visitor(maps: AttentionMaps) -> None:
        assert not [old for old in alive if old() is not None]
        alive.append(weakref.ref(maps.probabilities))

    backbone = hooked(find(["mini-clip"])[0], kept)
    backbone.visit(pixels(1, 64, 64), visitor, probabilities(backbone.spec))
    assert len(alive) == 12


@pytest.mark.parametrize("layer", [Layer(0, "probabilities"), Layer(13, "probabilities")])
def test_layers_without_probabilities(layer: Layer, kept: Loader) -> None:
    backbone = hooked(find(["mini-dino"])[0], kept)
    with pytest.raises(
        InputError, match=rf"no attention probabilities of layer {layer}; it has .* 12.probabilities"
    ):
        backbone.visit(pixels(1, 64, 64), lambda _: None, [Layer(3), layer])


def test_networks_without_probabilities(tmp_path: Path, loader: Loader) -> None:
    asked = [Layer(1, "probabilities")]
    for name in ("mini-resnet", "mini-random"):
        backbone = loader(find([name])[0])
        with pytest.raises(InputError, match=rf"{name} has no attention\."):
            backbone.visit(pixels(1, 64, 64), lambda _: None, asked)
        assert backbone.refusal(asked) == f"{name} has no attention."
        assert backbone.refusal(backbone.spec.layers) == ""
    save(tmp_path, "Data2VecVisionModel")
    backbone = loader(infer(str(tmp_path), None, None))
    with pytest.raises(InputError, match="is a network whose attention probabilities cannot be read"):
        backbone.visit(pixels(1, 56, 56), lambda _: None, asked)
    assert backbone.refusal(asked).endswith("is a network whose attention probabilities cannot be read.")
    assert backbone.refusal([Layer(1, "norm1"), Layer(0)]) == ""
    with pytest.raises(InputError, match="cannot be read"):
        loader(infer(str(swin(tmp_path)), None, None)).visit(pixels(1, 64, 64), lambda _: None, asked)


def swin(folder: Path) -> Path:
    """A Swin, whose attention is inside windows."""
    save(folder / "swin", "SwinModel", **hierarchy.WINDOWS)
    return folder / "swin"


def test_one_forward_shows_features_and_probabilities(kept: Loader) -> None:
    for name in ("mini-dino", "mini-clip", "mini-beit"):
        backbone = hooked(find([name])[0], kept)
        images, spec = pixels(2, 64, 64), backbone.spec
        inside = [Layer(index, tap) for index in (12, 1) for tap in sorted(TRANSFORMER_TAPS)]
        alone = layers_of(backbone, images, [*inside, *spec.layers])
        for layer, features in layers_of(backbone, images).items():  # which taps do not change
            assert torch.equal(features.grid, alone[layer].grid)
        forwards: list[int] = []
        handle = backbone._network.body.register_forward_pre_hook(lambda *_, n=forwards: n.append(1))
        order: list[Layer] = []

        def check(shown: Shown, order: list[Layer] = order, alone: dict[str, LayerFeatures] = alone) -> None:
            order.append(shown.layer)
            assert isinstance(shown, AttentionMaps) == (shown.layer.tap == "probabilities")
            if isinstance(shown, LayerFeatures):
                torch.testing.assert_close(rows(shown), rows(alone[str(shown.layer)]), rtol=1e-4, atol=1e-4)
            else:
                torch.testing.assert_close(shown.probabilities.sum(-1), torch.ones(2, 3, 65))

        backbone.visit(images, check, [*probabilities(spec), *spec.layers, *inside])
        handle.remove()
        assert len(forwards) == 1
        assert len(order) == 14 + 12 + 22
        first = "input norm1 query key value probabilities heads attention mid norm2 mlp_hidden mlp block"
        assert order[0] == Layer(0)
        assert [layer.tap for layer in order[1:14]] == first.split()
        assert [str(layer) for layer in order[-2:]] == ["12", "final"]


@pytest.mark.parametrize(
    "layers", [None, [Layer(1), Layer(2, "attention")], [Layer(2, tap) for tap in TRANSFORMER_TAPS]]
)
def test_a_forward_that_nobody_asks_stays_fused(layers: list[Layer] | None, kept: Loader) -> None:
    backbone = hooked(find(["mini-dino"])[0], kept)
    found: list[str] = []
    attention = backbone._network.blocks[1].get_submodule("attention")
    outputs: list[object] = []
    handle = attention.register_forward_hook(lambda _, __, output: outputs.append(output[1]))
    backbone.visit(pixels(1, 64, 64), lambda _: found.append(implementation(backbone)), layers)
    handle.remove()
    assert set(found) == {"sdpa"}
    assert outputs == [None]
