"""Pixel metrics written as one value per image, for confidence intervals.

An image is sampled with all its pixels, so an interval follows from one value per image, as in
`tasks.statistics.linearised`. Pixel counts at a few thousand scores are enough for these values.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from layerboard.tasks.metrics.arrays import Floats
from layerboard.tasks.statistics.linearised import f1_values

STEPS = 1_000  # score levels for each kind of pixel; enough for the standard error of a metric


@dataclass(frozen=True, slots=True)
class CountedPixels:
    """Pixel counts by image and score level, separate for defects and other pixels: [images scores] each.

    Scores fall along the second axis. Pixels of one level count as having equal scores; ties count half.
    """

    good: Floats  # pixels outside all regions
    defective: Floats  # pixels of regions
    weight: Floats  # of defective pixels: 1 / pixels of the region, so that each region sums to 1

    @classmethod
    def of(
        cls, images: Sequence[tuple[Floats, Floats, Floats]], good: Floats, defective: Floats
    ) -> "CountedPixels":
        """Counts from the good scores, defective scores, and defective weights of each image.

        ``good`` and ``defective`` are the scores of all images, ascending, from which about `STEPS` levels
        are taken each.
        """
        few = [np.append(ranked[:: 1 + len(ranked) // STEPS], ranked[-1]) for ranked in (good, defective)]
        ends = np.unique(np.concatenate(few))
        counted = np.zeros((3, len(images), len(ends) + 1))
        for number, (outside, inside, weight) in enumerate(images):
            steps = [len(ends) - np.searchsorted(ends, values, "right") for values in (outside, inside)]
            for kind, (step, each) in enumerate(((steps[0], None), (steps[1], None), (steps[1], weight))):
                counted[kind, number] = np.bincount(step, each, len(ends) + 1)
        return cls(*counted)

    def area_under_roc(self) -> Floats:
        """AUROC of all pixels, 0 to 1, as a value per image: [images].

        Source: Obuchowski, Nonparametric analysis of clustered ROC curve data, Biometrics 53, 1997.
        """
        good, defective = (each / each.sum() for each in (self.good, self.defective))
        above, below = (_middle(each.sum(0)) for each in (defective, good))
        value = float((defective.sum(0) * (1 - below)).sum())
        added = defective @ (1 - below) + good @ above
        alone = value * (defective.sum(1) + good.sum(1))
        return np.asarray(value + len(good) * (added - alone), np.float64)

    def f1_max(self) -> Floats:
        """Maximum F1 over all thresholds, 0 to 1, as a value per image: [images]."""
        hits, wrong = self.defective.sum(0).cumsum(), self.good.sum(0).cumsum()
        best = int(np.argmax(2 * hits / (hits + wrong + hits[-1]))) + 1
        hit = self.defective[:, :best].sum(1)
        return f1_values(hit + self.good[:, :best].sum(1), hit, self.defective.sum(1))

    def au_pro(self, limit: float) -> Floats:
        """AU-PRO up to a false-positive rate, 0 to 1, as a value per image: [images].

        An image contributes by its regions, and by its good pixels, which change the threshold at each rate.
        """
        good, weight = self.good / self.good.sum(), self.weight / self.weight.sum()
        width = good.sum(0)
        before, last = width.cumsum() - width, weight.cumsum(1)
        taken = np.clip((limit - before) / np.where(width > 0, width, 1), 0, width > 0)  # part of each step
        first = last - weight
        middle = first + (last - first) * taken / 2  # [images scores]
        value, share = middle @ (taken * width) / limit, weight.sum(1)
        end = np.flatnonzero(taken)[-1]
        least = (first + (last - first) * taken)[:, end].sum()  # of all regions, at the limit
        moved = good @ (taken * (middle.sum(0) - least)) / limit
        total = value.sum()
        added = value - share * total + moved - good.sum(1) * (total - least)
        return np.asarray(total + len(good) * added, np.float64)


def _middle(shares: Floats) -> Floats:
    """Sum of the shares before each one, plus half of its own."""
    return np.asarray(shares.cumsum() - shares / 2, np.float64)
