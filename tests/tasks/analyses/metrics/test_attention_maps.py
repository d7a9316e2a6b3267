"""Average maps, deviations and entropy: planted attention, and a slow obvious implementation."""

import math

import numpy as np
import pytest
import torch

from layerboard.tasks.analyses.metrics import attention as attention_maps
from layerboard.tasks.analyses.metrics.attention import (
    centre_distance,
    deviation_over_heads,
    deviation_over_queries,
    entropy,
    patch_query_map,
)
from tests.tasks.planted import uniform, with_prefix


@pytest.mark.parametrize("size", [1, 4 * 2 * 3 * 26**2, 1 << 30])
def test_maps_measured_a_few_at_a_time_give_the_same_bits(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    maps = torch.rand(5, 3, 26, 26, generator=torch.Generator().manual_seed(0)).softmax(dim=-1)

    def found() -> list[torch.Tensor]:
        return [entropy(maps), deviation_over_queries(maps, 1), deviation_over_heads(maps, 1)]

    expected = found()
    monkeypatch.setattr(attention_maps, "PART_BYTES", size)
    assert [one.shape for one in found()] == [(5, 3, 26), (5, 3), (5,)]
    assert all(map(torch.equal, found(), expected))


@pytest.mark.parametrize(("side", "expected"), [(8, 0.4348), (14, 0.4112), (16, 0.4075)])
def test_a_uniform_map_has_its_distance_from_the_centre(side: int, expected: float) -> None:
    assert centre_distance(np.ones(side**2), (side, side)) == pytest.approx(expected, abs=5e-5)


def test_centre_distances_of_other_maps() -> None:
    middle = np.zeros((2, 15))
    middle[0, 7] = 0.3  # the middle of 3 x 5
    middle[1, 0] = 0.2
    assert centre_distance(middle, (3, 5)) == pytest.approx([0, math.sqrt(0.5)])
    assert np.isnan(centre_distance(np.zeros(4), (2, 2)))
    assert centre_distance(np.ones(1), (1, 1)) == 0
    assert centre_distance(np.ones(4), (1, 4)) == pytest.approx((0.5 + 1 / 6) / 2)


def test_deviations_of_uniform_and_identity() -> None:
    maps = with_prefix(torch.stack([uniform(14), torch.eye(196)]))
    found = deviation_over_queries(maps, 1)
    assert found[0] == pytest.approx(0, abs=1e-7)
    assert found[1] == pytest.approx(0.0714, abs=5e-5)
    assert found[1] == pytest.approx(1 / 14)
    assert deviation_over_heads(maps[[0, 0, 0]], 1) == pytest.approx(0, abs=1e-8)
    assert deviation_over_heads(maps, 1) > 0
    assert torch.isnan(deviation_over_heads(maps[:1], 1))
    assert torch.isnan(deviation_over_queries(torch.ones(2, 2, 2) / 2, 1)).all()


def test_deviations_are_those_of_numpy_and_rows_are_not_renormalised() -> None:
    maps = torch.rand(3, 4, 12, 12, generator=torch.Generator().manual_seed(0)).softmax(-1)
    inside = maps[..., 2:, 2:].double().numpy()
    over_queries = inside.std(axis=2, ddof=1).mean(axis=-1)
    over_heads = inside.std(axis=1, ddof=1).mean(axis=(-1, -2))
    np.testing.assert_allclose(deviation_over_queries(maps, 2), over_queries, rtol=1e-5)
    np.testing.assert_allclose(deviation_over_heads(maps, 2), over_heads, rtol=1e-5)


def test_patches_alone_are_averaged_over() -> None:
    maps = torch.zeros(1, 1, 4, 4, dtype=torch.float16)
    maps[..., 0, 0] = 1
    maps[..., 1:, 2] = 0.75
    found = patch_query_map(maps, 1)
    assert found.dtype == torch.float32
    assert found.tolist() == [[[0, 0, 0.75, 0]]]


def test_entropies() -> None:
    tokens = 197
    half = torch.zeros(tokens)
    half[:2] = 0.5
    rows = torch.stack([torch.full((tokens,), 1 / tokens), torch.eye(tokens)[3], half])
    assert entropy(rows).tolist() == pytest.approx([1, 0, 0.1312], abs=5e-5)
    assert float(entropy(rows)[0]) * math.log(tokens) == pytest.approx(5.2832, abs=5e-5)
    assert float(entropy(half[:65])) == pytest.approx(0.1660, abs=5e-5)
    assert float(entropy(torch.ones(1, 1))) == 0
