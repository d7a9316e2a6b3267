"""Attention probabilities: one block at a time, and only where they are asked for."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from layerboard.zoo.errors import InputError
from layerboard.zoo.features import AttentionMaps, LayerFeatures, Shown
from layerboard.zoo.features.hooked import HookedBackbone
from layerboard.zoo.load.backbone import load_backbone
from layerboard.zoo.load.infer import infer
from layerboard.zoo.registry.find import find
from layerboard.zoo.spec import TRANSFORMER_TAPS, BackboneSpec, Layer
from tests.zoo.conftest import Loader
from tests.zoo.features import test_split as hierarchy
from tests.zoo.inside import inside
from tests.zoo.load.test_architecture import flat
from tests.zoo.load.test_infer import save
from tests.zoo.reduced import Reduced, normalised, pixels


def hooked(spec: BackboneSpec, loader: Loader) -> HookedBackbone:
    backbone = loader(spec)
    assert isinstance(backbone, HookedBackbone)
    return backbone


def probabilities(spec: BackboneSpec) -> list[Layer]:
    """Those of every block."""
    return [Layer(index, "probabilities") for index in range(1, spec.depth + 1)]


def implementation(backbone: HookedBackbone) -> str:
    return str(backbone._network.body.config._attn_implementation)  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["fs-b16", "clip-b16", "dino-s16", "moco-b16", "mae-b16", "beit-b16"])
@pytest.mark.parametrize("cells", [(4, 4), (3, 5)])
def test_probabilities_are_those_of_the_original(
    name: str, cells: tuple[int, int], small: Callable[[str], Reduced], loader: Loader
) -> None:
    reduced = small(name)
    patch = reduced.spec.patch_size
    images = pixels(2, cells[0] * patch, cells[1] * patch)
    layers = reduced.reference(normalised(reduced.spec, images))
    seen: list[AttentionMaps] = []
    spec = replace(reduced.spec, interpolation="huggingface")  # the reference's rule
    hooked(spec, loader).visit(images, seen.append, probabilities(spec))
    assert [str(maps.layer) for maps in seen] == ["1.probabilities", "2.probabilities", "3.probabilities"]
    for maps in seen:
        index = maps.layer.index
        expected = inside(reduced, layers[index - 1], index, cells).probabilities
        torch.testing.assert_close(maps.probabilities, expected, rtol=1e-4, atol=1e-5)
        assert (maps.prefix_tokens, maps.cells) == (1, cells)


@pytest.mark.parametrize(
    ("name", "options", "prefix"),
    [
        ("Dinov2Model", {}, 1),
        ("Dinov2WithRegistersModel", {"num_register_tokens": 3}, 4),
        ("DINOv3ViTModel", {"num_register_tokens": 4}, 5),
        ("DeiTModel", {}, 2),
        ("PixioModel", {}, 8),
        ("IJepaModel", {}, 0),
        ("SiglipVisionModel", {}, 0),
        ("ViTMSNModel", {}, 1),
        ("MetaClip2VisionModel", {}, 1),
        ("MLCDVisionModel", {}, 1),
        ("Aimv2VisionModel", {}, 0),
        ("BeitModel", {"use_relative_position_bias": True}, 1),
    ],
)
def test_other_types_give_what_transformers_gives(
    name: str, options: dict[str, object], prefix: int, tmp_path: Path, loader: Loader
) -> None:
    model = save(tmp_path, name, **options)
    model.set_attn_implementation("eager")
    spec = infer(str(tmp_path), None, None)
    images = pixels(2, 56, 56)
    seen: list[AttentionMaps] = []
    hooked(spec, loader).visit(images, seen.append, probabilities(spec))
    with torch.no_grad():
        expected = model(normalised(spec, images), output_attentions=True).attentions
    for maps, reference in zip(seen, expected, strict=True):
        torch.testing.assert_close(maps.probabilities, reference, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(maps.probabilities.sum(-1), torch.ones(2, 4, 16 + prefix))
        assert maps.prefix_tokens == prefix


def test_the_usual_attention_comes_back_even_after_an_error(loader: Loader) -> None:
    backbone = hooked(find(["mini-beit"])[0], loader)
    images = pixels(2, 64, 64)
    before: list[Tensor] = []
    after: list[Tensor] = []
    backbone.visit(images, lambda f: before.append(flat(f)))
    assert implementation(backbone) == "sdpa"

    def fails(maps: AttentionMaps) -> None:
        assert implementation(backbone) == "eager"
        raise RuntimeError(str(maps.layer))

    with pytest.raises(RuntimeError, match=r"5\.probabilities"):
        backbone.visit(images, fails, [Layer(5, "probabilities")])
    assert implementation(backbone) == "sdpa"
    backbone.visit(images, lambda f: after.append(flat(f)))
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


def test_only_one_block_is_in_memory(loader: Loader) -> None:
    import weakref

    alive: list[weakref.ref[Tensor]] = []

    def visitor(maps: AttentionMaps) -> None:
        assert not [old for old in alive if old() is not None]
        alive.append(weakref.ref(maps.probabilities))

    backbone = hooked(find(["mini-clip"])[0], loader)
    backbone.visit(pixels(1, 64, 64), visitor, probabilities(backbone.spec))
    assert len(alive) == 12


@pytest.mark.parametrize("layer", [Layer(0, "probabilities"), Layer(13, "probabilities")])
def test_layers_without_probabilities(layer: Layer, loader: Loader) -> None:
    backbone = hooked(find(["mini-dino"])[0], loader)
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
    hierarchy.save(folder / "swin", "SwinModel", **hierarchy.WINDOWS)
    return folder / "swin"


def test_one_forward_shows_features_and_probabilities(loader: Loader) -> None:
    for name in ("mini-dino", "mini-clip", "mini-beit"):
        backbone = hooked(find([name])[0], loader)
        images, spec = pixels(2, 64, 64), backbone.spec
        alone: dict[Layer, Tensor] = {}
        inside = [Layer(index, tap) for index in (1, 12) for tap in TRANSFORMER_TAPS]
        backbone.visit(images, lambda f, kept=alone: kept.update({f.layer: flat(f)}), [*spec.layers, *inside])
        forwards: list[int] = []
        handle = backbone._network.body.register_forward_pre_hook(lambda *_, n=forwards: n.append(1))
        order: list[Layer] = []

        def check(shown: Shown, order: list[Layer] = order, alone: dict[Layer, Tensor] = alone) -> None:
            order.append(shown.layer)
            assert isinstance(shown, AttentionMaps) == (shown.layer.tap == "probabilities")
            if isinstance(shown, LayerFeatures):
                torch.testing.assert_close(flat(shown), alone[shown.layer], rtol=1e-4, atol=1e-4)
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
def test_a_forward_that_nobody_asks_stays_fused(layers: list[Layer] | None, loader: Loader) -> None:
    backbone = hooked(find(["mini-dino"])[0], loader)
    found: list[str] = []
    attention = backbone._network.blocks[1].get_submodule("attention")
    outputs: list[object] = []
    handle = attention.register_forward_hook(lambda _, __, output: outputs.append(output[1]))
    backbone.visit(pixels(1, 64, 64), lambda _: found.append(implementation(backbone)), layers)
    handle.remove()
    assert set(found) == {"sdpa"}
    assert outputs == [None]


def test_the_meta_device_sees_no_other_and_waits_for_nothing(tmp_path: Path) -> None:
    for name in ("mini-dino", "mini-clip", "mini-beit"):
        spec = find([name])[0]
        backbone = load_backbone(spec, device=torch.device("meta"), cache_dir=tmp_path)
        seen: list[Layer] = []

        def check(shown: Shown, seen: list[Layer] = seen) -> None:
            tensor = shown.probabilities if isinstance(shown, AttentionMaps) else shown.grid
            assert tensor.is_meta
            seen.append(shown.layer)

        inside = [Layer(2, tap) for tap in TRANSFORMER_TAPS]
        backbone.visit(pixels(2, 64, 64), check, [*spec.layers, *probabilities(spec), *inside])
        assert len(seen) == 14 + 12 + 11
