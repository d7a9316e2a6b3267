"""Regression of numbers, and several labels an image, by ridge regressions in closed form.

Every image is predicted once, by a regression that was not trained on its fold.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from layerboard.tasks.datasets.base import Sample
from layerboard.tasks.datasets.targets import ImageLabels, ImageNumbers, Targets
from layerboard.tasks.framework.base import Device, Items, Outcome, Over, Score, Source, Statistic, digest
from layerboard.tasks.framework.checks import unusable
from layerboard.tasks.framework.examples import Predicted, by_key, drawn_indices
from layerboard.tasks.framework.sources import CHUNK, consecutive_groups
from layerboard.tasks.framework.task import VectorTask
from layerboard.tasks.framework.transformed import Vectors
from layerboard.tasks.metrics.arrays import Floats, Integers, Mask, origins
from layerboard.tasks.metrics.folds import ALWAYS_TRAINING, group_numbers
from layerboard.tasks.statistics import linearised, refitted
from layerboard.tasks.statistics.refitted import HeldOut, refitted_values
from layerboard.tasks.targets.held_out import RidgePredictions, VotePredictions
from layerboard.zoo.view.views import ResizeCrop, View

LEAST = 10  # least number of images
SHOWN = 16  # number of images in the examples
PRESENT = 0.5  # an image is predicted to have a label if the prediction is at least this
SAME = "the same for all images"

NUMBERS = {"R2": refitted.R2, "rho": refitted.RANK_CORRELATION, "MAE": refitted.MEAN_ERROR}
LABELS = {"macro AP": refitted.AVERAGE_PRECISION, "macro AUROC": refitted.AUROC}
OVER: Mapping[str, Over] = {"R2": "explained", "rho": "correlations", "MAE": "errors", "macro": "shares"}
"""What a metric averages over, by the first word of its name."""

Columns = dict[str, Floats]  # for each metric one value per image; the metric is the mean


@dataclass(frozen=True, slots=True)
class TargetConfig:
    """Settings of the prediction of table columns from images."""

    view: View
    penalties: tuple[float, ...]  # of ridge regression, per row, in units of the features' mean variance
    neighbours: int  # number of neighbours; the share of them with a label is scored, too


@dataclass(frozen=True, eq=False)
class TargetTask(VectorTask):
    """Prediction of values of images from their vectors, with regressions fitted to the other folds."""

    data: Targets
    config: TargetConfig
    configs: ClassVar = {
        "standard": TargetConfig(
            ResizeCrop(short=256, crop=224), tuple(10.0**power for power in range(-4, 5)), neighbours=20
        )
    }
    keeps_examples = True

    @cached_property
    def vector_sources(self) -> tuple[Source, ...]:
        groups = consecutive_groups(self.data.samples, CHUNK)
        return (Source(f"{self.data.name}/targets", groups, self.config.view, skip_unreadable=True),)

    @property
    def fitted_on(self) -> tuple[Source, ...]:
        """Sources that a transform is fitted on: all images if every one is tested, otherwise none."""
        return () if (self.data.fold == ALWAYS_TRAINING).any() else self.vector_sources

    def transform_refusal(self, transform: str) -> str:
        if not self.fitted_on:
            return "is fitted on all images only if each is tested; take the split out of the table"
        return super().transform_refusal(transform)

    @cached_property
    def fingerprint(self) -> str:
        return digest(self.entry.name, self.config, *self.data.truth)

    @abstractmethod
    def columns(
        self, truth: Floats, predicted: Mapping[str, HeldOut], unit: Integers, tested: Mask
    ) -> tuple[Columns, dict[str, str]]:
        """Columns of the tested images by metric, and reasons for missing ones.

        The truth is [images targets]; ``unit`` [images] is what each image is sampled with.
        """

    @abstractmethod
    def agreement(self, row: int, values: Floats) -> float:
        """Quality, 0 to 100, of the predicted values [targets] of the image at index ``row``."""

    @abstractmethod
    def words(self, values: Floats) -> str:
        """Values [targets] of an image as text, for its example."""

    def score(self, vectors: Vectors, device: Device = None) -> Outcome:
        """Held-out scores in percent, and mean errors in the unit of the numbers."""
        (features,) = (vectors[source.name] for source in self.vector_sources)
        there = ~np.isnan(features[:, 0])
        fold, origin = self.data.fold[there], origins(self.data.values)
        values = self.data.values - origin
        if reason := unusable(features[there]) or self._too_few(fold):
            return Outcome((), empty=reason)
        rows = np.flatnonzero(there)[fold != ALWAYS_TRAINING]
        unit = group_numbers(tuple(np.asarray(self.data.groups, str)[there]))
        predicted = self.predictions(features[there], values[there], fold, unit, device)
        columns, missing = self.columns(values[there], predicted, unit, fold != ALWAYS_TRAINING)
        if not columns:
            return Outcome((), empty=next(iter(missing.values())))
        keys = tuple(self.data.samples[row].key for row in rows)
        clusters = tuple(self.data.groups[row] for row in rows)
        statistics = {metric: Statistic(metric, OVER[metric.split()[0]]) for metric in columns}
        items = Items("images", keys, clusters, ("",) * len(keys), columns, statistics)
        scores = (Score(metric, float(each.mean()), len(keys), "images") for metric, each in columns.items())
        shown = self._predicted(rows, predicted[""].predicted[fold != ALWAYS_TRAINING] + origin)
        return Outcome(tuple(scores), items, missing=missing, predicted=shown)

    def predictions(
        self, features: NDArray[np.float32], values: Floats, fold: Integers, unit: Integers, device: Device
    ) -> dict[str, HeldOut]:
        """Predictions by several methods, by name; that of ridge regression is ""."""
        return {"": RidgePredictions.of(features, values, fold, unit, self.config.penalties, device)}

    def exported(self, vectors: Vectors) -> dict[str, NDArray[np.generic]]:
        """Features, true values, names of the targets, and the folds, groups and names of the images."""
        (features,) = (vectors[source.name] for source in self.vector_sources)
        there = ~np.isnan(features[:, 0])
        return {
            "features": features[there],
            "targets": self.data.values[there],
            "names": np.asarray(self.data.targets, str),
            "folds": self.data.fold[there],
            "groups": np.asarray(self.data.groups, str)[there],
            "keys": np.asarray([sample.key for sample in self.data.samples], str)[there],
        }

    def _too_few(self, fold: Integers) -> str:
        tested = fold[fold != ALWAYS_TRAINING]
        learnt = [np.count_nonzero(fold != number) for number in np.unique(tested)]
        if len(fold) >= LEAST and min(learnt, default=0) >= 2 <= len(tested):
            return ""
        return (
            f"{LEAST} images that can be read are needed, some of them to learn from, in another fold or "
            f"group than those that are tested; there are {len(fold)}"
        )

    @cached_property
    def shown(self) -> list[int]:
        """Indices of the examples among the images."""
        return drawn_indices(
            [sample.key for sample in self.data.samples], SHOWN, (self.data.fold >= 0).tolist()
        )

    def _predicted(self, rows: Integers, predicted: Floats) -> Predicted:
        """Predictions of a layer for the examples; empty for those that it did not predict."""
        number_of = {row: number for number, row in enumerate(rows.tolist())}
        texts = np.full(len(self.shown), "", "U200")
        score = np.full(len(self.shown), np.nan, np.float32)
        for number, row in enumerate(self.shown):
            if row in number_of:
                values = predicted[number_of[row]]
                texts[number], score[number] = self.words(values), self.agreement(row, values)
        return {"predicted": texts, "score": score}

    def facts(self) -> Predicted:
        keys = [self.data.samples[row].key for row in self.shown]
        true = [self.words(self.data.values[row]) for row in self.shown]
        return {"image": np.asarray(keys, str), "truth": np.asarray(true, str)}

    def pictures(self, predicted: Sequence[Predicted]) -> Mapping[str, Sample]:
        return by_key(self.data.samples, [self.data.samples[row].key for row in self.shown])


class RegressTask(TargetTask):
    """Regression of one or several numbers, each separately, and the mean of their scores."""

    scorer = "regress"
    data: ImageNumbers

    def columns(
        self, truth: Floats, predicted: Mapping[str, HeldOut], unit: Integers, tested: Mask
    ) -> tuple[Columns, dict[str, str]]:
        columns, missing = Columns(), dict[str, str]()
        targets, several = self.data.targets, len(self.data.targets) > 1
        values = refitted_values(NUMBERS, truth, predicted[""], unit, tested, range(len(targets)))
        for number, target in enumerate(targets):
            of_target = f" {target}" if several else ""
            explained, ranked, error = (values[metric][:, number] for metric in ("R2", "rho", "MAE"))
            if np.isnan(explained).any():
                missing |= dict.fromkeys((f"R2{of_target}", f"rho{of_target}"), f"{target} is {SAME}")
                continue
            columns |= {f"R2{of_target}": 100 * explained, f"MAE{of_target}": error}
            if np.isnan(ranked).any():
                missing[f"rho{of_target}"] = f"predictions of {target} are {SAME}"
            else:
                columns[f"rho{of_target}"] = 100 * ranked
        if not (several and columns):
            return columns, missing
        parts = {
            metric: [columns[name] for name in columns if name.startswith(f"{metric} ")]
            for metric in ("R2", "rho")
        }
        means = {metric: np.mean(each, axis=0) for metric, each in parts.items() if each}
        return means | columns, {"MAE": "each number has an error in its own unit"} | missing

    def agreement(self, row: int, values: Floats) -> float:
        """Percent of images whose numbers are at least as far from the true ones as the prediction is."""
        apart = abs(self.data.values - self.data.values[row])
        return float(100 * np.mean(apart >= abs(values - self.data.values[row])))

    def words(self, values: Floats) -> str:
        if len(values) == 1:
            return f"{values[0]:.4g}"
        return ", ".join(f"{name} {value:.4g}" for name, value in zip(self.data.targets, values, strict=True))


class MultilabelTask(TargetTask):
    """Multi-label prediction by ridge regressions on 0 and 1, and by the share of neighbours with a label."""

    scorer = "multilabel"
    data: ImageLabels

    def predictions(
        self, features: NDArray[np.float32], values: Floats, fold: Integers, unit: Integers, device: Device
    ) -> dict[str, HeldOut]:
        votes = VotePredictions.of(features, values, fold, unit, self.config.neighbours, device)
        return {**super().predictions(features, values, fold, unit, device), " k-NN": votes}

    def columns(
        self, truth: Floats, predicted: Mapping[str, HeldOut], unit: Integers, tested: Mask
    ) -> tuple[Columns, dict[str, str]]:
        varies = truth[tested].min(axis=0) < truth[tested].max(axis=0)
        judged = np.flatnonzero(self.data.judged & varies).tolist()
        if not judged:
            return {}, {"macro AP": "no label is there, and not there, in every fold and what it learns from"}
        values = {
            way: refitted_values(LABELS, truth, each, unit, tested, judged) for way, each in predicted.items()
        }
        ways = [(metric, way) for metric in LABELS for way in predicted]
        return {f"{metric}{way}": 100 * values[way][metric].mean(axis=1) for metric, way in ways}, {}

    def agreement(self, row: int, values: Floats) -> float:
        """Percent of pairs of a label that the image has and one that it lacks that are ranked correctly."""
        has = self.data.values[row] > 0
        if has.all() or not has.any():
            return float(100 * np.mean((values >= PRESENT) == has))
        return float(100 * linearised.area_under_roc(has, values).mean())

    def words(self, values: Floats) -> str:
        """The labels predicted for an image, in order of decreasing score."""
        order = [number for number in np.argsort(-values, kind="stable") if values[number] >= PRESENT]
        return ", ".join(self.data.targets[number] for number in order) or "none"
