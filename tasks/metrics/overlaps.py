"""How well predicted classes of pixels agree with the true ones: confusion matrices and mean IoU."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.optimize import linear_sum_assignment

from layerboard.tasks.metrics.arrays import VOID, Floats, Integers, Labels, Mask, mean_of_any

Averaged = Literal["shown", "seen", "all"]
"""Classes that are averaged: those that the truth shows; those that the truth or the prediction shows, as in
mmsegmentation and dinov3; or all, of which one that is neither shown nor predicted counts 0 (Hummingbird)."""


def confusion(truth: Labels, predicted: Labels, classes: int) -> Integers:
    """How many pixels of each true class were given each class: [classes classes], a true class a row.

    True pixels of 255 do not count. Raises ValueError where shapes differ, or there is an unknown class.
    """
    if truth.shape != predicted.shape:
        raise ValueError(f"truth and prediction differ in shape: {truth.shape} and {predicted.shape}")
    valid = truth != VOID
    true, given = truth[valid].astype(np.int64), predicted[valid].astype(np.int64)
    if (largest := int(max(true.max(initial=0), given.max(initial=0)))) >= classes:
        raise ValueError(f"a pixel has the class {largest}, of {classes} classes from 0")
    return np.bincount(true * classes + given, minlength=classes * classes).reshape(classes, classes)


@dataclass(frozen=True, slots=True)
class Overlaps:
    """Pixels of each class, of one or of several images: [... classes] each."""

    truth: Integers  # that are of the class
    intersection: Integers  # those of them that were given it
    union: Integers  # that are of the class or were given it

    @classmethod
    def of(cls, table: Integers) -> "Overlaps":
        """The overlaps of confusion matrices [... classes classes]."""
        truth, inside = table.sum(-1), np.diagonal(table, axis1=-2, axis2=-1)
        return cls(truth, inside.copy(), truth + table.sum(-2) - inside)

    @classmethod
    def joined(cls, tables: Iterable[Integers]) -> "Overlaps":
        """The overlaps of several lists of images as one list, of which one is in memory at a time."""
        parts, names = [cls.of(some) for some in tables], ("truth", "intersection", "union")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def sum(self, images: Mask) -> "Overlaps":
        """The overlaps of some of the images [images] together."""
        return Overlaps(*(counts[images].sum(0) for counts in (self.truth, self.intersection, self.union)))

    @property
    def iou(self) -> Floats:
        """Intersection over union of each class, fractions; NaN of one without a pixel in either."""
        return _ratio(self.intersection, self.union)

    def mean_iou(self, averaged: Averaged = "shown") -> float:
        """Mean IoU, a fraction, over some classes; NaN if there is none."""
        classes = {"shown": self.truth > 0, "seen": self.union > 0, "all": self.truth >= 0}[averaged]
        return mean_of_any(np.nan_to_num(self.iou)[classes])

    def mean_accuracy(self) -> float:
        """Mean share of a class's pixels that were given it, over the classes that the truth shows."""
        return mean_of_any(_ratio(self.intersection, self.truth)[self.truth > 0])

    def accuracy(self) -> float:
        """Share of the pixels that were given their class; NaN if there is none."""
        return float(_ratio(self.intersection.sum(), self.truth.sum()))


def names_of_predictions(table: Integers) -> Integers:
    """For each class the predicted class that is renamed to it, so that the sum of IoU is largest: [classes].

    One name each (Hungarian matching), as for clusters. It never lowers a score, and hides swapped classes.
    """
    truth, given = table.sum(1)[:, None], table.sum(0)
    row, column = linear_sum_assignment(table / np.maximum(truth + given - table, 1), maximize=True)
    return np.asarray(column[np.argsort(row)], np.int64)


def mean_iou_of_labels(truth: Labels, predicted: Labels, ignored: frozenset[int]) -> float:
    """Mean IoU, a fraction, over all labels that truth or prediction show where the truth is not ignored.

    An ignored label that is predicted there counts as a class of IoU 0. NaN if nothing is judged. Source: the
    evaluation of CAPI (facebookresearch/capi, commit 98b4fa1).
    """
    judged = ~np.isin(truth, sorted(ignored))
    table = confusion(np.where(judged, truth, VOID), np.where(judged, predicted, 0).astype(np.uint8), 256)
    return Overlaps.of(table).mean_iou("seen")


def _ratio(part: Integers, whole: Integers) -> Floats:
    result: Floats = np.full(np.shape(whole), np.nan)
    np.divide(part, whole, out=result, where=np.asarray(whole) > 0)
    return result
