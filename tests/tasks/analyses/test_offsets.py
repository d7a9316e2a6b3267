"""Attention by offset: planted heads, their offsets and classes, and a slow obvious implementation."""

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from layerboard.tasks.analyses.attention_maps import (
    aligned_map,
    average_offset,
    head_offset,
    offset_index,
    reachable,
)
from tests.tasks.planted import corner, cyclic, right, uniform

Floats = NDArray[np.float64]


def aligned(attention: Tensor, cells: tuple[int, int]) -> Floats:
    """The aligned map of one head."""
    return aligned_map(attention[None], offset_index(cells), cells)[0].numpy()


def obvious(attention: Tensor, cells: tuple[int, int]) -> Floats:
    """Every source's map is laid on a canvas so that the source lies in its middle."""
    rows, columns = cells
    canvas = np.zeros((2 * rows - 1, 2 * columns - 1))
    for source in range(rows * columns):
        top, left = rows - 1 - source // columns, columns - 1 - source % columns
        canvas[top : top + rows, left : left + columns] += (
            attention[source].double().view(rows, columns).numpy()
        )
    return canvas / (rows * columns)


@pytest.mark.parametrize("cells", [(4, 4), (3, 5), (1, 6), (1, 1)])
def test_maps_are_those_of_an_obvious_implementation(cells: tuple[int, int]) -> None:
    count = cells[0] * cells[1]
    attention = torch.rand(count, count, generator=torch.Generator().manual_seed(0))
    attention /= attention.sum(-1, keepdim=True)
    found = aligned(attention, cells)
    np.testing.assert_allclose(found, obvious(attention, cells), atol=1e-7)
    assert found.sum() == pytest.approx(1)
    head = head_offset(found)
    assert 0 <= head.local_mass <= 1 + 1e-6


def test_identity_is_strict() -> None:
    found = aligned(torch.eye(64), (8, 8))
    assert found[7, 7] == 1
    assert found.sum() == 1
    head = head_offset(found)
    assert (head.name, head.peak, head.peak_offset, head.local_mass) == ("strict", (0, 0), 0, 1)
    assert average_offset(found, normalised=False).tolist() == [0, 0]


@pytest.mark.parametrize(("side", "local"), [(7, 0.150), (8, 0.118), (14, 0.107), (28, 0.088)])
def test_uniform_is_global(side: int, local: float) -> None:
    found = aligned(uniform(side), (side, side))
    steps = side - abs(np.arange(1 - side, side))
    np.testing.assert_allclose(found, steps[:, None] * steps / side**4, rtol=1e-5)
    np.testing.assert_allclose(reachable(found), 1 / side**2, rtol=1e-5)
    np.testing.assert_allclose(average_offset(found, normalised=False), 0, atol=1e-6)
    assert found[side - 1].sum() == pytest.approx(1 / side)
    head = head_offset(found)
    assert (head.name, head.peak) == ("global", (0, 0))
    assert head.local_mass == pytest.approx(local, abs=6e-4)


def test_one_step_to_the_right_is_an_offset() -> None:
    side = 14
    found = aligned(right(side), (side, side))
    assert found[side - 1, side] == pytest.approx((side - 1) / side)
    assert found[side - 1, side - 1] == pytest.approx(1 / side)
    assert average_offset(found, normalised=False) == pytest.approx([0, (side - 1) / side])
    assert average_offset(found, normalised=False)[1] / (side - 1) == pytest.approx(1 / side)
    head = head_offset(found)
    assert (head.name, head.peak, head.peak_offset) == ("offset", (0, 1), 1)


def test_a_step_that_wraps_has_no_mean_offset_but_a_class() -> None:
    found = aligned(cyclic(8), (8, 8))
    np.testing.assert_allclose(average_offset(found, normalised=False), 0, atol=1e-9)
    assert head_offset(found).name == "offset"


def test_all_to_the_corner_is_global_and_far() -> None:
    found = aligned(corner(14), (14, 14))
    assert average_offset(found, normalised=False) == pytest.approx([-6.5, -6.5])
    assert np.hypot(*average_offset(found, normalised=False)) == pytest.approx(13 / math.sqrt(2))
    assert head_offset(found).name == "global"


def test_the_mean_offset_is_what_patches_receive_less_the_centre() -> None:
    attention = torch.rand(30, 30, generator=torch.Generator().manual_seed(3)).double()
    attention /= attention.sum(-1, keepdim=True)
    received = attention.mean(0).view(5, 6).numpy()
    centre = [(received.sum(1) * np.arange(5)).sum() - 2, (received.sum(0) * np.arange(6)).sum() - 2.5]
    np.testing.assert_allclose(average_offset(aligned(attention, (5, 6)), normalised=False), centre)


def test_queries_that_give_nothing_shrink_the_offset_unless_it_is_normalised() -> None:
    attention = right(4)
    attention[:8] = 0
    found = aligned(attention, (4, 4))
    assert found.sum() == pytest.approx(0.5)
    assert average_offset(found, normalised=False)[1] == pytest.approx(0.375)
    assert average_offset(found, normalised=True)[1] == pytest.approx(0.75)
    empty = aligned(torch.zeros(16, 16), (4, 4))
    assert average_offset(empty, normalised=False).tolist() == [0, 0]
    assert np.isnan(average_offset(empty, normalised=True)).all()
    assert head_offset(empty).name == "global"


def test_rows_and_columns_are_axial_and_neighbours_soft() -> None:
    side = 14
    places = torch.arange(side**2)
    row = (places[:, None] // side == places // side).float() / side
    assert head_offset(aligned(row, (side, side))).name == "axial"
    assert (
        head_offset(
            aligned(
                row.view(side, side, side, side).transpose(0, 1).transpose(2, 3).reshape(side**2, side**2),
                (side, side),
            )
        ).name
        == "axial"
    )
    near = ((places[:, None] // side - places // side).abs() <= 1) & (
        (places[:, None] % side - places % side).abs() <= 1
    )
    soft = near.float() / near.sum(-1, keepdim=True)
    assert head_offset(aligned(soft, (side, side))).name == "soft"


def test_equal_peaks_are_those_above_and_to_the_left() -> None:
    canvas = np.zeros((15, 15))
    canvas[7, 8] = canvas[7, 6] = canvas[6, 7] = canvas[8, 7] = 0.25
    assert head_offset(canvas).peak == (-1, 0)
    canvas[7, 9] = 0.3  # farther than equal ones, but larger
    assert head_offset(canvas).peak == (0, 2)
