"""Classes of images by what training images show: what such tasks share, and the two linear probes.

Sources: few shots: Dosovitskiy et al., ICLR 2021, section 4.1; Raghu et al., NeurIPS 2021, appendices A, F.
All labels: Walmer et al., CVPR 2023, section E.4 and Table 6, which leave the recipe open; it is ours, on
stored vectors, so images are not augmented.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from layerboard.tasks.base import Device, Items, Outcome, Score, Source, Statistic, digest
from layerboard.tasks.checks import unlearnable
from layerboard.tasks.datasets.base import Coverage
from layerboard.tasks.datasets.classes import Classification
from layerboard.tasks.metrics.few_shot import FewShotRule, as_tensor, draw_shots, fit_few_shot
from layerboard.tasks.metrics.softmax import SoftmaxRule, fit_softmax, held_out, standardised
from layerboard.tasks.sources import ProbedClasses
from layerboard.tasks.task import VectorTask
from layerboard.tasks.transformed import Vectors


@dataclass(frozen=True, slots=True)
class LabelledVectors:
    """Vectors of the images that could be read, and their classes."""

    train: NDArray[np.float32]  # [n dim], in the dataset's order
    labels: NDArray[np.int64]  # their classes, [n]
    test: NDArray[np.float32]  # [m dim]
    truth: NDArray[np.int64]  # their classes, [m]
    keys: tuple[str, ...]  # their names, [m]
    stored: NDArray[np.int64]  # places of the training images in the dataset, [n]
    clusters: tuple[str, ...]  # what the test images are sampled with: their group, or each alone, [m]

    def outcome(
        self, correct: Mapping[str, NDArray[np.float64]], missing: Mapping[str, str] | None = None
    ) -> Outcome:
        """Scores in percent, one a metric, of whether each test image was given its class.

        It was, 1, or not, 0: [m], or [draws m] of several random draws of the training images.
        """
        values: dict[str, NDArray[np.float64]] = {}
        for metric, right in correct.items():
            values[metric] = 100.0 * np.mean(np.atleast_2d(right), axis=0)
            if right.ndim == 2:
                values |= {f"{metric} draw {row}": 100.0 * draw for row, draw in enumerate(right, start=1)}
        scores = [Score(metric, float(values[metric].mean()), len(self.keys), "images") for metric in correct]
        statistics = {
            metric: Statistic(metric, "draws" if right.ndim == 2 else "items")
            for metric, right in correct.items()
        }
        items = Items("images", self.keys, self.clusters, ("",) * len(self.keys), values, statistics)
        return Outcome(tuple(scores), items if values else None, missing=missing or {})


@dataclass(frozen=True, eq=False)
class LabelledTask(VectorTask):
    """A task that gives classes to validation images by the vectors of training images."""

    data: ProbedClasses

    @property
    def images(self) -> Classification:
        return self.data.images

    @property
    def split(self) -> str:
        return self.images.split

    @property
    def coverage(self) -> Coverage:
        return self.images.coverage

    @property
    def vector_sources(self) -> tuple[Source, ...]:
        sources = (self.data.probe, self.data.rest, self.data.val)
        return tuple(source for source in sources if source is not None)

    @cached_property
    def fingerprint(self) -> str:
        return digest(self.entry.name, self.config, self.images.train.labels, self.images.val.labels)

    @property
    def fitted_on(self) -> tuple[Source, ...]:
        """What a transform of vectors is fitted on: the training images, whose labels it does not see."""
        return self.vector_sources[:-1]

    def bank(self, vectors: Vectors) -> NDArray[np.float32]:
        """Training vectors [images dim] in the dataset's order, whatever the order of their sources."""
        data, probe = self.data, vectors[self.data.probe.name]
        bank = np.empty((len(self.images.train.samples), probe.shape[1]), np.float32)
        bank[data.probe_order] = probe
        if data.rest is not None:
            bank[data.rest_order] = vectors[data.rest.name]
        return bank

    def labelled(self, vectors: Vectors) -> LabelledVectors:
        """Vectors and classes of all images that could be read."""
        bank, queries, val = self.bank(vectors), vectors[self.data.val.name], self.images.val
        stored, asked = ~np.isnan(bank[:, 0]), ~np.isnan(queries[:, 0])
        return LabelledVectors(
            bank[stored],
            self.images.train.labels[stored],
            queries[asked],
            val.labels[asked],
            tuple(compress(val.keys, asked)),
            np.flatnonzero(stored),
            tuple(compress(val.clusters, asked)),
        )


_PENALTIES = tuple(2.0**power for power in range(-6, 21, 2))
_STANDARD = FewShotRule(
    shots=(10, 1, 5, 25), seeds=(0, 1, 2), penalties=_PENALTIES, held_out=5, penalty=2.0**10
)


@dataclass(frozen=True, eq=False)
class FewShotTask(LabelledTask):
    """Validation images classified by closed-form probes of a few training images a class."""

    config: FewShotRule
    configs: ClassVar = {"standard": _STANDARD, "paper": replace(_STANDARD, penalties=())}
    all_tokens = True
    takes_shots = True

    @classmethod
    def with_shots(cls, config: FewShotRule, shots: tuple[int, ...]) -> FewShotRule:
        first = config.shots[0]  # of the primary metric
        return replace(config, shots=(first, *(count for count in shots if count != first)))

    def score(self, vectors: Vectors, device: Device = None) -> Outcome:
        """Top-1 in percent for each number of shots, the mean of the draws."""
        labelled, classes = self.labelled(vectors), len(self.images.train.classes)
        if reason := unlearnable(labelled.train, labelled.labels) or unlearnable(labelled.test):
            return Outcome((), empty=reason)
        fewest = int(np.bincount(labelled.labels, minlength=classes).min())
        test, truth = as_tensor(labelled.test, device), as_tensor(labelled.truth, device)
        correct, missing = {}, {}
        for shots in self.config.shots:
            if shots > fewest:
                missing[metric_of(shots)] = too_few(shots, fewest)
                continue
            draws = (draw_shots(labelled.labels, classes, shots, seed) for seed in self.config.seeds)
            probes = (fit_few_shot(as_tensor(labelled.train[rows], device), self.config) for rows in draws)
            right = [probe.correct(test, truth) for probe in probes]
            correct[metric_of(shots)] = np.asarray(right, np.float64)
        return labelled.outcome(correct, missing)


def metric_of(shots: int) -> str:
    """Name of the metric of so many shots."""
    return f"top1-{shots}shot"


def too_few(shots: int, fewest: int) -> str:
    """Why there is no score of so many shots."""
    return f"{shots} shots need {shots} readable training images of every class; one class has {fewest}"


_RATES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
_TRAINING = SoftmaxRule(epochs=20, batch=1024, momentum=0.9, rates=_RATES, held_out=100, least=4, seed=0)


@dataclass(frozen=True, eq=False)
class LinearTask(LabelledTask):
    """Validation images classified by soft-max regressions that saw all training images."""

    config: SoftmaxRule
    configs: ClassVar = {"standard": _TRAINING}
    all_tokens = True

    @property
    def products(self) -> int:
        """Products of the forward and the backward pass of all epochs."""
        train = self.images.train
        return 3 * len(self.config.rates) * self.config.epochs * len(train.labels) * len(train.classes)

    def score(self, vectors: Vectors, device: Device = None) -> Outcome:
        """Top-1 in percent of the vectors as they are (``top1``) and standardised (``top1-bn``)."""
        labelled, classes = self.labelled(vectors), len(self.images.train.classes)
        if reason := unlearnable(labelled.train, labelled.labels) or unlearnable(labelled.test):
            return Outcome((), empty=reason)
        held = held_out(labelled.labels, classes, self.config)
        arrays = (labelled.labels, labelled.truth, held, labelled.train, labelled.test)
        labels, truth, chosen, train, test = (as_tensor(array, device) for array in arrays)
        correct = {}
        for metric, (stored, asked) in {"top1": (train, test), "top1-bn": standardised(train, test)}.items():
            probe = fit_softmax(stored, labels, chosen, classes, self.config)
            correct[metric] = probe.correct(asked, truth).astype(np.float64)
        return labelled.outcome(correct)
