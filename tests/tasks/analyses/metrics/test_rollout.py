"""Attention rollout of planted layers, and of random ones by a slow obvious implementation."""

from math import comb

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from layerboard.tasks.analyses.metrics.attention import Fusion, discard, fuse_heads, output_map, roll


def rolled(layers: list[Tensor]) -> Tensor:
    """Rollout of one image through layers [T T]."""
    state = None
    for layer in layers:
        state = roll(layer[None], state)
    assert state is not None
    return state[0]


def obvious(layers: NDArray[np.float64], fusion: Fusion, share: float) -> NDArray[np.float64]:
    """Rollout of [layers heads T T] written out, double precision."""
    tokens = layers.shape[-1]
    state = np.eye(tokens)
    for heads in layers:
        fused = getattr(np, fusion)(heads, axis=0)
        least = np.sort(fused.ravel())[int(share * fused.size)]
        kept = np.where(fused < least, 0, fused)
        kept[0, 0] = fused[0, 0]
        mixed = (kept + np.eye(tokens)) / 2
        state = mixed / mixed.sum(axis=1, keepdims=True) @ state
    return state


@pytest.mark.parametrize("fusion", ["mean", "max", "min"])
@pytest.mark.parametrize("share", [0, 0.9])
def test_an_obvious_implementation_says_the_same(fusion: Fusion, share: float) -> None:
    layers = torch.rand(3, 2, 4, 11, 11, generator=torch.Generator().manual_seed(0)).mul(4).softmax(-1)
    state = None
    for layer in layers:
        state = roll(discard(fuse_heads(layer, fusion), share), state)
    assert state is not None
    for image in range(2):
        expected = obvious(layers[:, image].double().numpy(), fusion, share)
        np.testing.assert_allclose(state[image], expected, atol=1e-6)
    torch.testing.assert_close(state.sum(-1), torch.ones(2, 11))


def test_uniform_layers() -> None:
    tokens, depth = 197, 12
    found = rolled([torch.full((tokens, tokens), 1 / tokens)] * depth)
    assert float(found[0, 1]) == pytest.approx(0.0050749, abs=5e-8)
    assert float(found[0, 0]) == pytest.approx(0.0053190, abs=5e-8)
    assert float(found[0, 1]) == pytest.approx((1 - 2**-depth) / tokens, rel=1e-5)


def test_identity_keeps_everything_in_its_place() -> None:
    found = rolled([torch.eye(5)] * 3)
    torch.testing.assert_close(found, torch.eye(5))
    assert output_map(found, 1).sum() == 0


def test_a_class_token_that_looks_at_patches_that_look_at_themselves() -> None:
    layer = torch.eye(10)
    layer[0] = torch.tensor([0.0] + [1 / 9] * 9)
    depth = 4
    torch.testing.assert_close(output_map(rolled([layer] * depth), 1), torch.full((9,), (1 - 2**-depth) / 9))


def test_cyclic_shifts_are_binomial() -> None:
    depth = 5
    found = rolled([torch.eye(8).roll(1, dims=1)] * depth)
    expected = [comb(depth, distance) / 2**depth for distance in range(depth + 1)] + [0, 0]
    assert found[0].tolist() == pytest.approx(expected)


@pytest.mark.parametrize(
    ("fusion", "first", "others"), [("mean", 0.8, 0.05), ("max", 0.7143, 0.0714), ("min", 1, 0)]
)
def test_fusions_of_an_identity_and_a_uniform_head(fusion: Fusion, first: float, others: float) -> None:
    heads = torch.stack([torch.eye(5), torch.full((5, 5), 0.2)])
    # the smallest of the two is 0.2 on the diagonal, and 0 elsewhere
    row = rolled([fuse_heads(heads, fusion)])[0]
    assert row.tolist() == pytest.approx([first] + [others] * 4, abs=5e-5)


def test_a_row_that_gives_nothing_keeps_what_it_has() -> None:
    layers = list(torch.rand(2, 6, 6, generator=torch.Generator().manual_seed(1)).softmax(-1))
    layers[1][2] = 0
    torch.testing.assert_close(rolled(layers)[2], rolled(layers[:1])[2])


def test_discards_treat_equal_entries_alike_and_spare_the_class_token() -> None:
    fused = torch.tensor([[[0.1, 0.5, 0.4], [0.2, 0.2, 0.6], [0.2, 0.7, 0.3]]])
    assert discard(fused, 0) is fused
    found = discard(fused, 4 / 9)  # rank 4 of 0.1 0.2 0.2 0.2 0.3 0.4 0.5 0.6 0.7
    assert found[0].flatten().tolist() == pytest.approx([0.1, 0.5, 0.4, 0, 0, 0.6, 0, 0.7, 0.3])
    assert torch.equal(
        discard(fused, 2 / 9),
        torch.where(fused < 0.2, 0, fused).index_put(
            (torch.tensor(0), torch.tensor(0), torch.tensor(0)), torch.tensor(0.1)
        ),
    )
    uniform = torch.full((2, 4, 4), 0.25)
    assert torch.equal(discard(uniform, 0.9), uniform)


def test_without_a_class_token_the_patches_are_averaged() -> None:
    state = torch.rand(2, 6, 6, generator=torch.Generator().manual_seed(2))
    assert torch.equal(output_map(state, 0), state.mean(1))
    assert torch.equal(output_map(state, 2), state[:, 0, 2:])
