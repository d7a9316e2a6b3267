import numpy as np
import pytest

from layerboard.tasks.metrics.folds import group_numbers, stratified_folds

GENERATOR = np.random.default_rng(7)


def counts_of(labels: np.ndarray, folds: np.ndarray, number: int = 5) -> np.ndarray:
    """Items of each fold and class."""
    return np.stack(
        [np.bincount(labels[folds == fold], minlength=labels.max() + 1) for fold in range(number)]
    )


@pytest.mark.parametrize("number", [2, 5])
@pytest.mark.parametrize("size", [12, 103])
def test_single_items_are_spread_evenly(size: int, number: int) -> None:
    labels = GENERATOR.integers(0, 4, size)
    folds = stratified_folds(labels, np.arange(size), number)
    counts = counts_of(labels, folds, number)
    assert counts.sum() == size
    assert np.ptp(counts, axis=0).max() <= 1
    assert np.ptp(counts.sum(axis=1)) <= 1


def test_three_items_of_a_class_leave_two_to_learn_from() -> None:
    labels = np.repeat(np.arange(30), 3)
    counts = counts_of(labels, stratified_folds(labels, np.arange(90)))
    assert counts.max() == 1
    assert counts.sum(axis=1).tolist() == [18] * 5


def test_groups_are_never_cut_and_classes_of_them_are_spread() -> None:
    groups = np.sort(GENERATOR.integers(0, 60, 600))
    labels = groups % 3
    folds = stratified_folds(labels, groups)
    assert all(len(np.unique(folds[groups == group])) == 1 for group in np.unique(groups))
    counts = counts_of(labels, folds)
    assert counts.min() > 0
    assert np.ptp(counts, axis=0).max() <= 0.2 * len(labels) / 5


def test_numbers_have_one_class_and_folds_of_one_size() -> None:
    folds = stratified_folds(np.zeros(52, np.int64), np.arange(52))
    assert sorted(np.bincount(folds).tolist()) == [10, 10, 10, 11, 11]


def test_the_seed_draws_another_assignment_and_the_same_seed_the_same() -> None:
    labels, groups = np.zeros(50, np.int64), np.arange(50)
    first = stratified_folds(labels, groups)
    assert np.array_equal(first, stratified_folds(labels, groups))
    assert not np.array_equal(first, stratified_folds(labels, groups, seed=1))


def test_fewer_groups_than_folds_leave_folds_empty() -> None:
    labels = np.array([0, 0, 0, 1, 1, 1])
    groups = np.array([0, 0, 1, 1, 2, 2])
    assert len(np.unique(stratified_folds(labels, groups))) == 3


def test_names_become_numbers() -> None:
    assert group_numbers(("b", "a", "b")).tolist() == [1, 0, 1]
