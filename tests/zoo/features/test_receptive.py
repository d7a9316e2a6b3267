"""Gradients of the centre cells of layers: of tiny networks, and of the mini backbones one at a time."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from layerboard.zoo.errors import InputError
from layerboard.zoo.features import LayerFeatures, ReceptiveField, Visitor
from layerboard.zoo.features.receptive import receptive_fields
from layerboard.zoo.load.backbone import identity_of
from layerboard.zoo.own.module.objects import OwnBackbone
from layerboard.zoo.registry.find import find
from layerboard.zoo.spec import Layer
from tests.zoo.conftest import Loader
from tests.zoo.reduced import pixels

IMAGES = torch.randn(2, 3, 12, 12, generator=torch.Generator().manual_seed(0))


def fields(network: Callable[[Tensor], Tensor], images: Tensor = IMAGES) -> ReceptiveField:
    """Of all channels of a network that gives a map [batch dim height width]."""

    def forward(images: Tensor, visitor: Visitor) -> None:
        visitor(LayerFeatures(Layer(1), None, network(images).permute(0, 2, 3, 1)))

    (found,) = receptive_fields(forward, images, range)
    return found


def test_one_box_filter_is_seen_as_a_box() -> None:
    box = nn.Conv2d(3, 4, 5, padding=2, bias=False).requires_grad_(False)
    nn.init.constant_(box.weight, -0.2)
    found = fields(box)
    assert found.cells == (12, 12)
    expected = torch.zeros(12, 12)
    expected[4:9, 4:9] = 2 * 3 * 0.2  # two images, three colours
    torch.testing.assert_close(found.strength, expected)


def test_a_tiny_network_agrees_with_one_gradient_at_a_time() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(3, 5, 4, 2), nn.GELU(), nn.Conv2d(5, 6, 3)).requires_grad_(False)
    slow = torch.zeros(12, 12)
    for image in IMAGES:
        one = image.clone().requires_grad_()
        centre = network(one[None])[0, :, 1, 1]
        for value in centre:
            (gradient,) = torch.autograd.grad(value, one, retain_graph=True)
            slow += gradient.abs().sum(0) / len(centre)
    torch.testing.assert_close(fields(network).strength, slow)


def test_what_no_pixel_moves_has_a_field_of_zeros() -> None:
    assert not fields(lambda images: torch.ones(2, 4, 3, 3)).strength.any()
    assert not fields(lambda images: 0 * images).strength.any()
    assert not fields(lambda images: images.new_ones(2, 4, 3, 3).requires_grad_()).strength.any()


@pytest.mark.parametrize(
    ("name", "taps"),
    [("mini-fs", ("attention", "mid", "mlp", "block")), ("mini-resnet", ("branch", "block"))],
)
def test_fields_of_mini_backbones(name: str, taps: tuple[str, ...], kept: Loader) -> None:
    """The sum of fields of single images and channels, of layers in order; a cell sees itself most."""
    backbone = kept(find([name])[0])
    images = pixels(2, 64, 64)
    layers = [Layer(1), *(Layer(2, tap) for tap in taps)]  # type: ignore[arg-type]
    together = backbone.receptive_fields(images, layers[::-1], lambda width: [0, width - 1])
    assert [one.layer for one in together] == layers
    for one in together:
        parts = [
            backbone.receptive_fields(
                image[None], [one.layer], lambda width, place=place: [place * (width - 1)]
            )
            for image in images
            for place in (0, 1)
        ]
        torch.testing.assert_close(one.strength, sum(part[0].strength for part in parts) / 2)
        assert one.strength.shape == (64, 64)
        stride = 64 // one.cells[0]
        strongest = divmod(int(one.strength.argmax()), 64)
        assert max(abs(at - 32 - stride / 2) for at in strongest) <= 2 * stride


def test_a_stream_that_is_no_sum_gets_its_own_gradient() -> None:
    """Places are named like parts of a residual block, but only the first sum holds."""

    def forward(images: Tensor, visitor: Visitor) -> None:
        part = images.permute(0, 2, 3, 1)
        shown = {"attention": part, "mid": 3 * part, "mlp": part, "block": 5 * part}
        visitor(LayerFeatures(Layer(1), None, 2 * part))
        for tap, grid in shown.items():
            visitor(LayerFeatures(Layer(2, tap), None, grid))  # type: ignore[arg-type]

    found = receptive_fields(forward, IMAGES, range)
    assert [float(one.strength.sum()) for one in found] == [4, 2, 6, 2, 10]


def test_the_first_layer_of_a_patch_network_sees_its_own_patch(kept: Loader) -> None:
    (found,) = kept(find(["mini-fs"])[0]).receptive_fields(
        pixels(1, 64, 64), [Layer(0)], lambda width: [0, 5]
    )
    inside = found.strength[32:40, 32:40]
    assert float(inside.sum() / found.strength.sum()) == 1


def test_who_cannot_say_says_why(kept: Loader) -> None:
    spec = find(["mini-fs"])[0]
    backbone = kept(spec)
    assert backbone.fields_refusal() == ""
    with pytest.raises(InputError, match="no layer 13"):
        backbone.receptive_fields(pixels(1, 64, 64), [Layer(13)], range)
    floor = kept(find(["mini-random"])[0])
    with pytest.raises(InputError, match="draws its features"):
        floor.receptive_fields(pixels(1, 64, 64), [Layer(1)], range)
    own = OwnBackbone(spec, identity_of(spec, "own"), floor)
    assert "gives no gradients" in own.fields_refusal()
    with pytest.raises(InputError, match="gives no gradients"):
        own.receptive_fields(pixels(1, 64, 64), [Layer(1)], range)


def test_gradients_are_taken_in_float32_only(loader: Loader) -> None:
    backbone = loader(replace(find(["mini-fs"])[0], dtype="amp-bfloat16"))
    assert "--dtype float32" in backbone.fields_refusal()
