"""What a spec says of the inside of blocks, and the sentences where a layer is not there."""

import re
from dataclasses import replace
from typing import get_args

import pytest
import torch

from layerboard.zoo.features import AttentionMaps
from layerboard.zoo.features.layers import unknown_layer
from layerboard.zoo.registry.find import find
from layerboard.zoo.spec import (
    CONVNET_TAPS,
    SUBLAYER_TAPS,
    TRANSFORMER_TAPS,
    WHOLE_BACKBONE,
    BackboneSpec,
    Layer,
    Tap,
)
from layerboard.zoo.spec.origin import MODULE, OBJECT

ORDER = (
    *("input", "norm1", "query", "key", "value", "probabilities", "heads", "attention", "mid", "norm2"),
    *("mlp_hidden", "mlp", "skip", "branch", "block", "block-normed", "final"),
)


def spec_of(name: str) -> BackboneSpec:
    return find([name])[0]


def test_the_order_of_a_forward() -> None:
    layers = [Layer(index, tap) for index in (2, 1) for tap in sorted(get_args(Tap))]
    assert [layer.tap for layer in sorted(layers, key=lambda layer: layer.place)] == [*ORDER, *ORDER]
    assert set(SUBLAYER_TAPS) == {*ORDER} - {"probabilities", "block", "block-normed", "final"}


@pytest.mark.parametrize(
    ("name", "taps"),
    [
        ("dino-s16", TRANSFORMER_TAPS),
        ("resnet50", CONVNET_TAPS),
        ("swin-t", TRANSFORMER_TAPS),
        ("mini-random", ()),
    ],
)
def test_what_is_inside(name: str, taps: tuple[Tap, ...]) -> None:
    spec = spec_of(name)
    assert spec.inside == taps
    for tap in SUBLAYER_TAPS:
        assert [spec.has(Layer(index, tap)) for index in (0, 1, spec.depth, spec.depth + 1)] == [
            False,
            tap in taps,
            tap in taps,
            False,
        ]
    assert spec.has(Layer(1, "probabilities")) == (spec.heads is not None)
    assert not spec.has(WHOLE_BACKBONE)


@pytest.mark.parametrize(
    ("name", "first"), [("dino-s16", 1), ("swin-t", 11), ("resnet50", 0), ("mini-random", 0)]
)
def test_blocks_behind_the_final_norm(name: str, first: int) -> None:
    """From the first block on that has the width of the last; 0 for no norm."""
    spec = spec_of(name)
    blocks = [index for index in range(spec.depth + 2) if spec.has(Layer(index, "block-normed"))]
    assert blocks == [*(range(first, spec.depth + 1) if first else ())]
    assert ("block-normed" in spec.read) == bool(first)
    assert "block-normed" not in replace(spec, origin=OBJECT).read


def test_own_networks_have_the_taps_that_were_found() -> None:
    own = replace(spec_of("resnet50"), origin=MODULE)
    assert own.inside == ()
    assert not own.has(Layer(1, "skip"))
    assert replace(own, taps=("mlp",)).has(Layer(1, "mlp"))


@pytest.mark.parametrize(
    ("name", "layer", "ending"),
    [
        ("mini-fs", Layer(13), "12, final, and input, norm1, .*, mlp_hidden and mlp of every block."),
        ("mini-fs", Layer(1, "skip"), "12, final, and input, norm1, .*, mlp_hidden and mlp of every block."),
        ("mini-resnet", Layer(1, "mid"), "12, and input, skip and branch of every block."),
        ("mini-random", Layer(1, "mid"), r"9, 10\."),
    ],
)
def test_sentences(name: str, layer: Layer, ending: str) -> None:
    sentence = unknown_layer(spec_of(name), [Layer(1), layer])
    assert re.fullmatch(f"{name} has no layer {layer}; its layers are 0, 1, .*{ending}", sentence)


def test_attention_between_patches_is_computed_once() -> None:
    """Prefix tokens are cut off, rows sum to 1 again, and a row that gives nothing to patches stays zero."""
    maps = AttentionMaps(
        Layer(1, "probabilities"),
        torch.tensor([[[[0.4, 0.6, 0.0], [0.5, 0.1, 0.4], [1.0, 0.0, 0.0]]]] * 3, dtype=torch.bfloat16),
        1,
        (1, 2),
    )
    expected = torch.tensor([[[[0.2, 0.8], [0.0, 0.0]]]] * 3)
    torch.testing.assert_close(maps.patches, expected, rtol=0.01, atol=0)
    assert maps.patches.dtype == torch.float32
    assert maps.patches is maps.patches
    for every in (slice(None), slice(0, 3), slice(0, 9), slice(-3, None)):
        assert maps.of(every) is maps
    part = maps.of(slice(1, 3))
    assert torch.equal(part.patches, maps.patches[1:])
    assert part.probabilities.data_ptr() == maps.probabilities[1].data_ptr()
