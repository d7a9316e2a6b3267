"""Classification of validation images by what the training images show: what such tasks have in common."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tasks.base import Items, Outcome, Score, Source, Statistic
from tasks.datasets.base import Coverage
from tasks.datasets.classes import Classification
from tasks.sources import ProbedClasses
from tasks.task import VectorTask


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


@dataclass(frozen=True, eq=False)
class LabelledTask(VectorTask):
    """A task that gives classes to validation images by the vectors of training images."""

    data: ProbedClasses

    @property
    def images(self) -> Classification:
        """The training and the validation images."""
        return self.data.images

    @property
    def split(self) -> str:
        """What was read of the dataset."""
        return self.images.split

    @property
    def coverage(self) -> Coverage:
        """How complete the dataset is."""
        return self.images.coverage

    @property
    def vector_sources(self) -> tuple[Source, ...]:
        """The sources of the training images (probe subset and rest) and of the validation images."""
        where = self.data.where
        rest = () if where.rest is None else (where.rest,)
        return (where.probe, *rest, where.val)

    @property
    def fitted_on(self) -> tuple[Source, ...]:
        """What a transform of vectors is fitted on: the training images, whose labels it does not see."""
        return self.vector_sources[:-1]

    def bank(self, vectors: Mapping[str, NDArray[np.float32]]) -> NDArray[np.float32]:
        """Training vectors [images dim] in the dataset's order, whatever the order of their sources."""
        where = self.data.where
        probe = vectors[where.probe.name]
        bank = np.empty((len(self.images.train.samples), probe.shape[1]), np.float32)
        bank[where.probe_order] = probe
        if where.rest is not None:
            bank[where.rest_order] = vectors[where.rest.name]
        return bank

    def labelled(self, vectors: Mapping[str, NDArray[np.float32]]) -> Labelled:
        """Vectors and classes of all images that could be read."""
        bank, queries = self.bank(vectors), vectors[self.data.where.val.name]
        stored, asked = ~np.isnan(bank[:, 0]), ~np.isnan(queries[:, 0])
        return Labelled(
            bank[stored],
            self.images.train.labels[stored],
            queries[asked],
            self.images.val.labels[asked],
            tuple(s.key for s, ok in zip(self.images.val.samples, asked, strict=True) if ok),
            np.flatnonzero(stored),
        )
