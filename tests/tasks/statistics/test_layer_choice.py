import math

import numpy as np
import pytest

from layerboard.tasks.statistics.layer_choice import (
    MOST_SIGNS,
    below_zero,
    mean_reach,
    named_layers,
    rank_correlation,
    regret,
)

NAN = math.nan
SCORES = np.array([10.0, 30.0, 50.0, 40.0])


def test_the_highest_layer_is_named() -> None:
    assert named_layers(SCORES).tolist() == [2]
    assert named_layers(np.array([1.0, NAN, 0.5])).tolist() == [0]
    assert named_layers(np.array([2.0, 1.0, 2.0])).tolist() == [0, 2]


@pytest.mark.parametrize("constant", [[1.0, 1.0, 1.0], [NAN, 2.0, NAN], [NAN, NAN, NAN], []])
def test_what_tells_no_layers_apart_names_none(constant: list[float]) -> None:
    assert named_layers(np.array(constant)).tolist() == []


def test_regret_is_zero_at_the_best_layer_and_the_mean_of_equal_ones() -> None:
    assert regret(SCORES, named_layers(SCORES)) == 0
    assert regret(SCORES, np.array([3])) == 10
    assert regret(SCORES, np.array([0, 3])) == pytest.approx(25)
    assert regret(np.array([NAN, 3.0, 5.0]), np.array([1])) == 2


def test_rank_correlation() -> None:
    assert rank_correlation(SCORES**3, SCORES) == 1
    assert rank_correlation(-SCORES, SCORES) == -1
    # ranks 1 2 3 4 against 1 2 4 3: 1 - 6 * 2 / (4 * 15)
    assert rank_correlation(np.arange(4.0), SCORES) == pytest.approx(0.8)
    assert rank_correlation(np.array([NAN, 1.0, 2.0, 3.0]), SCORES) == pytest.approx(0.5)
    for other in ([1.0, 1.0, 1.0, 1.0], [NAN, NAN, 1.0, 2.0]):
        assert math.isnan(rank_correlation(np.array(other), SCORES))


def test_intervals_are_students() -> None:
    # t of 2 degrees of freedom at 97.5 %: 4.302653; deviation 1 over the root of 3
    assert mean_reach(np.array([1.0, 2.0, 3.0])) == pytest.approx(4.302653 / math.sqrt(3), abs=1e-6)
    assert math.isnan(mean_reach(np.array([1.0, 2.0])))


def test_signs_are_turned() -> None:
    assert below_zero(np.array([-1.0, -2.0, -3.0])) == 1 / 8
    assert below_zero(np.array([1.0, -2.0, -3.0])) == 2 / 8
    assert below_zero(np.zeros(4)) == 1
    assert below_zero(np.array([1.0, 2.0])) == 1
    assert math.isnan(below_zero(np.zeros(0)))


def test_of_many_differences_signs_are_drawn() -> None:
    many = np.full(MOST_SIGNS + 1, -1.0)
    assert 0 < below_zero(many) < 1e-3
    assert below_zero(-many) == 1
    mixed = np.random.default_rng(3).normal(size=30)
    assert below_zero(mixed) == below_zero(mixed)
    assert below_zero(mixed) + below_zero(-mixed) == pytest.approx(1, abs=0.02)
