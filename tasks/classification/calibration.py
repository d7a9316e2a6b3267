"""Calibration: whether a classifier that is 80 % sure is right in 80 % of the cases."""

import numpy as np
from numpy.typing import NDArray

from layerboard.tasks.metrics.arrays import Floats, Integers

BINS = 15


def expected_calibration_error(confidence: Floats, correct: NDArray[np.bool_]) -> float:
    """Mean absolute difference between confidence and accuracy over `BINS` bins of equal count, 0 to 1.

    ``confidence`` [n] is the predicted probability of each item's answer, 0 to 1, and ``correct`` [n] whether
    the answer is correct. Items are sorted by confidence; with fewer items than bins, each item is a bin.
    Bins are weighted by their number of items, which differs by one at most. Items of equal confidence share
    their mean accuracy, so their order does not matter.

    Source: Guo et al., ICML 2017 (the error); Nguyen and O'Connor, EMNLP 2015 (bins of equal count).
    """
    gaps, _, parts = _binned(confidence, correct)
    return float(sum(abs(gaps[part].sum()) for part in parts) / len(gaps))


def calibration_gaps(confidence: Floats, correct: NDArray[np.bool_]) -> Floats:
    """Contribution of each item to the expected calibration error, [n], -1 to 1; their mean is the error.

    The contribution is correct (1 or 0) minus confidence, with the opposite sign in an overconfident bin.
    Confidence intervals follow as for any mean, as long as no bin changes its sign. The arguments are those
    of `expected_calibration_error`.
    """
    gaps, level, parts = _binned(confidence, correct)
    side = np.zeros(len(gaps))
    for part in parts:
        side[part] = np.sign(gaps[part].sum())
    # items of equal confidence may be in two bins: they share the sign, too
    return np.asarray((correct - confidence) * (np.bincount(level, side) / np.bincount(level))[level])


def _binned(confidence: Floats, correct: NDArray[np.bool_]) -> tuple[Floats, Integers, list[Integers]]:
    """Accuracy minus confidence of each item, the rank of its confidence, and the items of each bin."""
    _, level = np.unique(confidence, return_inverse=True)
    right = (np.bincount(level, correct) / np.bincount(level))[level]
    order = np.argsort(confidence, kind="stable")
    return right - confidence, level, np.array_split(order, min(BINS, len(order)))
