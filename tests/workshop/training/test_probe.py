"""The probe: its features and its classifiers."""

import numpy as np
import pytest

from layerboard.zoo.errors import InputError
from tests.workshop.training.toys import SIDE, shapes, toy
from workshop.training.data import Pictures
from workshop.training.probe import make_probe, nearest_classes, ridge_classes, vectors_by_pooling


def test_classifiers_know_what_is_apart_and_nothing_else() -> None:
    labels = np.arange(60) % 3
    draw = np.random.default_rng(0)
    centres = draw.normal(size=(3, 10))
    bank, asked = ((centres[labels] + 0.3 * draw.normal(size=(60, 10))).astype(np.float32) for _ in range(2))
    noise = draw.normal(size=(60, 10)).astype(np.float32)
    for classify in (nearest_classes, ridge_classes):
        assert (classify(bank, labels, asked) == labels).mean() > 0.9
        assert (classify(bank, labels, noise) == labels).mean() < 0.6


def test_features_are_those_of_evaluation() -> None:
    data = shapes(12)
    objective = toy("resnet", data)
    objective.train()
    whole = vectors_by_pooling(objective, data, SIDE)["mean"]
    assert objective.training
    assert not objective.backbone.embedder.embedder.normalization.running_mean.any()
    half = Pictures(data.images[:6], data.labels[:6], data.captions[:6])
    np.testing.assert_allclose(
        vectors_by_pooling(objective, half, SIDE)["mean"], whole[:6], rtol=1e-5, atol=1e-5
    )


def test_every_class_must_be_known() -> None:
    data = shapes(12)
    known = Pictures(data.images[:2], data.labels[:2], data.captions[:2])
    with pytest.raises(InputError, match=r"classes without a training image: \[2, 3, 4, 5\]"):
        make_probe(known, data, SIDE)
