"""Measures of attention, beside what `tests.tasks.agreement.attention` decides: sizes, parts and edges."""

import numpy as np
import pytest
import torch
from torch import Tensor

from layerboard.tasks.analyses.metrics import attention as attention_maps
from layerboard.tasks.analyses.metrics.attention import (
    attention_distance,
    cell_distances,
    centre_distance,
    discard,
    entropy,
    patch_deviation,
)
from layerboard.zoo.features import AttentionMaps
from layerboard.zoo.spec import Layer


def distance(attention: Tensor, cells: tuple[int, int], *, unit: bool = True) -> float:
    return float(attention_distance(attention, cell_distances(cells, unit=unit)))


def test_a_large_grid_is_exact() -> None:
    """One float32 sum over all pairs of 45 x 45 cells is off by 5e-5; numpy's number is of float64."""
    side, pairs = 45, torch.arange(45**4, dtype=torch.float64).view(45**2, 45**2)
    attention = ((pairs * 0.61803398875) % 1).square()
    attention = (attention / attention.sum(dim=-1, keepdim=True)).float()
    assert distance(attention, (side, side), unit=False) == pytest.approx(23.457639511767567, rel=1e-7)


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


def test_of_one_head_patch_or_token_nothing_varies_and_an_empty_map_is_nowhere() -> None:
    maps = torch.full((1, 2, 2), 0.5)
    assert torch.isnan(patch_deviation(maps, 1, "heads"))
    assert torch.isnan(patch_deviation(maps, 1, "queries")).all()
    assert float(entropy(torch.ones(1, 1))) == 0
    assert centre_distance(np.ones(1), (1, 1)) == 0
    assert np.isnan(centre_distance(np.zeros(4), (2, 2)))


@pytest.mark.parametrize("size", [1, 4 * 2 * 3 * 26**2, 1 << 30])
def test_maps_measured_a_few_at_a_time_give_the_same_bits(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    maps = torch.rand(5, 3, 26, 26, generator=torch.Generator().manual_seed(0)).softmax(dim=-1)

    def found() -> list[torch.Tensor]:
        return [entropy(maps), patch_deviation(maps, 1, "queries"), patch_deviation(maps, 1, "heads")]

    expected = found()
    monkeypatch.setattr(attention_maps, "PART_BYTES", size)
    assert [one.shape for one in found()] == [(5, 3, 26), (5, 3), (5,)]
    assert all(map(torch.equal, found(), expected))
