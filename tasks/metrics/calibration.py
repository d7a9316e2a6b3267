"""Calibration: whether a classifier that is 80 % sure is right in 80 % of the cases."""

import numpy as np
from numpy.typing import NDArray

from layerboard.tasks.metrics.arrays import Floats, Integers

BINS = 15


def expected_calibration_error(confidence: Floats, correct: NDArray[np.bool_], bins: int = BINS) -> float:
    """Mean distance between confidence and accuracy over bins of equally many items, from 0 to 1.

    Items are sorted by their confidence; each bin counts by its items, and bins differ by one item at most.
    Items of one confidence share their accuracy, so that their order does not matter.

    Source: Guo et al., ICML 2017 (the error); Nguyen and O'Connor, EMNLP 2015 (bins of equal count).

    Args:
        confidence: Probability that each item's answer was given, [n], 0 to 1.
        correct: Whether the answer is right, [n].
        bins: How many; of fewer items each is a bin.

    Raises:
        ValueError: There are no items, shapes differ, or a confidence is outside 0 to 1.
    """
    gaps, _, parts = _binned(confidence, correct, bins)
    return float(sum(abs(gaps[part].sum()) for part in parts) / len(gaps))


def calibration_gaps(confidence: Floats, correct: NDArray[np.bool_], bins: int = BINS) -> Floats:
    """What each item adds to the expected calibration error, [n], -1 to 1; their mean is the error.

    It is how far its own answer, 1 or 0, is above its confidence, or below it in a bin that is too sure of
    itself. So intervals follow as for any mean, as long as no bin changes sides; arguments as of
    `expected_calibration_error`.
    """
    gaps, level, parts = _binned(confidence, correct, bins)
    side = np.zeros(len(gaps))
    for part in parts:
        side[part] = np.sign(gaps[part].sum())
    # items of one confidence may be in two bins: they share the side, too
    return np.asarray((correct - confidence) * (np.bincount(level, side) / np.bincount(level))[level])


def _binned(
    confidence: Floats, correct: NDArray[np.bool_], bins: int
) -> tuple[Floats, Integers, list[Integers]]:
    """Accuracy less confidence of each item, the place of its confidence, and the items of each bin."""
    if confidence.ndim != 1 or not len(confidence) or correct.shape != confidence.shape:
        raise ValueError(f"expected confidence and correct [n], found {confidence.shape}, {correct.shape}")
    if not (confidence.min() >= 0 and confidence.max() <= 1):
        raise ValueError("confidences must lie in 0 to 1")
    _, level = np.unique(confidence, return_inverse=True)
    right = (np.bincount(level, correct) / np.bincount(level))[level]
    order = np.argsort(confidence, kind="stable")
    return right - confidence, level, np.array_split(order, min(bins, len(order)))
