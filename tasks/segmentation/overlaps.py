"""Agreement of predicted and true classes of pixels: confusion matrices, accuracy and mean IoU."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from layerboard.tasks.metrics.arrays import VOID, Floats, Integers, Labels, Mask, mean_of_any
from layerboard.tasks.statistics.weighted import Averaged


def confusion(truth: Labels, predicted: Labels, classes: int) -> Integers:
    """Confusion matrix [classes classes] in pixels, with a row for each true class.

    Pixels whose true label is 255 are ignored; all other labels are below ``classes``.
    """
    valid = truth != VOID
    true, given = truth[valid].astype(np.int64), predicted[valid].astype(np.int64)
    return np.bincount(true * classes + given, minlength=classes * classes).reshape(classes, classes)


@dataclass(frozen=True, slots=True)
class Overlaps:
    """Pixels of each class, of one or of several images: [... classes] each."""

    truth: Integers  # true pixels of the class
    intersection: Integers  # true pixels that were predicted as the class
    union: Integers  # pixels that are of the class or were predicted as it

    @classmethod
    def of(cls, table: Integers) -> "Overlaps":
        """The overlaps of confusion matrices [... classes classes]."""
        truth, inside = table.sum(-1), np.diagonal(table, axis1=-2, axis2=-1)
        return cls(truth, inside.copy(), truth + table.sum(-2) - inside)

    @classmethod
    def joined(cls, tables: Iterable[Integers]) -> "Overlaps":
        """Overlaps of the images of several confusion tables, with one table in memory at a time."""
        parts, names = [cls.of(some) for some in tables], ("truth", "intersection", "union")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def sum(self, images: Mask) -> "Overlaps":
        """Summed overlaps of the images that the mask [images] selects."""
        return Overlaps(*(counts[images].sum(0) for counts in (self.truth, self.intersection, self.union)))

    @property
    def iou(self) -> Floats:
        """IoU of each class, as fractions; NaN for a class without true or predicted pixels."""
        return _ratio(self.intersection, self.union)

    def mean_iou(self, averaged: Averaged = "shown") -> float:
        """Mean IoU over the averaged classes, as a fraction; NaN if there are none."""
        classes = {"shown": self.truth > 0, "seen": self.union > 0, "all": self.truth >= 0}[averaged]
        return mean_of_any(np.nan_to_num(self.iou)[classes])

    def mean_accuracy(self) -> float:
        """Mean over the true classes of the share of their pixels that are predicted correctly."""
        return mean_of_any(_ratio(self.intersection, self.truth)[self.truth > 0])

    def accuracy(self) -> float:
        """Share of the pixels that are predicted correctly; NaN if there are none."""
        return float(_ratio(self.intersection.sum(), self.truth.sum()))


def names_of_predictions(table: Integers) -> Integers:
    """For each class the predicted class that is renamed to it, to maximise the sum of IoU: [classes].

    The renaming is one-to-one (Hungarian matching), as for clusters. It never lowers a score, and it hides
    swapped classes.
    """
    truth, given = table.sum(1)[:, None], table.sum(0)
    row, column = linear_sum_assignment(table / np.maximum(truth + given - table, 1), maximize=True)
    return np.asarray(column[np.argsort(row)], np.int64)


def mean_iou_of_labels(truth: Labels, predicted: Labels, ignored: frozenset[int]) -> float:
    """Mean IoU, as a fraction, over the true and predicted labels of pixels whose true label is not ignored.

    An ignored label that is predicted there counts as a class with IoU 0. NaN if no pixel counts. Source: the
    evaluation of CAPI (facebookresearch/capi, commit 98b4fa1).
    """
    judged = ~np.isin(truth, sorted(ignored))
    table = confusion(np.where(judged, truth, VOID), np.where(judged, predicted, 0).astype(np.uint8), 256)
    return Overlaps.of(table).mean_iou("seen")


def _ratio(part: Integers, whole: Integers) -> Floats:
    result: Floats = np.full(np.shape(whole), np.nan)
    np.divide(part, whole, out=result, where=np.asarray(whole) > 0)
    return result
