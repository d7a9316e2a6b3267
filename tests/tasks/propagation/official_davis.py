"""J and F by the official rule, davisvideochallenge/davis2017-evaluation: the oracle of tests and budgets.

It takes whole frames, one object after the other, and dilates boundaries by a disk with OpenCV.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

Labels = NDArray[np.uint8]
Mask = NDArray[np.bool_]
Dilate = Callable[[Mask, Mask], Mask]


def official_scores(
    predictions: list[Labels], truths: list[Labels], objects: int, dilate: Dilate
) -> NDArray[np.float64]:
    """J and F, [2 objects frames], of all frames but the first and the last."""
    scores = np.empty((2, objects, len(truths) - 2))
    for column, (prediction, true) in enumerate(zip(predictions[1:-1], truths[1:-1], strict=True)):
        for number in range(objects):
            mask, truth = prediction == number + 1, true == number + 1
            scores[:, number, column] = region(mask, truth), contour(mask, truth, dilate)
    return scores


def region(mask: Mask, truth: Mask) -> float:
    """J of one object in a frame."""
    union = np.sum(mask | truth)
    return float(np.sum(mask & truth) / union) if union else 1.0


def contour(mask: Mask, truth: Mask, dilate: Dilate) -> float:
    """F of one object in a frame, within 0.008 of its diagonal."""
    radius = math.ceil(0.008 * math.hypot(*mask.shape))
    down, across = np.mgrid[-radius : radius + 1, -radius : radius + 1]
    disk = down**2 + across**2 <= radius**2
    own, wanted = border(mask), border(truth)
    near_wanted, near_own = dilate(wanted, disk), dilate(own, disk)
    count, total = np.sum(own), np.sum(wanted)
    if not count or not total:
        precision, recall = float(not count), float(not total)
    else:
        precision, recall = np.sum(own & near_wanted) / count, np.sum(wanted & near_own) / total
    return float(2 * precision * recall / (precision + recall)) if precision + recall else 0.0


def border(mask: Mask) -> Mask:
    """Pixels that differ from the right, the lower or the lower right neighbour; at the edge from one."""
    padded = np.pad(mask, (0, 1), mode="edge")
    border: Mask = (mask ^ padded[:-1, 1:]) | (mask ^ padded[1:, :-1]) | (mask ^ padded[1:, 1:])
    return border


def dilated_by_scipy(mask: Mask, disk: Mask) -> Mask:
    """The same as OpenCV's, slower."""
    wide: Mask = ndimage.binary_dilation(mask, disk)
    return wide
