"""Heads that are a layer of a ConvNet, or have nothing to do with it."""

import numpy as np
import pytest
import torch

from layerboard.tasks.analyses.locality import subsets_of, window_size, windows
from layerboard.tasks.similarity.metric import gather, gram_matrix, u_centred
from tests.tasks.agreement.similarity import cka


def hsic(outputs: torch.Tensor, blocks: torch.Tensor):  # type: ignore[no-untyped-def]
    """The three tables of HSIC of outputs [heads n dim] and blocks [blocks n dim]."""
    one, other = (u_centred(gram_matrix(each)) for each in (outputs, blocks))
    found = gather(one, one), gather(one, other), gather(other, other).diagonal()
    return tuple(each.numpy() for each in found)


def orthogonal_heads(count: int, samples: int = 64) -> torch.Tensor:
    """Heads whose Gram matrices share nothing at all and have one norm: [heads samples 1]."""
    values = torch.zeros(count, samples, 1, dtype=torch.float64)
    for head in range(count):
        values[head, 4 * head : 4 * head + 4, 0] = torch.tensor([1.0, -1.0, 1.0, -1.0])
    return values


def test_a_pair_of_independent_heads_is_half_of_one_of_them() -> None:
    heads = orthogonal_heads(2)
    layer = heads[:1]
    assert cka(heads[0], layer[0]) == pytest.approx(1)
    assert cka(torch.cat([heads[0], heads[1]], dim=1), layer[0]) == pytest.approx(2**-0.5, abs=2e-3)
    assert cka(heads[1], layer[0]) == pytest.approx(0, abs=2e-3)
    found = subsets_of(np.array([1.0, 2.0]), *hsic(heads, layer))
    assert found.heads.tolist() == [[0], [1]]
    np.testing.assert_allclose(found.cka[:, 0], [1, 0], atol=2e-3)
    assert np.isnan(found.rho).all()  # two subsets have no rank correlation


def test_windows_of_a_quarter_of_the_heads_in_the_order_of_their_distance() -> None:
    assert [window_size(heads) for heads in (1, 3, 4, 7, 8, 12, 16)] == [1, 1, 1, 1, 2, 3, 4]
    distance = np.array([8.0, 1, 7, 2, 6, 3, 5, 4])
    assert windows(distance)[:3].tolist() == [[1, 3], [3, 5], [5, 7]]
    assert windows(distance).shape == (7, 2)


def test_windows_equal_the_features_of_their_heads_side_by_side() -> None:
    generator = torch.Generator().manual_seed(3)
    heads = torch.randn(8, 40, 5, generator=generator, dtype=torch.float64)
    blocks = torch.randn(2, 40, 6, generator=generator, dtype=torch.float64) + heads[:2, :, :1]
    distance = np.random.default_rng(0).uniform(size=8)
    found = subsets_of(distance, *hsic(heads, blocks))
    for row, chosen in enumerate(found.heads):
        together = torch.cat([heads[head] for head in chosen], dim=1)
        expected = [cka(together, block) for block in blocks]
        np.testing.assert_allclose(found.cka[row], expected, atol=1e-9)
        assert found.distance[row] == pytest.approx(distance[chosen].mean())


def test_what_does_not_vary_has_no_value() -> None:
    heads = orthogonal_heads(4)
    own, across, blocks = hsic(heads, torch.zeros_like(heads[:1]))
    found = subsets_of(np.arange(4.0), own, across, blocks)
    assert np.isnan(found.cka).all()
    assert np.isnan(found.rho).all()
    alike = subsets_of(np.ones(4), *hsic(heads, heads[:1]))
    assert np.isnan(alike.rho).all()
    broken = subsets_of(np.arange(4.0), own * np.nan, across, blocks)
    assert np.isnan(broken.cka).all()
    single = subsets_of(np.ones(1), *hsic(heads[:1], heads[:1]))
    assert single.cka.tolist() == [[pytest.approx(1)]]
    assert np.isnan(single.rho).all()
