"""Planted blocks of CKA."""

import numpy as np
import pytest

from layerboard.leaderboards.sections.trainings import partition

LAYERS = np.arange(7)


def two_parts(block: int) -> np.ndarray:  # type: ignore[type-arg]
    side = block > LAYERS
    return (side[:, None] == side[None, :]).astype(np.float64)


@pytest.mark.parametrize("block", [1, 3, 6])
def test_two_blocks_of_ones_are_parted_by_one(block: int) -> None:
    assert partition(two_parts(block), LAYERS, block) == (1, 0)


def test_all_ones_are_not_parted() -> None:
    within, across = partition(np.ones((7, 7)), LAYERS, 3)
    assert within == across


def test_pairs_are_counted_once_and_without_the_diagonal() -> None:
    cka = np.arange(16, dtype=np.float64).reshape(4, 4)
    cka = cka + cka.T + 1000 * np.eye(4)
    within, across = partition(cka, np.arange(4), 1)
    assert within == pytest.approx(np.mean([cka[1, 2], cka[1, 3], cka[2, 3]]))
    assert across == pytest.approx(np.mean(cka[0, 1:]))


def test_layers_have_their_own_numbers() -> None:
    cka = two_parts(3)[1:, 1:]
    assert partition(cka, LAYERS[1:], 3) == (1, 0)
    assert np.isnan(partition(cka, LAYERS[1:], 1)[1])  # nothing is before it
    assert partition(cka, LAYERS[1:], 2)[1] == pytest.approx((1 + 0 * 4) / 5)


def test_pairs_without_a_number_are_left_out() -> None:
    cka = two_parts(3)
    cka[2, :] = cka[:, 2] = np.nan
    assert partition(cka, LAYERS, 3) == (1, 0)
    assert np.isnan(partition(np.full((7, 7), np.nan), LAYERS, 3)).all()
