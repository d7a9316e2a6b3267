"""Weights that backbones show without an image: filters, position embeddings, relative position biases."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from layerboard.zoo.features import Weights
from layerboard.zoo.features.hooked import HookedBackbone
from layerboard.zoo.load.infer import infer
from layerboard.zoo.registry.find import find
from layerboard.zoo.spec import Layer
from tests.zoo.conftest import Loader, Small
from tests.zoo.features.test_taps import FAMILIES, bias_of, build
from tests.zoo.load.test_infer import save
from tests.zoo.reduced import normalised, pixels

WITHOUT_POSITIONS = {"capi", "mlcd", "beit", "beit-shared", "beit-unscaled", "data2vec", "aimv2-native"}
NORMED = ("aimv2", "pe")
"""Families that normalise patches, or patches and positions, before the first block."""

WITHOUT_POSITIONS |= {"dinov3", "dinov3-gated"}
BIASES = {"beit": 2, "beit-shared": 1, "data2vec": 1}
"""How many tables of relative positions a family of two blocks has."""


def patches_of(backbone: HookedBackbone, images: Tensor, filters: Tensor) -> Tensor:
    """What patch filters make of normalised images, without a bias, [batch dim rows columns]."""
    side = filters.shape[-1]
    return nn.functional.conv2d(normalised(backbone.spec, images), filters, stride=side)


@pytest.mark.parametrize("family", [family for family in FAMILIES if family != "radio"])
def test_weights_of_transformers(family: str, tmp_path: Path, loader: Loader) -> None:
    backbone = build(family, tmp_path, loader)
    weights = backbone.weights()
    images = pixels(2, 56, 56)
    assert weights.filters is not None
    assert weights.filters.shape == (32, 3, 14, 14)
    conv = next(module for module in backbone._network.body.modules() if isinstance(module, nn.Conv2d))
    seen: list[Tensor] = []
    watched = (conv, backbone._network.body.get_submodule("embeddings"))
    hooks = [each.register_forward_hook(lambda _, __, output: seen.append(output)) for each in watched]
    backbone.visit(images, lambda _: None, [Layer(0)])
    for hook in hooks:
        hook.remove()
    constant = torch.zeros(32) if conv.bias is None else conv.bias
    embedded = patches_of(backbone, images, weights.filters) + constant[:, None, None]
    torch.testing.assert_close(embedded, seen[0], rtol=1e-4, atol=1e-4)
    assert (weights.positions is None) == (family in WITHOUT_POSITIONS)
    if weights.positions is not None and not family.startswith(NORMED):
        found = seen[0].permute(0, 2, 3, 1) + weights.positions
        torch.testing.assert_close(found.flatten(1, 2), seen[1][:, -16:], rtol=1e-4, atol=1e-4)
    if weights.positions is not None:
        assert weights.positions.shape == (4, 4, 32)
    bias = weights.position_bias
    assert (0 if bias is None else len(bias)) == BIASES.get(family, 0)
    if bias is not None:
        assert bias.shape == (BIASES[family], 4, 7, 7)
        whole = bias_of(backbone, backbone._network.blocks[0], (4, 4))[0, :, 1:, 1:].view(4, 4, 4, 4, 4)
        assert torch.equal(bias[0][:, 3 + 2, 3 - 1], whole[:, 2, 0, 0, 1])
        assert torch.equal(bias[0][:, 3 - 3, 3 + 3], whole[:, 0, 3, 3, 0])
    missing = {name for name in ("filters", "positions", "position_bias") if getattr(weights, name) is None}
    assert weights.reason.keys() == missing
    assert all(text.endswith(".") and backbone.spec.name in text for text in weights.reason.values())


def test_weights_of_radio(tmp_path: Path, loader: Loader) -> None:
    """Patches are multiplied by a matrix, whose rows are filters; its table is larger than the grid."""
    backbone = build("radio", tmp_path, loader)
    weights, embeddings = backbone.weights(), backbone._network.body.get_submodule("embeddings")
    assert weights.filters is not None
    assert weights.positions is not None
    images = pixels(2, 112, 112)
    seen: list[Tensor] = []
    hook = embeddings.register_forward_hook(lambda _, inputs, output: seen.extend((inputs[0], output)))
    backbone.visit(images, lambda _: None, [Layer(0)])
    hook.remove()
    found = nn.functional.conv2d(seen[0], weights.filters, stride=14).permute(0, 2, 3, 1) + weights.positions
    torch.testing.assert_close(found.flatten(1, 2), seen[1][:, -64:], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "side"),
    [("resnet50", 7), ("bit-50", 7), ("convnext-t", 4), ("dinov3-convnext-t", 4), ("swin-t", 4)],
)
def test_filters_of_stems_and_no_bias_of_windows(name: str, side: int, small: Small, loader: Loader) -> None:
    backbone = loader(small(name).spec)
    weights = backbone.weights()
    assert weights.filters is not None
    assert weights.filters.shape[1:] == (3, side, side)
    assert (weights.positions, weights.position_bias) == (None, None)
    assert set(weights.reason) == {"positions", "position_bias"}


def test_standardised_filters(small: Small, loader: Loader) -> None:
    backbone = loader(small("bit-50").spec)
    assert isinstance(backbone, HookedBackbone)
    conv = next(module for module in backbone._network.body.modules() if isinstance(module, nn.Conv2d))
    filters = backbone.weights().filters
    assert filters is not None
    image = torch.randn(1, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    expected = conv(image)
    padded = nn.functional.conv2d(image, filters, conv.bias, conv.stride, conv.padding)
    torch.testing.assert_close(padded, expected, rtol=1e-4, atol=1e-4)


def test_of_a_grid_that_is_not_square(tmp_path: Path, loader: Loader) -> None:
    save(tmp_path, "Dinov2Model")
    backbone = loader(infer(str(tmp_path), None, None))
    assert isinstance(backbone, HookedBackbone)
    table = nn.Parameter(torch.zeros(1, 1 + 4 * 6, 32))
    backbone._network.body.get_submodule("embeddings").register_parameter("position_embeddings", table)
    weights = backbone.weights()
    assert weights.positions is None
    assert "no trained embeddings of a square grid" in weights.reason["positions"]


def test_the_floor_has_none(kept: Loader) -> None:
    reason = "mini-random has no weights."
    expected = Weights(None, None, None, dict.fromkeys(("filters", "positions", "position_bias"), reason))
    assert kept(find(["mini-random"])[0]).weights() == expected
