"""Scores do not depend on the unit of features or targets, however small, large or offset."""

import json

import numpy as np
import pytest

RNG = np.random.default_rng(0)
ITEMS = 120
LABELS = np.arange(ITEMS) % 4
FEATURES = (RNG.normal(size=(4, 16))[LABELS] + 1.2 * RNG.normal(size=(ITEMS, 16))).astype(np.float32)
FEATURES = np.ldexp(FEATURES, -np.frexp(np.abs(FEATURES).max())[1])  # in the range of rescaled ones
NUMBERS = np.round(FEATURES[:, 0] + RNG.normal(size=ITEMS), 3)
CLASSES = dict(zip(("train", "test"), np.split(FEATURES, [80]), strict=True))
CLASSES |= dict(zip(("train_labels", "test_labels"), np.split(LABELS, [80]), strict=True))
TASKS = {"knn": CLASSES, "instances": {"features": FEATURES, "groups": LABELS}}


def scored(says, path, task):
    said = says(task, "--features", path, "--json")
    assert said.code == 0, said.err
    return json.loads(said.out)["scores"]


@pytest.mark.parametrize("task", TASKS)
def test_the_cosine_of_a_tiny_vector_among_others_is_its_own(says, archive, task):
    arrays = TASKS[task]
    usual = scored(says, archive(**arrays), task)
    mixed = {name: array.copy() for name, array in arrays.items()}
    for name in {*mixed} & {"train", "features"}:
        mixed[name][::3] *= np.float32(2.0**-100)
    assert scored(says, archive(**mixed), task) == usual


@pytest.mark.parametrize("offset", [2.0**33, -(2.0**40)])
def test_numbers_are_predicted_as_without_what_all_have_in_common(says, archive, offset):
    numbers = np.round(NUMBERS * 1024) / 1024  # exact beside the offset
    usual = scored(says, archive(features=FEATURES, targets=numbers - numbers[0]), "regress")
    assert scored(says, archive(features=FEATURES, targets=numbers + offset), "regress") == usual


def test_targets_that_float32_cannot_hold_are_refused(says, archive):
    for factor, words in ((1e-200, "found smaller ones; multiply them"), (1e200, "larger values")):
        said = says("regress", "--features", archive(features=FEATURES, targets=NUMBERS * factor))
        assert (said.code, words in said.err) == (2, True)


def test_nearly_parallel_features_find_the_images_of_their_thing(says, archive):
    """What is a few units in ten thousand is found by cosines in float64: both features rank alike."""
    rounded = np.round(FEATURES * 64) / 64
    usual = scored(says, archive(features=(rounded + 2.0**4).astype(np.float32), groups=LABELS), "instances")
    found = scored(says, archive(features=(rounded + 2.0**14).astype(np.float32), groups=LABELS), "instances")
    assert found["recall@1"] > 60 < usual["recall@1"]
    assert found["ROC AUC"] == pytest.approx(usual["ROC AUC"], abs=2)
