"""Scores of a layer's heads and of the layer, with the images behind them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tasks.base import Group, Items, Measurements, Outcome, Score, Source, Statistic
from tasks.metrics.arrays import Floats

NOT_FINITE = "attention probabilities are not finite"
"""Why a layer has no scores whose attention overflowed."""


class Tally:
    """Collects the scores of one layer and pooling; those of images have items, and so intervals."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = tuple(keys)
        self._scores: list[Score] = []
        self._values: dict[str, Floats] = {}
        self._statistics: dict[str, Statistic] = {}

    def images(self, metric: str, values: Floats, head: int = -1) -> None:
        """The mean over the images of one value each, [images]."""
        score = Score(metric, float(values.mean()), len(values), "images", head)
        self._scores.append(score)
        self._values[score.statistic] = values
        self._statistics[score.statistic] = Statistic(score.statistic)

    def heads(self, metric: str, values: Floats) -> None:
        """All heads together and each, of one value an image and head, [images heads]."""
        self.images(metric, values.mean(axis=1))
        for head in range(values.shape[1]):
            self.images(metric, np.ascontiguousarray(values[:, head]), head)

    def whole(self, metric: str, values: Floats) -> None:
        """All heads together and each, of one value a head, [heads], that is no mean over images.

        Heads without a value (NaN) are left out.
        """
        there = np.flatnonzero(~np.isnan(values))
        if len(there):
            self.number(metric, float(values[there].mean()), len(self._keys), "images")
        for head in there.tolist():
            self._scores.append(Score(metric, float(values[head]), len(self._keys), "images", head))

    def number(self, metric: str, value: float, n: int, unit: str) -> None:
        """A score that is no mean over images, and has no interval."""
        self._scores.append(Score(metric, value, n, unit))

    def outcome(self) -> Outcome:
        """What was collected."""
        items = Items(
            "images", self._keys, self._keys, ("",) * len(self._keys), self._values, self._statistics
        )
        return Outcome(tuple(self._scores), items if self._values else None)


def seen(source: Source, measurements: Sequence[Measurements]) -> list[tuple[Group, Measurements]]:
    """The groups of which any image could be read, in order, with what they left behind."""
    pairs = zip(source.groups, measurements, strict=True)
    return [(group, one) for group, one in pairs if "position" in one]


def keys_of(found: Sequence[tuple[Group, Measurements]]) -> tuple[str, ...]:
    """Keys of the images that were measured, in the order of their measurements."""
    return tuple(group.samples[place].key for group, one in found for place in one["position"].tolist())


def joined(found: Sequence[tuple[Group, Measurements]], name: str) -> Floats:
    """One measurement of all images, [images ...]."""
    return np.concatenate([np.asarray(one[name], np.float64) for _, one in found])


def summed(found: Sequence[tuple[Group, Measurements]], name: str) -> Floats:
    """The sum of a measurement over the groups."""
    parts: list[NDArray[np.float64]] = [np.asarray(one[name], np.float64) for _, one in found]
    return np.asarray(np.sum(parts, axis=0))
