"""Counts of weights, operations and bytes, against networks whose numbers are plain."""

import pytest
import torch
from torch import nn

from layerboard.zoo.features.census import Census, count_up_to
from layerboard.zoo.registry.find import find
from layerboard.zoo.spec import Layer
from tests.benchmark.doubles import CountingBackbone
from tests.zoo.conftest import Loader, Small
from tests.zoo.reduced import pixels


def test_weights_are_counted_once_and_only_if_they_are_read() -> None:
    first, unused = nn.Linear(4, 3), nn.Linear(3, 2)
    with torch.no_grad(), Census() as read:
        first(first(torch.ones(5, 4)) @ first.weight)
    assert read.count == 4 * 3 + 3
    assert id(unused.weight) not in read.weights


def test_bytes_are_those_of_tensors_that_are_alive_at_once() -> None:
    weight = nn.Parameter(torch.ones(10), requires_grad=False)
    with torch.no_grad(), Census() as held:
        for _ in range(5):
            big = torch.ones(1000)  # 4000 bytes, given back each time
            small = big[:10] * weight  # a view, and 40 bytes
            del big, small
    assert held.peak == 4000 + 40 + 40
    with Census() as held:
        pass
    assert held.peak == 0


def test_a_mini_vit_has_the_operations_of_its_products(kept: Loader) -> None:
    spec = find(["mini-fs"])[0]
    layers = tuple(layer for layer in spec.layers if layer.index > 0)
    found = count_up_to(kept(spec), pixels(1, 64, 64), layers)
    with torch.inference_mode():
        assert count_up_to(kept(spec), pixels(1, 64, 64), layers) == found
    tokens, width, mlp = 65, 96, 384
    embedding = 2 * 64 * width * 3 * 8 * 8
    block = 2 * tokens * width * (4 * width + 2 * mlp) + 2 * 2 * tokens * tokens * width
    assert [operations for _, operations in found.values()][:12] == [
        embedding + depth * block for depth in range(1, 13)
    ]
    in_block = 4 * (width * width + width) + 2 * width * mlp + mlp + width + 4 * width
    first = width * (3 * 64 + 1) + width + tokens * width
    assert found[Layer(3)][0] == first + 3 * in_block
    assert found[Layer(12, "final")][0] == spec.parameters == first + 12 * in_block + 2 * width


@pytest.mark.parametrize("name", ["clip-b32", "beit-b16", "resnet50", "swin-t"])
def test_counts_grow_up_to_all_weights(name: str, small: Small, loader: Loader) -> None:
    backbone = loader(small(name).spec)
    spec = backbone.spec
    layers = tuple(layer for layer in spec.layers if layer.index > 0)
    found = count_up_to(backbone, pixels(1, spec.input_size, spec.input_size), layers)
    assert tuple(found) == layers
    weights, operations = zip(*found.values(), strict=True)
    assert list(weights) == sorted(weights)
    assert list(operations) == sorted(operations)
    assert 0 < operations[0] < operations[spec.depth - 1]
    body, norm = backbone._network.body, backbone._network.final_norm  # type: ignore[attr-defined]
    every = [*body.parameters(), *([] if norm is None else norm.parameters())]
    unused = sum({id(one): one.numel() for one in every}.values()) - weights[-1]
    assert 0 <= unused <= 2 * spec.width  # a mask token, or a norm after the pooling, is no part of it


def test_what_is_no_network_of_torch_has_no_counts() -> None:
    backbone = CountingBackbone()
    found = count_up_to(backbone, torch.zeros(1, 3, 32, 32, dtype=torch.uint8), (Layer(1), Layer(3)))
    assert found == {Layer(1): (0, 0), Layer(3): (0, 0)}
