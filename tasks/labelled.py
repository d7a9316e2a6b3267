"""Classification of validation images by what the training images show: what such tasks have in common."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tasks.base import Items, Outcome, Score, Source, Statistic
from tasks.datasets.classes import Classification
from tasks.sources import ClassificationSources


@dataclass(frozen=True, slots=True)
class Labelled:
    """Vectors of the images that could be read, and their classes.

    Attributes:
        train: [n dim], in the dataset's order.
        labels: Their classes, [n].
        test: [m dim].
        truth: Their classes, [m].
        keys: Their names, [m].
        stored: Places of the training images in the dataset, [n].
    """

    train: NDArray[np.float32]
    labels: NDArray[np.int64]
    test: NDArray[np.float32]
    truth: NDArray[np.int64]
    keys: tuple[str, ...]
    stored: NDArray[np.int64]

    def outcome(
        self, correct: Mapping[str, NDArray[np.float64]], missing: Mapping[str, str] | None = None
    ) -> Outcome:
        """Scores in percent, one a metric, with an interval over the test images.

        Args:
            correct: For each metric, how often each test image was given its class, [m], 0 to 1.
            missing: For each metric without a score, why.
        """
        values = {metric: 100.0 * shares for metric, shares in correct.items()}
        scores = (
            Score(metric, float(shares.mean()), len(shares), "images") for metric, shares in values.items()
        )
        statistics = {metric: Statistic(metric) for metric in values}
        items = Items("images", self.keys, self.keys, ("",) * len(self.keys), values, statistics)
        return Outcome(tuple(scores), items if values else None, missing=missing or {})


@dataclass(frozen=True)
class LabelledProblem:
    """A dataset of labelled images and the sources of their vectors.

    Attributes:
        data: The dataset.
        where: Its sources.
    """

    data: Classification
    where: ClassificationSources

    @property
    def sources(self) -> tuple[Source, ...]:
        """The sources of the training images (probe subset and rest) and of the validation images."""
        rest = () if self.where.rest is None else (self.where.rest,)
        return (self.where.probe, *rest, self.where.val)

    @property
    def fitted_on(self) -> tuple[Source, ...]:
        """What a transform of vectors is fitted on: the training images, whose labels it does not see."""
        return self.sources[:-1]

    def bank(self, vectors: Mapping[str, NDArray[np.float32]]) -> NDArray[np.float32]:
        """Training vectors [images dim] in the dataset's order, whatever the order of their sources."""
        probe = vectors[self.where.probe.name]
        bank = np.empty((len(self.data.train.samples), probe.shape[1]), np.float32)
        bank[self.where.probe_order] = probe
        if self.where.rest is not None:
            bank[self.where.rest_order] = vectors[self.where.rest.name]
        return bank

    def labelled(self, vectors: Mapping[str, NDArray[np.float32]]) -> Labelled:
        """Vectors and classes of all images that could be read."""
        bank, queries = self.bank(vectors), vectors[self.where.val.name]
        stored, asked = ~np.isnan(bank[:, 0]), ~np.isnan(queries[:, 0])
        return Labelled(
            bank[stored],
            self.data.train.labels[stored],
            queries[asked],
            self.data.val.labels[asked],
            tuple(s.key for s, ok in zip(self.data.val.samples, asked, strict=True) if ok),
            np.flatnonzero(stored),
        )
