"""Soft-max regression against torch's own optimiser, and on cases whose answer is known."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from layerboard.tasks.classification.softmax import (
    SoftmaxProbe,
    SoftmaxRule,
    fit_softmax,
    held_out,
    standardised,
)
from layerboard.tasks.framework.protocols import STANDARD
from layerboard.tasks.framework.registry import config_of
from tests.tasks.classification.test_few_shot import blobs, flat

RULE = config_of(STANDARD, "linear")


def fit(train: torch.Tensor, labels: torch.Tensor, rule: SoftmaxRule = RULE) -> SoftmaxProbe:
    classes = int(labels.max()) + 1
    return fit_softmax(
        train, labels, torch.from_numpy(held_out(labels.numpy(), classes, rule)), classes, rule
    )


def right(probe: SoftmaxProbe, features: torch.Tensor, labels: torch.Tensor) -> NDArray[np.bool_]:
    return np.asarray(probe.classified(features)[0] == labels.numpy())


def test_equals_the_optimiser_of_torch() -> None:
    train, labels = flat(blobs(shots=20))
    rule = replace(RULE, epochs=3, batch=20, rates=(0.3,))
    held = torch.from_numpy(held_out(labels.numpy(), 5, rule))
    (kept,) = torch.nonzero(~held, as_tuple=True)
    layer = torch.nn.Linear(6, 5)
    torch.nn.init.zeros_(layer.weight)
    torch.nn.init.zeros_(layer.bias)
    steps = -(-len(kept) // 20)
    optimiser = torch.optim.SGD(layer.parameters(), lr=0.3 * len(kept) / steps / 256, momentum=0.9)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 3 * steps)
    generator = np.random.default_rng(0)
    for _ in range(3):
        for rows in kept[torch.from_numpy(generator.permutation(len(kept)))].tensor_split(steps):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(layer(train[rows]), labels[rows]).backward()
            optimiser.step()
            schedule.step()
    probe = fit_softmax(train, labels, held, 5, rule)
    torch.testing.assert_close(probe.weights, layer.weight.detach().T, atol=1e-6, rtol=1e-4)
    torch.testing.assert_close(probe.bias, layer.bias.detach(), atol=1e-6, rtol=1e-4)


def test_all_rates_are_trained_alike_and_the_best_on_the_held_out_rows_is_taken() -> None:
    train, labels = flat(blobs(shots=40, spread=2.0))
    held = torch.from_numpy(held_out(labels.numpy(), 5, replace(RULE, held_out=4)))
    alone = [fit_softmax(train, labels, held, 5, replace(RULE, rates=(rate,))) for rate in RULE.rates]
    counts = [right(one, train[held], labels[held]).sum() for one in alone]
    best = int(np.argmax(counts))  # of equal rates the lowest
    together = fit_softmax(train, labels, held, 5, RULE)
    assert together.rate == RULE.rates[best]
    torch.testing.assert_close(together.weights, alone[best].weights, atol=1e-5, rtol=1e-4)


def test_a_rate_that_ends_in_no_numbers_is_not_taken() -> None:
    train, labels = flat(blobs(shots=20))
    assert fit(train * 1e35, labels, replace(RULE, rates=(1e-3, 1e30))).rate == 1e-3


def test_small_channels_count_less_unless_standardised() -> None:
    train, labels = flat(blobs(shots=60, spread=2.0))
    small = train * torch.tensor([1e-3, 1e-3, 1e-3, 1, 1, 1])
    plain, scaled = (right(fit(one, labels), one, labels) for one in (train, small))
    assert (plain != scaled).any()
    same = [standardised(one, one) for one in (train, small)]
    torch.testing.assert_close(same[0], same[1], atol=1e-4, rtol=1e-4)
    first, second = (right(fit(one, labels), one, labels) for one, _ in same)
    assert (first == second).all()


def test_standardised_features_have_mean_0_and_deviation_1_and_still_ones_vanish() -> None:
    train = torch.randn(50, 3, generator=torch.Generator().manual_seed(0)) * 4 + 100
    train[:, 1] = 0.1
    found, other = standardised(train, train[:7] + 1)
    torch.testing.assert_close(found[:, [0, 2]].mean(0), torch.zeros(2), atol=1e-4, rtol=0)
    torch.testing.assert_close(found[:, [0, 2]].std(0, correction=0), torch.ones(2), atol=1e-4, rtol=0)
    assert not found[:, 1].any()
    assert not other[:, 1].any()


@pytest.mark.parametrize(
    ("count", "expected"), [(1300, 13), (449, 4), (451, 5), (24, 4), (6, 3), (2, 1), (1, 0)]
)
def test_one_in_a_hundred_of_each_class_is_held_out_and_four_at_least(count: int, expected: int) -> None:
    labels = np.concatenate([np.zeros(count, np.int64), np.ones(200, np.int64)])
    held = held_out(labels, 2, RULE)
    assert (held[:count].sum(), held[count:].sum()) == (expected, 4)
    assert (held == held_out(labels, 2, RULE)).all()
