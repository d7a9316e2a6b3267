"""Ridge regression in closed form, against a loop that leaves each row out, and against scikit-learn."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge as Reference

from layerboard.tasks.metrics.folds import ALWAYS_TRAINING
from layerboard.tasks.targets.held_out import Ridge, RidgePredictions

PENALTIES = tuple(10.0**power for power in range(-4, 5, 2))


def problem(rows: int, dim: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Correlated features with one that is constant, and two targets."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(rows, dim)) @ rng.normal(size=(dim, dim)) + 3
    features[:, 0] = 0.1
    targets = features[:, 1:3] @ rng.normal(size=(2, 2)) + rng.normal(size=(rows, 2))
    return torch.from_numpy(features), torch.from_numpy(targets)


@pytest.mark.parametrize("shape", [(40, 7), (30, 30), (12, 50)])
def test_errors_of_rows_left_out_equal_the_loop(shape: tuple[int, int]) -> None:
    features, targets = problem(*shape)
    ridge = Ridge.fit(features, targets)
    standard = ((features - ridge.mean) / ridge.deviation).numpy()
    for penalty in PENALTIES:
        alpha = penalty * float(ridge.spectrum.sum()) / shape[1]
        looped = []
        for row in range(shape[0]):
            others = np.arange(shape[0]) != row
            fit = Reference(alpha=alpha, solver="svd").fit(standard[others], targets.numpy()[others])
            looped.append(targets.numpy()[row] - fit.predict(standard[row : row + 1])[0])
        np.testing.assert_allclose(ridge.left_out(penalty), looped, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shape", [(40, 7), (12, 50)])
def test_predictions_are_those_of_scikit_learn_with_a_penalty_a_target(shape: tuple[int, int]) -> None:
    features, targets = problem(*shape)
    ridge, asked = Ridge.fit(features, targets), problem(9, shape[1], seed=1)[0]
    predicted = ridge.predict(asked, (0.01, 10.0))
    standard = [((rows - ridge.mean) / ridge.deviation).numpy() for rows in (features, asked)]
    for column, penalty in enumerate((0.01, 10.0)):
        alpha = penalty * float(ridge.spectrum.sum()) / shape[1]
        fit = Reference(alpha=alpha, solver="svd").fit(standard[0], targets.numpy()[:, column])
        np.testing.assert_allclose(predicted[:, column], fit.predict(standard[1]), atol=1e-9)


def test_each_target_has_the_penalty_whose_errors_are_least() -> None:
    features, targets = problem(60, 20)
    targets[:, 1] = torch.from_numpy(np.random.default_rng(5).normal(size=60))  # nothing to learn
    ridge = Ridge.fit(features, targets)
    errors = np.array([ridge.left_out(penalty).square().mean(0).numpy() for penalty in PENALTIES])
    assert ridge.best(PENALTIES) == [PENALTIES[place] for place in errors.argmin(axis=0)]
    assert ridge.best(PENALTIES)[1] > ridge.best(PENALTIES)[0]


def test_no_image_is_predicted_from_its_own_fold() -> None:
    features, targets = (each.numpy() for each in problem(30, 6))
    fold = np.arange(30) % 3
    fold[:5] = ALWAYS_TRAINING
    predicted = RidgePredictions.of(features, targets, fold, np.arange(30), PENALTIES).predicted
    assert np.isnan(predicted[:5]).all()
    assert np.isfinite(predicted[5:]).all()
    changed = targets.copy()
    changed[fold == 1] += 100
    again = RidgePredictions.of(features, changed, fold, np.arange(30), PENALTIES).predicted
    np.testing.assert_array_equal(again[fold == 1], predicted[fold == 1])
    assert (again[fold == 2] != predicted[fold == 2]).all()


def test_constant_features_predict_the_mean() -> None:
    targets = torch.tensor([[1.0], [2.0], [6.0]])
    ridge = Ridge.fit(torch.full((3, 4), 0.1), targets)
    assert ridge.predict(torch.full((2, 4), 0.1), ridge.best(PENALTIES)).tolist() == [[3.0], [3.0]]
