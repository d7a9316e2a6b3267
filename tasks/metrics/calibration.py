"""Calibration: whether a classifier that is 80 % sure is right in 80 % of the cases."""

import numpy as np
from numpy.typing import NDArray

from layerboard.tasks.metrics.arrays import Floats

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
    if confidence.ndim != 1 or not len(confidence) or correct.shape != confidence.shape:
        raise ValueError(f"expected confidence and correct [n], found {confidence.shape}, {correct.shape}")
    if not (confidence.min() >= 0 and confidence.max() <= 1):
        raise ValueError("confidences must lie in 0 to 1")
    _, level = np.unique(confidence, return_inverse=True)
    right = (np.bincount(level, correct) / np.bincount(level))[level]
    gaps = (right - confidence)[np.argsort(confidence, kind="stable")]
    parts = np.array_split(gaps, min(bins, len(gaps)))
    return float(sum(abs(part.sum()) for part in parts) / len(gaps))
