"""J and F of masks, beside the functions of the official evaluator on the same arrays.

The official rule is stated again here, in words of our own: davisvideochallenge/davis2017-evaluation takes
whole frames, one object after the other, and dilates boundaries by a disk with OpenCV.
"""

import math
from collections.abc import Callable, Iterator
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from perf.rounds import Setting, take_turns
from perf.rows import Budget, Row
from tasks.metrics.segmentation import score_video

Labels = NDArray[np.uint8]
Mask = NDArray[np.bool_]
Dilate = Callable[[Mask, Mask], Mask]

WITHOUT = "dilated by scipy, which is slower than the evaluator's OpenCV; not judged"


def region_rows(setting: Setting) -> Iterator[Row]:
    """J and F of drawn objects that move, in frames of DAVIS's size."""
    size, frames, objects = ((60, 80), 4, 2) if setting.quick else ((480, 854), 24, 2)
    truths, found = drawn(size, frames, objects, shift=0), drawn(size, frames, objects, shift=size[0] // 60)
    with_opencv = find_spec("cv2") is not None
    dilate = _by_opencv if with_opencv else _by_scipy

    def ours() -> NDArray[np.float64]:
        scores = score_video(found, truths)
        return np.stack([scores.j, scores.f])

    def official() -> NDArray[np.float64]:
        return official_scores(found, truths, objects, dilate)

    rounds = take_turns({"official": official, "ours": ours}, setting.rounds, setting.device)
    equal = "exactly equal" if (ours() == official()).all() else "NOT EQUAL"
    yield Row(
        f"J and F of {frames - 2} frames of {size[1]} x {size[0]}, official functions over ours",
        rounds.ratio("official", "ours"),
        budget=Budget(7, at_least=True) if with_opencv else None,
        figures=rounds.figures(),
        note=equal if with_opencv else f"{equal}; {WITHOUT}",
    )


def drawn(size: tuple[int, int], frames: int, objects: int, shift: int) -> list[Labels]:
    """Label maps of ellipses with wavy borders that move to the right."""
    rows, columns = np.mgrid[: size[0], : size[1]]
    every = []
    for frame in range(frames):
        labels = np.zeros(size, np.uint8)
        for number in range(1, objects + 1):
            centre = size[0] * number / (objects + 1), size[1] * (0.2 + 0.4 * frame / frames) + shift
            down, across = rows - centre[0], columns - centre[1]
            angle = np.arctan2(down, across)
            reach = size[0] / 5 * (1 + 0.1 * np.sin(9 * angle + number))
            labels[down**2 + (across / 1.5) ** 2 < reach**2] = number
        every.append(labels)
    return every


def official_scores(
    found: list[Labels], truths: list[Labels], objects: int, dilate: Dilate
) -> NDArray[np.float64]:
    """J and F, [2 objects frames], of all frames but the first and the last."""
    scores = np.empty((2, objects, len(truths) - 2))
    for column, (one, true) in enumerate(zip(found[1:-1], truths[1:-1], strict=True)):
        for number in range(objects):
            mask, truth = one == number + 1, true == number + 1
            scores[:, number, column] = _region(mask, truth), _contour(mask, truth, dilate)
    return scores


def _region(mask: Mask, truth: Mask) -> float:
    union = np.sum(mask | truth)
    return float(np.sum(mask & truth) / union) if union else 1.0


def _contour(mask: Mask, truth: Mask, dilate: Dilate) -> float:
    radius = math.ceil(0.008 * math.hypot(*mask.shape))
    down, across = np.mgrid[-radius : radius + 1, -radius : radius + 1]
    disk = down**2 + across**2 <= radius**2
    own, wanted = _border(mask), _border(truth)
    near_wanted, near_own = dilate(wanted, disk), dilate(own, disk)
    count, total = np.sum(own), np.sum(wanted)
    if not count or not total:
        precision, recall = float(not count), float(not total)
    else:
        precision, recall = np.sum(own & near_wanted) / count, np.sum(wanted & near_own) / total
    return float(2 * precision * recall / (precision + recall)) if precision + recall else 0.0


def _border(mask: Mask) -> Mask:
    """Pixels that differ from the right, the lower or the lower right neighbour; at the edge from one."""
    right, lower, corner = mask.copy(), mask.copy(), mask.copy()
    right[:, :-1] = mask[:, 1:]
    lower[:-1] = mask[1:]
    corner[:-1, :-1] = mask[1:, 1:]
    border: Mask = (mask ^ right) | (mask ^ lower) | (mask ^ corner)
    border[-1] = mask[-1] ^ right[-1]
    border[:, -1] = mask[:, -1] ^ lower[:, -1]
    border[-1, -1] = False
    return border


def _by_opencv(mask: Mask, disk: Mask) -> Mask:
    import cv2

    wide: NDArray[np.uint8] = cv2.dilate(mask.astype(np.uint8), disk.astype(np.uint8))
    return wide.astype(bool)


def _by_scipy(mask: Mask, disk: Mask) -> Mask:
    wide: Mask = ndimage.binary_dilation(mask, disk)
    return wide
