"""Scores of segmentation from what was measured of each image: sums of pixels of classes, and their items."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from tasks.base import Group, Items, Measurements, Outcome, Over, Score, Statistic
from tasks.metrics.arrays import Integers
from tasks.metrics.overlaps import Overlaps

NO_LABELS = "no pixel of the images that are labelled has a class"

MEANS: Mapping[Over, Callable[[Overlaps], float]] = {
    "classes": Overlaps.mean_iou,
    "seen classes": Overlaps.mean_iou_of_seen,
    "all classes": Overlaps.mean_iou_of_all,
}
"""The mean IoU over the classes that the truth shows, that it or the prediction shows, or over all."""


def tables_of(
    groups: Sequence[Group], measurements: Sequence[Measurements], name: str, classes: int
) -> Iterator[Integers]:
    """Confusion matrices of the images of each group, [images classes classes], one group after the other.

    Args:
        groups: The groups of a source.
        measurements: What they left behind; under that name [entries 4]: place of the image in its group,
            true class, given class, pixels.
        name: Of what is measured.
        classes: How many there are.
    """
    for group, measured in zip(groups, measurements, strict=True):
        tables = np.zeros((len(group.samples), classes, classes), np.int64)
        image, truth, given, pixels = np.asarray(measured[name], np.int64).T
        tables[image, truth, given] = pixels
        yield tables


def outcome_of(keys: Sequence[str], found: Mapping[str, Overlaps], over: Over) -> Outcome:
    """Mean IoU and accuracies in percent, with an item an image; empty where no image shows a class.

    Args:
        keys: Names of the images.
        found: Pixels of the images and classes, [images classes], by the ending of the metric's name: ``""``
            for what is scored first, others for what stands beside it as mean IoU alone.
        over: Which classes the mean IoU is taken over.
    """
    first = found[""]
    valid = np.asarray(first.truth.any(axis=1))
    if not valid.any():
        return Outcome((), empty=NO_LABELS)
    values: dict[str, NDArray[np.float64]] = {}
    counted = _counted(found, over)
    for number in counted:
        values[f"truth {number}"] = first.truth[valid, number].astype(np.float64)
    for name, overlaps in found.items():
        for number in counted:
            values[f"inter{name} {number}"] = overlaps.intersection[valid, number].astype(np.float64)
            values[f"union{name} {number}"] = overlaps.union[valid, number].astype(np.float64)
    beside = [name for name in found if name]
    statistics = {
        "mIoU": Statistic("inter/union", over),
        "pixel accuracy": Statistic("inter/truth", "pixels"),
        "class accuracy": Statistic("inter/truth", "classes"),
        **{f"mIoU{name}": Statistic(f"inter{name}/union{name}", over) for name in beside},
    }
    sums, mean = {name: one.sum(valid) for name, one in found.items()}, MEANS[over]
    percent = {
        "mIoU": mean(sums[""]),
        "pixel accuracy": sums[""].accuracy(),
        "class accuracy": sums[""].mean_accuracy(),
        **{f"mIoU{name}": mean(sums[name]) for name in beside},
    }
    names = tuple(key for key, there in zip(keys, valid, strict=True) if there)
    items = Items("images", names, names, ("",) * len(names), values, statistics)
    scores = (Score(metric, 100.0 * value, len(names), "images") for metric, value in percent.items())
    return Outcome(tuple(scores), items)


def _counted(found: Mapping[str, Overlaps], over: Over) -> Integers:
    """Classes of which items have columns."""
    truth = found[""].truth
    if over == "all classes":
        return np.arange(truth.shape[1])
    seen = [truth] if over == "classes" else [one.union for one in found.values()]
    return np.flatnonzero(np.any([one.any(axis=0) for one in seen], axis=0))
