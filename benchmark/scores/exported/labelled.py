"""Exported features to learn from and to classify, which k-NN and the probes share."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmark.scores.exported.arrays import Floats, as_features, as_labels, read_archive
from tasks.metrics.arrays import Integers
from zoo.errors import InputError

ARRAYS = ("train", "train_labels", "test", "test_labels")


@dataclass(frozen=True, slots=True)
class Exported:
    """What an archive of labelled features holds.

    Attributes:
        train: [n dim].
        labels: Classes of the train items, 0 to classes - 1, [n].
        test: [m dim].
        truth: The same of the test items, [m].
        names: The labels of the classes as they were given, sorted.
    """

    train: Floats
    labels: Integers
    test: Floats
    truth: Integers
    names: Integers

    @property
    def strangers(self) -> tuple[str, ...]:
        """A sentence where test items cannot be right."""
        number, items = int((~np.isin(self.truth, self.labels)).sum()), len(self.test)
        return (f"{number:,} of {items:,} test items have a class that no train item has",) if number else ()


def read_labelled(features: Path, *, constant: bool = True) -> Exported:
    """The archive of train [n dim], train_labels [n], test [m dim] and test_labels [m], checked.

    Args:
        features: The archive; labels are any whole numbers.
        constant: Whether train features that are the same for all items are refused.

    Raises:
        InputError: Something about the file is wrong.
    """
    arrays = read_archive(features, ARRAYS)
    train = as_features(arrays["train"], f"train of {features}", constant=constant)
    test = as_features(arrays["test"], f"test of {features}", constant=False)
    if train.shape[1] != test.shape[1]:
        raise InputError(
            f"expected train and test of one width in {features}, found {train.shape[1]} and {test.shape[1]}"
        )
    known = as_labels(arrays["train_labels"], f"train_labels of {features}", len(train)).astype(np.int64)
    asked = as_labels(arrays["test_labels"], f"test_labels of {features}", len(test)).astype(np.int64)
    names = np.union1d(known, asked)
    labels, truth = (np.searchsorted(names, values).astype(np.int64) for values in (known, asked))
    return Exported(train, labels, test, truth, names)
