"""Attention probabilities: one block at a time, and only where they are asked for."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from tests.zoo.conftest import Loader
from tests.zoo.inside import inside
from tests.zoo.load.test_architecture import flat
from tests.zoo.load.test_infer import save
from tests.zoo.reduced import Reduced, normalised, pixels
from zoo.errors import InputError
from zoo.features import AttentionMaps
from zoo.load.infer import infer
from zoo.look.backbone import HookedBackbone
from zoo.registry import find
from zoo.spec import BackboneSpec, Layer


def hooked(spec: BackboneSpec, loader: Loader) -> HookedBackbone:
    backbone = loader(spec)
    assert isinstance(backbone, HookedBackbone)
    return backbone


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
    hooked(reduced.spec, loader).visit_attention(images, seen.append)
    assert [str(maps.layer) for maps in seen] == ["1.attention", "2.attention", "3.attention"]
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
    hooked(spec, loader).visit_attention(images, seen.append)
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

    with pytest.raises(RuntimeError, match=r"5\.attention"):
        backbone.visit_attention(images, fails, [Layer(5, "attention")])
    assert implementation(backbone) == "sdpa"
    backbone.visit(images, lambda f: after.append(flat(f)))
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


def test_only_one_block_is_in_memory(loader: Loader) -> None:
    import weakref

    alive: list[weakref.ref[Tensor]] = []

    def visitor(maps: AttentionMaps) -> None:
        assert not [old for old in alive if old() is not None]
        alive.append(weakref.ref(maps.probabilities))

    hooked(find(["mini-clip"])[0], loader).visit_attention(pixels(1, 64, 64), visitor)
    assert len(alive) == 12


@pytest.mark.parametrize("layer", [Layer(3), Layer(13, "attention"), Layer(12, "final")])
def test_layers_without_probabilities(layer: Layer, loader: Loader) -> None:
    backbone = hooked(find(["mini-dino"])[0], loader)
    with pytest.raises(
        InputError, match=rf"no attention probabilities of layer {layer}; it has .* 12.attention"
    ):
        backbone.visit_attention(pixels(1, 64, 64), lambda _: None, [layer])


def test_networks_without_probabilities(tmp_path: Path, loader: Loader) -> None:
    with pytest.raises(InputError, match=r"mini-resnet has no attention\."):
        hooked(find(["mini-resnet"])[0], loader).visit_attention(pixels(1, 64, 64), lambda _: None)
    save(tmp_path, "Data2VecVisionModel")
    with pytest.raises(InputError, match="is a network whose attention probabilities cannot be read"):
        hooked(infer(str(tmp_path), None, None), loader).visit_attention(pixels(1, 56, 56), lambda _: None)
