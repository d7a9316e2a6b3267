"""Classifiers of the probe, against scikit-learn."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsClassifier

from mini.training.data import Pictures, seeded
from mini.training.probe import Probing, features, make_probe, nearest_classes, ridge_classes
from tests.mini.training.toys import SIDE, shapes, toy
from zoo.errors import InputError


def _points() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = seeded(0)
    labels = torch.randint(4, (200,), generator=generator)
    centres = torch.randn(4, 10, generator=generator)
    points = centres[labels] + torch.randn(200, 10, generator=generator)
    return points[:150], labels[:150], points[150:]


def test_nearest_neighbours_are_scikit_learns() -> None:
    bank, labels, asked = _points()
    how = Probing(neighbours=7)
    expected = KNeighborsClassifier(7, metric="cosine", weights=lambda d: np.exp((1 - d) / how.temperature))
    expected.fit(bank.numpy(), labels.numpy())
    assert np.array_equal(nearest_classes(bank, labels, asked, how).numpy(), expected.predict(asked.numpy()))


def test_the_linear_probe_is_scikit_learns_ridge() -> None:
    bank, labels, asked = _points()
    mean, deviation = bank.mean(0), bank.std(0)
    ridge = Ridge(alpha=0.1 * len(bank)).fit(((bank - mean) / deviation).numpy(), np.eye(4)[labels.numpy()])
    expected = ridge.predict(((asked - mean) / deviation).numpy()).argmax(1)
    assert np.array_equal(ridge_classes(bank, labels, asked, Probing()).numpy(), expected)


def test_features_are_those_of_evaluation() -> None:
    data = shapes(12)
    objective = toy("resnet", data)
    objective.train()
    whole = features(objective, data, SIDE)["mean"]
    assert objective.training
    assert not objective.backbone.embedder.embedder.normalization.running_mean.any()
    half = Pictures(data.images[:6], data.labels[:6], data.captions[:6])
    torch.testing.assert_close(features(objective, half, SIDE)["mean"], whole[:6])


def test_every_class_must_be_known() -> None:
    data = shapes(12)
    known = Pictures(data.images[:2], data.labels[:2], data.captions[:2])
    with pytest.raises(InputError, match=r"classes without a training image: \[2, 3, 4, 5\]"):
        make_probe(known, data, SIDE)
