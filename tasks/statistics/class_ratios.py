"""Class means of ratios of sums (mean IoU, mean accuracy), as functions of weighted images."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from layerboard.tasks.metrics.arrays import Floats, Integers
from layerboard.tasks.statistics.weighted import Part, as_weights, check_ids

Averaged = Literal["shown", "seen", "all"]
"""Classes that are averaged: those in the ground truth; those in the ground truth or the prediction, as in
mmsegmentation and dinov3; or all, where a class in neither counts as 0 (Hummingbird)."""


@dataclass(frozen=True)
class ClassRatios:
    """Several scores (layers) on the same images: means over classes of sum(part) / sum(whole).

    The averaged classes are determined from the images with a weight above 0; one whose sum(whole) is 0
    counts as 0. Raises ValueError if shapes do not match, or a value is negative, NaN or infinite.
    """

    part: Floats  # [scores images classes] float64 >= 0, such as pixels of the intersection
    whole: Floats  # the same shape, such as pixels of the union
    shown: Floats  # [images classes] float64 >= 0, true pixels of the class
    stratum: Integers  # [images] from 0
    averaged: Averaged

    def __post_init__(self) -> None:
        if self.part.ndim != 3 or self.part.shape != self.whole.shape:
            shapes = f"{self.part.shape} and {self.whole.shape}"
            raise ValueError(f"expected parts and wholes [scores images classes], found {shapes}")
        if self.shown.shape != self.part.shape[1:] or self.stratum.shape != self.part.shape[1:2]:
            shapes = f"{self.shown.shape} and {self.stratum.shape} for {self.part.shape}"
            raise ValueError(f"expected what is shown [images classes] and strata [images], found {shapes}")
        for values in (self.part, self.whole, self.shown):
            if not (np.isfinite(values) & (values >= 0)).all():
                raise ValueError("parts, wholes and what is shown must be finite and not negative")
        check_ids(self.stratum)

    @property
    def scores(self) -> int:
        return len(self.part)

    @cached_property
    def counts(self) -> Floats:
        """1 for images that show a class, 0 for others: [images]."""
        return np.asarray(self.shown.any(axis=1), np.float64)

    def evaluate(self, weights: Floats | None = None) -> Floats:
        """Scores under image weights [R images], as fractions: [R scores]; NaN if no class is shown."""
        weights = as_weights(weights, len(self.stratum))
        there = weights @ self.shown > 0
        scores = np.full((len(weights), self.scores), np.nan)
        for score, (part, whole) in enumerate(zip(self.part, self.whole, strict=True)):
            sums = weights @ whole
            share = np.divide(weights @ part, sums, out=np.zeros_like(sums), where=there & (sums > 0))
            classes = {"shown": there, "seen": there | (sums > 0), "all": np.ones_like(there)}[self.averaged]
            np.divide(share.sum(axis=1), classes.sum(axis=1), out=scores[:, score], where=there.any(axis=1))
        return scores

    def slopes(self) -> Floats:
        total = self.whole.sum(axis=1, keepdims=True)  # [scores 1 classes]
        there = self.shown.any(axis=0) & (total > 0)
        safe = np.where(total > 0, total, 1)
        ratio = self.part.sum(axis=1, keepdims=True) / safe
        counted = {"shown": self.shown.any(axis=0), "seen": self.shown.any(axis=0) | (total > 0), "all": True}
        classes = np.broadcast_to(counted[self.averaged], total.shape).sum(axis=2)
        slopes = np.where(there, (self.part - ratio * self.whole) / safe, 0).sum(axis=2) / np.maximum(
            classes, 1
        )
        return np.asarray(slopes.T, np.float64)

    def chance(self) -> list[Part]:
        return []
