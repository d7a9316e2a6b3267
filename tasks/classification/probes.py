"""Classification of images from training images: shared parts of such tasks, and the two linear probes.

Sources: few shots: Dosovitskiy et al., ICLR 2021, section 4.1; Raghu et al., NeurIPS 2021, appendices A, F.
All labels: Walmer et al., CVPR 2023, section E.4 and Table 6, which do not state the recipe. The recipe is
ours: it uses stored vectors, so images are not augmented.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from layerboard.tasks.classification.calibration import calibration_gaps, expected_calibration_error
from layerboard.tasks.classification.few_shot import FewShotRule, as_tensor, draw_shots, fit_all, fit_few_shot
from layerboard.tasks.classification.softmax import SoftmaxRule, fit_softmax, held_out, standardised
from layerboard.tasks.datasets.base import Coverage, Sample
from layerboard.tasks.datasets.classes import Classification
from layerboard.tasks.framework.base import (
    NEIGHBOUR,
    Device,
    Items,
    Outcome,
    Score,
    Source,
    Statistic,
    digest,
)
from layerboard.tasks.framework.checks import unlearnable, unusable
from layerboard.tasks.framework.examples import Predicted, by_key, drawn_indices
from layerboard.tasks.framework.protocols import EvaluationProtocol
from layerboard.tasks.framework.registry import TaskEntry
from layerboard.tasks.framework.sources import ProbedClasses
from layerboard.tasks.framework.task import Task, VectorTask
from layerboard.tasks.framework.transformed import Vectors
from layerboard.tasks.metrics.arrays import Floats, Integers
from layerboard.tasks.metrics.folds import FOLDS, SEED, group_numbers, stratified_folds
from layerboard.zoo.errors import InputError

Rows = slice | NDArray[np.bool_]  # slice or mask of some images

QUERIES = 16  # number of tested images in the examples, with classes taking turns
PICTURED = 6  # number of mistakes with an example image
MISTAKES = 128  # number of mistakes kept (true class, predicted class), the most frequent ones
ECE = "ECE "  # prefix of an accuracy metric: the calibration error of the same predictions
UNTRAINED = "a fold leaves no image of a class to learn from; a class needs images of more groups"


class Answers(NamedTuple):
    """Predictions of one classifier, or for each of several random draws of its training images."""

    given: Integers  # predicted class of each image, [m] or [draws m]
    confidence: Floats  # predicted probability of this class, [m] or [draws m]

    @classmethod
    def none(cls, *shape: int) -> "Answers":
        """Empty answers to be filled in."""
        return cls(np.zeros(shape, np.int64), np.zeros(shape))

    def calibration(self, truth: Integers) -> tuple[float, Floats]:
        """Expected calibration error in percent, mean over draws, and the images' contributions as fractions.

        ``truth`` are the true classes, [m]; the contributions have the shape of `given`.
        """
        draws = [*zip(np.atleast_2d(self.confidence), np.atleast_2d(self.given == truth), strict=True)]
        error = 100.0 * float(np.mean([expected_calibration_error(*draw) for draw in draws]))
        return error, np.reshape([calibration_gaps(*draw) for draw in draws], self.given.shape)

    def by_class(self, truth: Integers, classes: int, keys: Sequence[str]) -> Predicted:
        """Number of images and of correct predictions per class [classes], and the most frequent mistakes.

        A mistake is a row with the true class, the predicted class and the number of images; zeros for none.
        For the first mistakes the name of an image is kept. With several draws the numbers are means, rounded
        for mistakes.
        """
        given = np.atleast_2d(self.given)
        wrong = given != truth
        cells = (truth * classes + given)[wrong]
        pairs, firsts, counts = np.unique(cells, return_index=True, return_counts=True)
        counts = np.round(counts / len(given)).astype(np.int64)
        order = np.argsort(-counts, kind="stable")[:MISTAKES]
        order = order[counts[order] > 0]
        mistaken = np.zeros((MISTAKES, 3), np.int32)
        mistaken[: len(order)] = np.stack([*np.divmod(pairs[order], classes), counts[order]], axis=1)
        images = np.nonzero(wrong)[1][firsts[order[:PICTURED]]]
        names = np.asarray([*(keys[row] for row in images), *[""] * (PICTURED - len(images))])
        every = np.bincount(truth, minlength=classes)
        right = np.bincount(np.broadcast_to(truth, given.shape)[~wrong], minlength=classes)
        shares = right if len(given) == 1 else right / len(given)
        return {"class_right": shares, "class_images": every, "mistaken": mistaken, "mistaken_image": names}


@dataclass(frozen=True, slots=True)
class LabelledVectors:
    """Vectors and classes of the readable images.

    If every image is tested by the others, the test images are the training images.
    """

    train: NDArray[np.float32]  # [n dim], in the dataset's order
    labels: NDArray[np.int64]  # their classes, [n]
    test: NDArray[np.float32]  # [m dim]
    truth: NDArray[np.int64]  # their classes, [m]
    keys: tuple[str, ...]  # their names, [m]
    stored: NDArray[np.int64]  # indices of the training images in the dataset, [n]
    clusters: tuple[str, ...]  # cluster that each test image is sampled with: its group or itself, [m]
    groups: Integers | None = None  # group numbers if every image is tested by the others, [n]
    folds: Integers | None = None  # fold in which each image is held out, [n]

    @property
    def unusable(self) -> str:
        """Reason why the vectors cannot be scored; "" if they can."""
        return unusable(self.train) or unusable(self.test, constant=False)

    @property
    def parts(self) -> list[tuple[Rows, Rows]]:
        """Training images and the test images classified with them, as slices or masks."""
        if self.folds is None:
            return [(slice(None), slice(None))]
        return [(self.folds != fold, self.folds == fold) for fold in np.unique(self.folds)]

    def fewest(self, classes: int) -> int:
        """Number of training images of the smallest class, in the part with the fewest."""
        return min(int(np.bincount(self.labels[known], minlength=classes).min()) for known, _ in self.parts)

    def outcome(
        self,
        correct: Mapping[str, NDArray[np.float64]],
        missing: Mapping[str, str] | None = None,
        calibration: Mapping[str, tuple[float, Floats]] | None = None,
        moved: Mapping[str, Floats] | None = None,
    ) -> Outcome:
        """Scores in percent, one per metric, from whether each test image was classified correctly.

        ``correct`` is 1 or 0: [m], or [draws m] for several random draws of the training images.
        ``calibration`` has further metrics: the results of `Answers.calibration`. ``moved`` has what each
        image, as a neighbour of others, adds to their number of correct ones: [m] with mean 0.
        """
        errors = calibration or {}
        columns = {**correct, **{metric: added for metric, (_, added) in errors.items()}}
        values: dict[str, NDArray[np.float64]] = {}
        for metric, column in columns.items():
            values[metric] = 100.0 * np.mean(np.atleast_2d(column), axis=0)
            if column.ndim == 2:
                values |= {f"{metric} draw {row}": 100.0 * draw for row, draw in enumerate(column, start=1)}
        values |= {f"{metric}{NEIGHBOUR}": 100.0 * added for metric, added in (moved or {}).items()}
        means = {metric: float(values[metric].mean()) for metric in correct}
        means |= {metric: error for metric, (error, _) in errors.items()}
        scores = [Score(metric, value, len(self.keys), "images") for metric, value in means.items()]
        statistics = {
            metric: Statistic(metric, "draws" if column.ndim == 2 else "items")
            for metric, column in columns.items()
        }
        items = Items("images", self.keys, self.clusters, ("",) * len(self.keys), values, statistics)
        return Outcome(tuple(scores), items if values else None, missing=missing or {})

    def answered(
        self,
        answers: Mapping[str, Answers],
        calibrated: Sequence[str],
        missing: Mapping[str, str] | None = None,
    ) -> Outcome:
        """Accuracy of the answers, one metric each, and the calibration error of those in ``calibrated``."""
        correct = {metric: (each.given == self.truth).astype(np.float64) for metric, each in answers.items()}
        known = [name for name in calibrated if name in answers]
        errors = {f"{ECE}{name}": answers[name].calibration(self.truth) for name in known}
        return self.outcome(correct, missing, errors)


@dataclass(frozen=True, eq=False)
class LabelledTask(VectorTask):
    """A task that classifies images from the vectors of training images.

    If the dataset has no val, every image is tested with all others outside its group as training images, or
    with those of the other folds.
    """

    data: ProbedClasses
    by_folds: ClassVar[bool] = True  # whether a dataset without val is tested by folds, or leave-one-out
    keeps_examples = True

    @classmethod
    def by(cls, protocol: EvaluationProtocol, data: ProbedClasses, row: TaskEntry) -> Task:
        """The task on ``data``; raises InputError if there is no val and a class has too few images."""
        if reason := data.images.untestable:
            raise InputError(reason)
        return super().by(protocol, data, row)

    @property
    def images(self) -> Classification:
        return self.data.images

    @property
    def split(self) -> str:
        if self.images.val:
            return "train, val"
        return f"all images, {FOLDS} folds (seed {SEED})" if self.by_folds else "all images, leave-one-out"

    @property
    def coverage(self) -> Coverage:
        return self.images.coverage

    @property
    def vector_sources(self) -> tuple[Source, ...]:
        return self.data.sources

    @cached_property
    def fingerprint(self) -> str:
        groups = [side.groups for side in self.images.sides.values() if side.groups]
        every = () if self.images.val else (self.split,)
        labels = (side.labels for side in self.images.sides.values())
        return digest(self.entry.name, self.config, *labels, *every, *groups)

    @property
    def fitted_on(self) -> tuple[Source, ...]:
        """Sources that a transform is fitted on: the training images, without their labels."""
        return tuple(source for source in self.vector_sources if source is not self.data.val)

    @cached_property
    def folds(self) -> Integers:
        """Fold in which each training image is held out, [images]."""
        train = self.images.train
        return stratified_folds(train.labels, group_numbers(train.clusters))

    def bank(self, vectors: Vectors) -> NDArray[np.float32]:
        """Training vectors [images dim] in dataset order, independent of the order of the sources."""
        data, probe = self.data, vectors[self.data.probe.name]
        bank = np.empty((len(self.images.train.samples), probe.shape[1]), np.float32)
        bank[data.probe_order] = probe
        if data.rest is not None:
            bank[data.rest_order] = vectors[data.rest.name]
        return bank

    def labelled(self, vectors: Vectors) -> LabelledVectors:
        """Vectors and classes of all readable images."""
        bank, tested, val = self.bank(vectors), self.images.tested, self.data.val
        queries = bank if val is None else vectors[val.name]
        stored, asked = ~np.isnan(bank[:, 0]), ~np.isnan(queries[:, 0])
        clusters = tuple(compress(tested.clusters, asked))
        known = bank[stored]
        return LabelledVectors(
            known,
            self.images.train.labels[stored],
            known if val is None else queries[asked],
            tested.labels[asked],
            tuple(compress(tested.keys, asked)),
            np.flatnonzero(stored),
            clusters,
            group_numbers(clusters) if val is None else None,
            self.folds[stored] if val is None and self.by_folds else None,
        )

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes."""
        return self.images.train.classes

    @cached_property
    def queries(self) -> tuple[str, ...]:
        """Names of the examples among the tested images."""
        keys = self.images.tested.keys
        return tuple(keys[row] for row in drawn_indices(keys, QUERIES, self.images.tested.labels.tolist()))

    def predicted(self, images: LabelledVectors, answers: Answers) -> Predicted:
        """Predictions of a layer for the examples (empty texts for an unreadable one), and for all classes.

        With several draws, the examples are those of the first draw.
        """
        rows = {key: row for row, key in enumerate(images.keys)}
        names, given = np.asarray(self.classes, str), np.atleast_2d(answers.given)[0]
        predicted, right = np.full(len(self.queries), "", names.dtype), np.zeros(len(self.queries), np.bool_)
        for number, key in enumerate(self.queries):
            if key in rows:
                row = rows[key]
                predicted[number], right[number] = names[given[row]], given[row] == images.truth[row]
        by_class = answers.by_class(images.truth, len(self.classes), images.keys)
        return {"predicted": predicted, "right": right, **by_class}

    def facts(self) -> Predicted:
        tested = self.images.tested
        labels = dict(zip(tested.keys, tested.labels, strict=True))
        classes = [self.classes[labels[key]] for key in self.queries]
        every = np.asarray(self.classes, str)
        return {"query": np.asarray(self.queries, str), "class": np.asarray(classes, str), "classes": every}

    def pictures(self, predicted: Sequence[Predicted]) -> Mapping[str, Sample]:
        mistaken = [str(key) for layer in predicted for key in layer["mistaken_image"]]
        return by_key(self.images.tested.samples, [*self.queries, *filter(None, mistaken)])


_PENALTIES = tuple(2.0**power for power in range(-6, 21, 2))
_STANDARD = FewShotRule(
    shots=(10, 1, 5, 25), seeds=(0, 1, 2), penalties=_PENALTIES, held_out=5, penalty=2.0**10
)


@dataclass(frozen=True, eq=False)
class FewShotTask(LabelledTask):
    """Classification of validation images by closed-form probes of a few training images per class."""

    config: FewShotRule
    configs: ClassVar = {"standard": _STANDARD, "paper": replace(_STANDARD, penalties=())}
    all_tokens = True
    takes_shots = True

    @classmethod
    def with_shots(cls, config: FewShotRule, shots: tuple[int, ...]) -> FewShotRule:
        usual = config.shots[0]
        first = usual if usual in shots else max(shots)  # of the primary metric
        return replace(config, shots=(first, *(count for count in shots if count != first)))

    @cached_property
    def entry(self) -> TaskEntry:
        entry = super().entry
        return replace(entry, metrics=tuple(dict.fromkeys((metric_of(self.config.shots[0]), *entry.metrics))))

    def score(self, vectors: Vectors, device: Device = None) -> Outcome:
        """Top-1 accuracy in percent for each number of shots, averaged over the draws."""
        images = self.labelled(vectors)
        if reason := images.unusable or unlearnable(images.train, images.labels):
            return Outcome((), empty=reason)
        fewest = images.fewest(len(self.classes))
        possible = [shots for shots in self.config.shots if shots <= fewest]
        answers = {metric_of(shots): self._answers(images, shots, device) for shots in possible}
        missing = {metric_of(shots): too_few(shots, fewest) for shots in self.config.shots if shots > fewest}
        outcome = images.answered(answers, [self.entry.metric], missing)
        first = next(iter(answers.values()), None)
        return replace(outcome, predicted=self.predicted(images, first)) if first else outcome

    def _answers(self, images: LabelledVectors, shots: int, device: Device) -> Answers:
        """Predictions for all test images from each random draw of ``shots`` images per class."""
        answers = Answers.none(len(self.config.seeds), len(images.truth))
        for known, asked in images.parts:
            train, labels = images.train[known], images.labels[known]
            test = as_tensor(images.test[asked], device)
            for row, seed in enumerate(self.config.seeds):
                rows = draw_shots(labels, len(self.classes), shots, seed)
                probe = fit_few_shot(as_tensor(train[rows], device), self.config)
                answers.given[row, asked], answers.confidence[row, asked] = probe.classified(test)
        return answers


def metric_of(shots: int) -> str:
    """Name of the metric for a number of shots."""
    return f"top1-{shots}shot"


def too_few(shots: int, fewest: int) -> str:
    """Reason why there is no score for a number of shots."""
    return f"{shots} shots need {shots} readable training images of every class; one class has {fewest}"


_RATES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
_TRAINING = SoftmaxRule(20, 1024, 0.9, _RATES, held_out=100, least=4, seed=0, penalties=_PENALTIES)


@dataclass(frozen=True, eq=False)
class LinearTask(LabelledTask):
    """Classification of validation images by softmax and ridge regression on all training images."""

    config: SoftmaxRule
    configs: ClassVar = {
        "standard": _TRAINING,
        # a fifth of the few images chooses the rate, as many as in VTAB's lists
        "vtab": replace(_TRAINING, epochs=100, batch=100, held_out=5, least=1),
    }
    all_tokens = True

    @property
    def products(self) -> int:
        """Products in the forward and the backward passes of all epochs."""
        train, fits = self.images.train, 1 if self.images.val else FOLDS - 1  # passes in all folds
        seen = fits * len(train.labels)
        return 3 * len(self.config.rates) * self.config.epochs * seen * len(train.classes)

    def score(self, vectors: Vectors, device: Device = None) -> Outcome:
        """Top-1 accuracy in percent of vectors as they are, standardised (``-bn``), by ridge regression."""
        images = self.labelled(vectors)
        if reason := images.unusable or unlearnable(images.train, images.labels):
            return Outcome((), empty=reason)
        if images.folds is not None and not images.fewest(len(self.classes)):
            return Outcome((), empty=UNTRAINED)
        answers = {metric: Answers.none(len(images.truth)) for metric in ("top1", "top1-bn", "top1-ridge")}
        classes = len(self.classes)
        for known, asked in images.parts:
            held = held_out(images.labels[known], classes, self.config)
            arrays = (images.labels[known], held, images.train[known], images.test[asked])
            labels, chosen, train, test = (as_tensor(array, device) for array in arrays)
            features = {"top1": (train, test), "top1-bn": standardised(train, test)}
            given = {
                metric: fit_softmax(learnt, labels, chosen, classes, self.config).classified(new)
                for metric, (learnt, new) in features.items()
            }
            ridge = fit_all(train, labels, chosen, classes, self.config.penalties)
            for metric, parts in (given | {"top1-ridge": ridge.classified(test)}).items():
                answers[metric].given[asked], answers[metric].confidence[asked] = parts
        outcome = images.answered(answers, [*answers])
        return replace(outcome, predicted=self.predicted(images, answers["top1"]))
