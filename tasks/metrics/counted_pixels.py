"""Pixels of images by their scores: metrics of all pixels as one value an image, which vary as they do.

An image is sampled with all its pixels, so that an interval follows from the values of images, as of
`tasks.metrics.linearised`. These need no more than counts of pixels at some thousand scores.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from layerboard.tasks.metrics.arrays import Floats, Mask

STEPS = 1_000  # scores of either kind that are told apart; the error of a metric needs no more


@dataclass(frozen=True, slots=True)
class CountedPixels:
    """Pixels of images by their scores, those of defects apart from the others: [images scores] each.

    Scores fall along the second axis; what is counted together is taken as of one score, and ties count half.
    """

    good: Floats  # pixels outside all regions
    defective: Floats  # pixels of regions
    weight: Floats  # of these: one over the pixels of the region, so that a region's weights are one

    @classmethod
    def of(
        cls, images: Sequence[tuple[Floats, Floats, Floats]], good: Floats, defective: Floats
    ) -> "CountedPixels":
        """Pixels of images: scores of good ones, of defective ones, and weights of these.

        ``good`` and ``defective`` are those of all images, rising; about `STEPS` of them are one step.
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
        """AUROC of all pixels, 0 to 1: [images].

        Source: Obuchowski, Nonparametric analysis of clustered ROC curve data, Biometrics 53, 1997.
        """
        good, defective = (each / each.sum() for each in (self.good, self.defective))
        above, below = (_middle(each.sum(0)) for each in (defective, good))
        value = float((defective.sum(0) * (1 - below)).sum())
        added = defective @ (1 - below) + good @ above
        alone = value * (defective.sum(1) + good.sum(1))
        return np.asarray(value + len(good) * (added - alone), np.float64)

    def f1_max(self) -> Floats:
        """The largest F1 of all thresholds, 0 to 1: [images]."""
        hits, wrong = self.defective.sum(0).cumsum(), self.good.sum(0).cumsum()
        best = int(np.argmax(2 * hits / (hits + wrong + hits[-1]))) + 1
        hit = self.defective[:, :best].sum(1)
        return f1_values(hit + self.good[:, :best].sum(1), hit, self.defective.sum(1))

    def au_pro(self, limit: float) -> Floats:
        """Mean share of a region that is found, over false-positive rates up to a limit, 0 to 1: [images].

        An image counts by its regions, and by its good pixels, which move the thresholds of all rates.
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


def f1_values(taken: Floats | Mask, hit: Floats | Mask, relevant: Floats | Mask) -> Floats:
    """F1 of what is taken, is rightly so, and is to be found in each image: [images] each."""
    size = taken.sum() + relevant.sum()
    value = 2 * hit.sum() / size
    added = 2 * hit - value * (taken.astype(np.float64) + relevant)
    return np.asarray(value + len(hit) * added / size, np.float64)


def _middle(shares: Floats) -> Floats:
    """Sum of the shares before each one and half of its own."""
    return np.asarray(shares.cumsum() - shares / 2, np.float64)
