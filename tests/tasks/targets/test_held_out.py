"""Predictions without a unit equal those of models that are fitted again without it."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from layerboard.tasks.metrics.arrays import Integers
from layerboard.tasks.metrics.folds import ALWAYS_TRAINING
from layerboard.tasks.statistics.refitted import HeldOut
from layerboard.tasks.targets.held_out import RidgePredictions, VotePredictions

RNG = np.random.default_rng(0)
COUNT, PENALTY = 40, (0.3,)
FOLD = np.arange(COUNT) % 4
ALONE = np.arange(COUNT)
TOGETHER = np.repeat(np.arange(COUNT // 4), 4)  # four images of each unit, which are alike
TARGETS = RNG.normal(size=(COUNT, 3))


def of_units(dim: int, unit: Integers) -> tuple[NDArray[np.float32], Integers]:
    features = RNG.normal(size=(COUNT, dim))[unit] + 0.3 * RNG.normal(size=(COUNT, dim))
    fold = FOLD if unit is ALONE else unit % 4
    return features.astype(np.float32), fold


@pytest.mark.parametrize("unit", [ALONE, TOGETHER], ids=["images", "groups"])
@pytest.mark.parametrize("dim", [5, 60])
def test_ridges_without_a_unit_equal_those_fitted_again(dim: int, unit: Integers) -> None:
    """The penalty and the standardisation are those of all images; the intercept is fitted again."""
    features, fold = of_units(dim, unit)
    fold = np.where(np.arange(COUNT) >= 36, ALWAYS_TRAINING, fold)
    made = RidgePredictions.of(features, TARGETS, fold, unit, PENALTY)
    changes = made.changes()[1]
    for number in range(4):
        train, held = fold != number, fold == number
        wide = features.astype(np.float64)
        rows = (wide - wide[train].mean(0)) / wide[train].std(0)
        penalty = PENALTY[0] * train.sum()
        for left in np.unique(unit):
            kept = train & (unit != left)
            if kept.sum() == train.sum():
                assert (changes[held, left] == 0).all()
                continue
            centre, mean = rows[kept].mean(0), TARGETS[kept, 1].mean()
            gram = (rows[kept] - centre).T @ (rows[kept] - centre) + penalty * np.eye(dim)
            weights = np.linalg.solve(gram, (rows[kept] - centre).T @ (TARGETS[kept, 1] - mean))
            again = (rows[held] - centre) @ weights + mean
            np.testing.assert_allclose(made.predicted[held, 1] + changes[held, left], again, atol=1e-6)


@pytest.mark.parametrize("unit", [ALONE, TOGETHER], ids=["images", "groups"])
@pytest.mark.parametrize("k", [5, 20, 100])
def test_votes_without_a_unit_equal_those_of_the_rest(k: int, unit: Integers) -> None:
    features, fold = of_units(8, unit)
    values = (TARGETS > 0).astype(np.float64)
    made = VotePredictions.of(features, values, fold, unit, k)
    changes = made.changes()[2]
    units = features / np.linalg.norm(features, axis=1, keepdims=True)
    for image in range(COUNT):
        others = np.flatnonzero(fold != fold[image])
        near = others[np.argsort(-(units[others] @ units[image]))]
        for left in np.unique(unit):
            rest = values[near[unit[near] != left][:k], 2].mean()
            told = made.predicted[image, 2] + changes[image, left]
            # with groups and fewer images than neighbours, each vote is replaced by the mean of all
            assert told == pytest.approx(rest, abs=0.06 if k == 100 and unit is TOGETHER else 1e-6)


@pytest.mark.parametrize("unit", [ALONE, TOGETHER], ids=["images", "groups"])
def test_what_moves_a_score_is_the_sum_of_the_changes(unit: Integers) -> None:
    features, fold = of_units(8, unit)
    slopes = RNG.normal(size=(2, COUNT, 3))
    values = (TARGETS > 0).astype(np.float64)
    both: tuple[HeldOut, HeldOut] = (
        RidgePredictions.of(features, TARGETS, fold, unit, (0.01, 0.1, 1.0), torch.device("cpu")),
        VotePredictions.of(features, values, fold, unit, 5),
    )
    for made in both:
        moved = made.moved(slopes)
        for target in range(3):
            expected = slopes[:, :, target] @ made.changes()[target]
            np.testing.assert_allclose(moved[:, :, target], expected, atol=1e-6)
