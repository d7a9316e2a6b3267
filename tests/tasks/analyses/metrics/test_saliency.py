"""Overlaps of maps with masks: planted maps, masks by hand, and the released rules written out."""

import numpy as np
import pytest
import torch

from layerboard.tasks.analyses.saliency import (
    exact_cell_shares,
    half_covered,
    held_out_best,
    marked,
    saliency_iou,
    touched,
)
from layerboard.tasks.framework.protocols import PAPER, STANDARD
from layerboard.tasks.framework.registry import config_of

CLEAN, RELEASED = config_of(STANDARD, "saliency").threshold, config_of(PAPER, "saliency").threshold


def obvious_marks(values: list[float]) -> list[bool]:
    """The released code's rule with a stable order: the last ones whose cumulative share exceeds 0.4."""
    total, found, sum_ = sum(values), [False] * len(values), 0.0
    for place in sorted(range(len(values)), key=lambda place: values[place]):
        sum_ += values[place] / total
        found[place] = sum_ > 0.4
    return found


def test_rounding_decides_nothing_where_a_sum_is_the_limit() -> None:
    for count in (100, 400):
        assert marked(torch.full((count,), 1 / count), CLEAN).all()


def test_the_released_rule_is_an_obvious_one_on_random_maps_with_ties() -> None:
    generator = torch.Generator().manual_seed(1)
    maps = torch.cat(
        [torch.rand(20, 49, generator=generator), torch.randint(1, 4, (20, 49), generator=generator)]
    )
    expected = [obvious_marks(row) for row in maps.double().tolist()]
    assert marked(maps, RELEASED).tolist() == expected
    more = marked(maps, CLEAN)
    assert (more | ~torch.tensor(expected)).all()  # equal ones are kept, too
    for row, kept in zip(maps, more, strict=True):
        assert kept.equal(row >= row[kept].min())


def test_maps_of_nothing_predict_nothing_and_broken_ones_have_no_value() -> None:
    truth = torch.ones(2, 4, dtype=torch.bool)
    maps = torch.zeros(2, 3, 4)
    maps[1, 1, 2] = torch.nan
    maps[1, 2, 2] = torch.inf
    found = saliency_iou(maps, truth, CLEAN)
    assert found[0].tolist() == [0, 0, 0]
    assert found[1].isnan().tolist() == [False, True, True]
    assert found.dtype == torch.float64


def test_held_out_choices_are_an_obvious_implementation_s() -> None:
    values = np.random.default_rng(0).random((7, 3)).round(1)
    generator = np.random.Generator(np.random.PCG64(5))
    expected = []
    for _ in range(20):
        order = generator.permutation(7)
        first, second = order[:3], order[3:]
        best = max(range(3), key=lambda head: (round(values[first, head].mean(), 9), -head))
        expected.append(values[second, best].mean())
    assert held_out_best(values, 20, 5) == pytest.approx(np.mean(expected))
    assert np.isnan(held_out_best(values[:1], 20, 5))


def test_shares_of_cells_are_exact() -> None:
    mask = np.zeros((4, 6), np.uint8)
    mask[1:3, 2:5] = 1
    edges = np.array([0.0, 2, 4]), np.array([0.0, 3, 6])
    assert exact_cell_shares(mask, *edges).ravel().tolist() == pytest.approx([1 / 6, 2 / 6, 1 / 6, 2 / 6])
    # a cell of one and a half pixels, and one that reaches beyond the image
    found = exact_cell_shares(mask, np.array([0.5, 2.0, 5.0]), np.array([1.0, 2.5]))
    assert found.ravel().tolist() == pytest.approx([0.5 * 1 / 2.25, 0.5 * 1 / 4.5])


def test_cells_that_count() -> None:
    shares = np.array([[0.5, 0.49], [0.1, 1.0]])
    assert half_covered(shares).tolist() == [[True, False], [False, True]]
    # the largest share of a small object; the first of equal ones, also where rounding parts them
    assert half_covered(np.array([[0.1, 0.2], [0.2 + 1e-13, 0]])).tolist() == [[False, True], [False, False]]
    assert not half_covered(np.zeros((2, 2))).any()


def test_no_mask_leaves_no_trace_and_grids_need_not_be_square() -> None:
    assert not touched([], (3, 3)).any()
    assert not touched([np.zeros((8, 8), np.uint8)], (2, 3)).any()
    assert touched([np.ones((8, 12), np.uint8)], (2, 3)).shape == (2, 3)
