"""Distances, average maps and rollout of planted attention, and slow obvious implementations."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from layerboard.tasks.analyses.metrics import attention as attention_maps
from layerboard.tasks.analyses.metrics.attention import (
    attention_distance,
    cell_distances,
    centre_distance,
    deviation_over_heads,
    deviation_over_queries,
    discard,
    entropy,
    output_map,
    patch_query_map,
    roll,
)
from layerboard.zoo.features import AttentionMaps
from layerboard.zoo.spec import Layer
from tests.tasks.planted import uniform, with_prefix


def distance(attention: Tensor, cells: tuple[int, int], *, unit: bool = True) -> float:
    return float(attention_distance(attention, cell_distances(cells, unit=unit)))


def patch_attention(probabilities: Tensor, prefix_tokens: int) -> Tensor:
    """What the maps of a batch, [images heads tokens tokens], say of patches."""
    side = probabilities.shape[-1] - prefix_tokens
    return AttentionMaps(Layer(1, "probabilities"), probabilities, prefix_tokens, (1, side)).patches


def alike(cells: tuple[int, int]) -> Tensor:
    count = cells[0] * cells[1]
    return torch.full((count, count), 1 / count)


@pytest.mark.parametrize(
    ("side", "expected"), [(2, 0.8536), (7, 0.6016), (8, 0.5909), (14, 0.5601), (16, 0.5551), (28, 0.5404)]
)
def test_uniform_attention_depends_on_the_grid_alone(side: int, expected: float) -> None:
    assert distance(alike((side, side)), (side, side)) == pytest.approx(expected, abs=5e-5)


def test_other_grids() -> None:
    assert distance(alike((2, 4)), (2, 4)) == pytest.approx(0.7696, abs=5e-5)
    assert distance(alike((1, 1)), (1, 1)) == 0
    assert distance(alike((1, 5)), (1, 5)) == pytest.approx(distance(alike((5, 1)), (5, 1)))


def test_pixels_are_the_unit_distance_of_a_square_grid_times_its_extent() -> None:
    attention = torch.rand(3, 49, 49, generator=torch.Generator().manual_seed(0)).softmax(-1)
    unit = attention_distance(attention, cell_distances((7, 7), unit=True))
    cells = attention_distance(attention, cell_distances((7, 7), unit=False))
    torch.testing.assert_close(cells, 6 * unit)


def test_a_large_grid_is_exact() -> None:
    """One float32 sum over all pairs of 45 x 45 cells is off by 5e-5; numpy's number is of float64."""
    side, pairs = 45, torch.arange(45**4, dtype=torch.float64).view(45**2, 45**2)
    attention = ((pairs * 0.61803398875) % 1).square()
    attention = (attention / attention.sum(dim=-1, keepdim=True)).float()
    assert distance(attention, (side, side), unit=False) == pytest.approx(23.457639511767567, rel=1e-7)


def test_prefix_tokens_are_cut_off_and_rows_renormalised() -> None:
    """A head that gives half of its attention to the class token is as far as the other half looks."""
    attention = torch.zeros(1, 1, 2 + 4, 2 + 4, dtype=torch.float16)
    attention[..., 0] = 0.5
    attention[..., 2] = 0.5
    attention[0, 0, 5] = torch.tensor([1, 0, 0, 0, 0, 0])
    patches = patch_attention(attention, 2)
    assert patches.dtype == torch.float32
    assert patches.shape == (1, 1, 4, 4)
    torch.testing.assert_close(patches[0, 0, :3], torch.tensor([[1.0, 0, 0, 0]] * 3))
    assert not patches[0, 0, 3].any()  # nothing is left of a row that looks at prefix tokens alone


def test_several_distances_are_taken_at_once_and_patches_once_for_all_that_look() -> None:
    draw = torch.rand(2, 3, 10, 10, generator=torch.Generator().manual_seed(3)).softmax(-1)
    maps = AttentionMaps(Layer(1, "probabilities"), draw, 1, (3, 3))
    assert maps.patches is maps.patches
    assert maps.of(slice(0, 2)) is maps
    assert maps.of(slice(0, 9)) is maps
    torch.testing.assert_close(maps.of(slice(1, 2)).patches, maps.patches[1:])
    kinds = [cell_distances((3, 3), unit=unit) for unit in (True, False)]
    together = attention_distance(maps.patches, torch.stack(kinds))
    for place, kind in enumerate(kinds):
        torch.testing.assert_close(together[..., place], attention_distance(maps.patches, kind))


def rolled(layers: list[Tensor]) -> Tensor:
    """Rollout of one image through layers [T T]."""
    state = None
    for layer in layers:
        state = roll(layer[None], state)
    assert state is not None
    return state[0]


def test_a_class_token_that_looks_at_patches_that_look_at_themselves() -> None:
    layer = torch.eye(10)
    layer[0] = torch.tensor([0.0] + [1 / 9] * 9)
    depth = 4
    torch.testing.assert_close(output_map(rolled([layer] * depth), 1), torch.full((9,), (1 - 2**-depth) / 9))


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
