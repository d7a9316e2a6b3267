"""Folds for cross-validation: every item is predicted once, by a model trained on the other folds."""

import numpy as np

from layerboard.tasks.metrics.arrays import Integers

FOLDS = 5
SEED = 0
ALWAYS_TRAINING = -1  # fold of items that are never held out


def stratified_folds(labels: Integers, groups: Integers, folds: int = FOLDS, seed: int = SEED) -> Integers:
    """Fold of each item, [n], 0 to folds - 1: groups are never split, classes are stratified.

    Groups are assigned in order of decreasing size; groups of equal size in random order. Each goes to the
    fold that has least of its classes, relative to their sizes; ties go to the smallest fold, then to the
    first. If every item is its own group, two folds differ by at most one item of a class. With fewer groups
    than folds, of which there are at least 2, some are empty. Classes and groups are numbers from 0: labels
    are all equal for no stratification, and an item without a group has one of its own.
    """
    sizes, share = np.bincount(groups), 1.0 / np.maximum(np.bincount(labels), 1)
    order = np.random.default_rng(seed).permutation(len(sizes))
    order = order[np.argsort(-sizes[order], kind="stable")]
    members = np.split(np.argsort(groups, kind="stable"), np.cumsum(sizes)[:-1])
    held = np.zeros((folds, len(share)), np.int64)
    items = np.zeros(folds, np.int64)
    fold_of = np.zeros(len(labels), np.int64)
    for group in order[sizes[order] > 0]:
        classes, counts = np.unique(labels[members[group]], return_counts=True)
        crowded = (held[:, classes] * (counts * share[classes])).sum(axis=1)
        fold = np.lexsort((items, crowded))[0]
        held[fold, classes] += counts
        items[fold] += sizes[group]
        fold_of[members[group]] = fold
    return fold_of


def group_numbers(names: tuple[str, ...]) -> Integers:
    """Group numbers from 0, in sorted order of the names: [n]."""
    return np.unique(np.asarray(names, str), return_inverse=True)[1].astype(np.int64)
