"""Attention distances against planted attention whose distances are known."""

import pytest
import torch
from torch import Tensor

from layerboard.tasks.analyses.metrics.attention import attention_distance, cell_distances
from layerboard.zoo.features import AttentionMaps
from layerboard.zoo.spec import Layer


def distance(attention: Tensor, cells: tuple[int, int], *, unit: bool = True) -> float:
    return float(attention_distance(attention, cell_distances(cells, unit=unit)))


def patch_attention(probabilities: Tensor, prefix_tokens: int) -> Tensor:
    """What the maps of a batch, [images heads tokens tokens], say of patches."""
    side = probabilities.shape[-1] - prefix_tokens
    return AttentionMaps(Layer(1, "probabilities"), probabilities, prefix_tokens, (1, side)).patches


def uniform(cells: tuple[int, int]) -> Tensor:
    count = cells[0] * cells[1]
    return torch.full((count, count), 1 / count)


def steps(side: int, *, cyclic: bool) -> Tensor:
    """Every patch looks one step to the right; the last column at itself, or at the first."""
    attention = torch.zeros(side * side, side * side)
    for row in range(side):
        for column in range(side):
            target = (column + 1) % side if cyclic else min(column + 1, side - 1)
            attention[row * side + column, row * side + target] = 1
    return attention


@pytest.mark.parametrize(
    ("side", "expected"), [(2, 0.8536), (7, 0.6016), (8, 0.5909), (14, 0.5601), (16, 0.5551), (28, 0.5404)]
)
def test_uniform_attention_depends_on_the_grid_alone(side: int, expected: float) -> None:
    assert distance(uniform((side, side)), (side, side)) == pytest.approx(expected, abs=5e-5)


def test_planted_heads() -> None:
    side, count = 14, 196
    cells = (side, side)
    corner = torch.zeros(count, count)
    corner[:, 0] = 1
    assert distance(torch.eye(count), cells) == 0
    assert distance(steps(side, cyclic=False), cells) == pytest.approx(1 / side)
    assert distance(steps(side, cyclic=True), cells) == pytest.approx(2 / side)
    assert distance(corner, cells) == pytest.approx(0.7742, abs=5e-5)


def test_other_grids() -> None:
    assert distance(uniform((2, 4)), (2, 4)) == pytest.approx(0.7696, abs=5e-5)
    assert distance(uniform((1, 1)), (1, 1)) == 0
    assert distance(uniform((1, 5)), (1, 5)) == pytest.approx(distance(uniform((5, 1)), (5, 1)))


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


def test_a_slow_obvious_implementation_says_the_same() -> None:
    cells, prefix = (3, 5), 1
    attention = torch.rand(2, 4, 16, 16, generator=torch.Generator().manual_seed(2)).softmax(-1)
    found = attention_distance(patch_attention(attention, prefix), cell_distances(cells, unit=True))
    places = [(row / 2, column / 4) for row in range(3) for column in range(5)]
    for image in range(2):
        for head in range(4):
            total = 0.0
            for query, (row, column) in enumerate(places):
                weights = attention[image, head, 1 + query, 1:].double()
                weights = weights / weights.sum()
                for key, (other_row, other_column) in enumerate(places):
                    gap = ((row - other_row) ** 2 + (column - other_column) ** 2) ** 0.5
                    total += float(weights[key]) * gap / 15
            assert float(found[image, head]) == pytest.approx(total, abs=1e-6)


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
