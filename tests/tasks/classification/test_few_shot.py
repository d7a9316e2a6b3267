"""The closed-form probe on cases whose answer is known, against scikit-learn and against the evaluator."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from layerboard.tasks.classification import few_shot as module
from layerboard.tasks.classification.few_shot import RidgeProbe, draw_shots, fit_few_shot
from layerboard.tasks.framework.protocols import PAPER, STANDARD
from layerboard.tasks.framework.registry import config_of
from layerboard.zoo.errors import InputError

RULE = config_of(STANDARD, "fewshot")


def blobs(
    classes: int = 5, shots: int = 10, dim: int = 6, spread: float = 1.0, seed: int = 0
) -> torch.Tensor:
    """Features [classes shots dim] around a mean of each class."""
    generator = torch.Generator().manual_seed(seed)
    means = torch.randn(classes, 1, dim, generator=generator)
    return means + spread * torch.randn(classes, shots, dim, generator=generator)


def flat(drawn: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return drawn.flatten(0, 1), torch.arange(len(drawn)).repeat_interleave(drawn.shape[1])


@pytest.mark.parametrize("value", [0.0, 3.1])
def test_constant_features_are_right_by_chance(value: float) -> None:
    drawn = torch.full((5, 10, 4), value)
    fitted = fit_few_shot(drawn, RULE)
    assert (fitted.classified(flat(drawn)[0])[0] == 0).all()  # equal scores go to the lower class


def test_parts_of_the_test_images_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    (features, labels), test = flat(blobs()), flat(blobs(shots=30, seed=1))[0]
    whole = RidgeProbe.fit(features, labels, 5).predict(test, (1.0, 64.0))
    monkeypatch.setattr(module, "CHUNK_FLOATS", 40)
    assert (RidgeProbe.fit(features, labels, 5).predict(test, (1.0, 64.0)) == whole).all()


def test_shots_are_permuted_class_by_class_and_fewer_are_the_first_of_more() -> None:
    labels = np.array([1, 0, 1, 0, 0, 1, 0, 1], np.int64)
    drawn = draw_shots(labels, 2, 3, seed=4)
    generator = np.random.default_rng(4)
    expected = [generator.permutation(np.flatnonzero(labels == label))[:3] for label in (0, 1)]
    assert drawn.tolist() == np.stack(expected).tolist()
    assert draw_shots(labels, 2, 1, seed=4).tolist() == drawn[:, :1].tolist()


def test_the_penalty_is_that_which_is_best_on_the_shots_drawn_last() -> None:
    drawn = blobs(classes=4, spread=3.0, dim=30)
    right = []
    for penalty in RULE.penalties:
        probe = RidgeProbe.fit(*flat(drawn[:, :8]), 4)
        features, labels = flat(drawn[:, 8:])
        right.append(int((probe.predict(features, [penalty])[0] == labels).sum()))
    best = max(range(len(right)), key=lambda place: (right[place], place))
    assert 0 < right[best] > min(right)
    assert fit_few_shot(drawn, RULE).penalty == RULE.penalties[best]  # the strongest of equal ones
    assert fit_few_shot(drawn, RULE).probe.rows == 40  # fitted to all shots


def test_few_shots_and_the_paper_hold_nothing_out() -> None:
    assert fit_few_shot(blobs(shots=4), RULE).penalty == 1024.0
    assert fit_few_shot(blobs(shots=10), config_of(PAPER, "fewshot")).penalty == 1024.0
    assert config_of(PAPER, "fewshot") == replace(RULE, penalties=())
    assert RULE.penalties == tuple(2.0**power for power in range(-6, 21, 2))


@pytest.mark.parametrize("shots", [0, -1])
def test_no_shots_are_refused(shots: int) -> None:
    with pytest.raises(InputError, match="at least 1 image of each class"):
        draw_shots(np.array([0, 0, 1, 1]), 2, shots, 0)
