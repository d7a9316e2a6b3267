"""Instance retrieval: images of one instance among all others, and verification by a cosine threshold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from layerboard.tasks.datasets.base import Sample
from layerboard.tasks.datasets.copies import COPIES
from layerboard.tasks.datasets.instances import DISTRACTOR, Instance, Instances, sought
from layerboard.tasks.framework.base import Device, Items, Outcome, Score, Source, Statistic, digest
from layerboard.tasks.framework.checks import unusable
from layerboard.tasks.framework.examples import Predicted, by_key, drawn_indices
from layerboard.tasks.framework.protocols import EvaluationProtocol
from layerboard.tasks.framework.registry import TaskEntry
from layerboard.tasks.framework.sources import CHUNK, ProbedClasses, consecutive_groups
from layerboard.tasks.framework.task import Task, VectorTask
from layerboard.tasks.framework.transformed import Vectors
from layerboard.tasks.metrics.arrays import Floats, Integers
from layerboard.tasks.metrics.folds import group_numbers
from layerboard.tasks.retrieval.pairs import NEGATIVES, NONE, Pairs, Retrieved, retrieve
from layerboard.tasks.retrieval.ranking import cosine_similarities
from layerboard.zoo.view.views import ResizeCrop, View

QUERIES = 12  # number of queries in the examples
RANKED = 4  # nearest images kept of each
OF_KINDS = ("recall@1", "mAP")  # metrics that are also computed for each kind of copy
ALONE = "no query has another image of its thing that could be read"

Texts = NDArray[np.str_]


@dataclass(frozen=True, slots=True)
class InstancesConfig:
    """Settings of instance retrieval."""

    view: View
    cutoffs: tuple[int, ...]  # k of recall@k, the primary one first
    rates: tuple[float, ...]  # false acceptance rates
    precisions: tuple[float, ...]  # precisions of the pairs above a cosine threshold


def retrieve_instances(
    features: NDArray[np.float32], instances: Texts, parts: Texts, groups: Texts, device: Device = None
) -> tuple[Integers, Retrieved]:
    """Indices of the queries among the images [n dim], and the retrieval result of each.

    ``instances`` [n] are "" for distractors. ``parts`` [n] are ``query`` or ``database`` for images that are
    only that; others are both. A query leaves out the images of its group in ``groups`` [n]; "" is no group.
    """
    numbers = np.where(instances == "", NONE, np.unique(instances, return_inverse=True)[1])
    asks = (instances != "") & (parts != "database")
    together = group_numbers(tuple(group or f"\0{row}" for row, group in enumerate(groups)))
    retrieved = retrieve(features, numbers, asks, parts != "query", together, device=device)
    return np.flatnonzero(asks), retrieved


def pair_metrics(pairs: Pairs, config: InstancesConfig) -> tuple[dict[str, float], dict[str, str]]:
    """Metrics of cosine thresholds in percent, the threshold cosines, and the reasons for missing metrics."""
    values, reasons = {"ROC AUC": 100.0 * pairs.roc_auc}, {"ROC AUC": "no two images show different things"}
    for rate in config.rates:
        metric, needed = f"TAR at FAR {rate:g}", f"{NEGATIVES / rate:,.0f} pairs of different things"
        values[metric] = 100.0 * pairs.accepted(rate)
        reasons[metric] = f"{metric} needs {needed}, of which there are {pairs.different:,}"
    for precision in config.precisions:
        value, recall = pairs.threshold(precision)
        metrics = {
            f"cosine at precision {precision:g}": value,
            f"recall at precision {precision:g}": 100.0 * recall,
        }
        values |= metrics
        reasons |= dict.fromkeys(metrics, f"no cosine has a precision of {100 * precision:g} %")
    missing = {metric: reasons[metric] for metric, value in values.items() if np.isnan(value)}
    return {metric: value for metric, value in values.items() if metric not in missing}, missing


def pair_columns(retrieved: Retrieved, config: InstancesConfig) -> dict[str, Floats]:
    """Influence of each query's instance on the pair metrics, in percent: [queries], mean 0."""
    pairs = retrieved.pairs
    slopes = {"ROC AUC": pairs.roc_auc_slopes()} if pairs.different else {}
    for rate in filter(pairs.enough, config.rates):
        slopes[f"TAR at FAR {rate:g}"] = pairs.accepted_slopes(rate)
    return {metric: 100.0 * retrieved.shared(each) for metric, each in slopes.items()}


@dataclass(frozen=True, eq=False)
class InstancesTask(VectorTask):
    """Retrieval of the other images of a query's instance, and cosine thresholds for verification."""

    data: Instances
    config: InstancesConfig
    shown: tuple[Source, ...] = ()  # classification sources with the same images; () for its own sources
    configs: ClassVar = {
        "standard": InstancesConfig(
            ResizeCrop(short=256, crop=224), cutoffs=(1, 5, 10), rates=(0.01, 0.001), precisions=(0.99, 0.9)
        )
    }
    keeps_examples = True
    scorer = "instances"

    @classmethod
    def by(cls, protocol: EvaluationProtocol, data: Instances | ProbedClasses, row: TaskEntry) -> Task:
        """The task on images of instances, or of classes; raises InputError if no query has another image.

        Images of classes share the pass of the classification tasks if these use the same view.
        """
        if isinstance(data, Instances):
            return super().by(protocol, data, row)
        task = super().by(protocol, data.images.serving("instances"), row)
        assert isinstance(task, cls)
        return replace(task, shown=data.sources) if data.probe.view == task.config.view else task

    @cached_property
    def _parts(self) -> dict[str, tuple[Instance, ...]]:
        """The images of each source, by its name: the database, and the queries outside the database."""
        if self.shown:
            of_key = {image.sample.key: image for image in self.data.images}
            return {each.name: tuple(of_key[sample.key] for sample in each.samples) for each in self.shown}
        ranked = tuple(image for image in self.data.images if image.part != "query")
        asking = tuple(image for image in self.data.images if image.part == "query")
        parts = {"database": ranked, "queries": asking}
        return {f"{self.data.name}/{name}": images for name, images in parts.items() if images}

    @cached_property
    def _images(self) -> tuple[Instance, ...]:
        """All images, in the order of the sources."""
        return tuple(image for images in self._parts.values() for image in images)

    @cached_property
    def vector_sources(self) -> tuple[Source, ...]:
        if self.shown:
            return self.shown
        groups = {
            name: consecutive_groups([each.sample for each in part], CHUNK)
            for name, part in self._parts.items()
        }
        return tuple(Source(*source, self.config.view, skip_unreadable=True) for source in groups.items())

    @property
    def fitted_on(self) -> tuple[Source, ...]:
        """Sources that a transform is fitted on: the database, which is known before any query."""
        return self.shown or self.vector_sources[:1]

    @cached_property
    def fingerprint(self) -> str:
        return digest("instances", self.config, *self.data.truth)

    @property
    def products(self) -> int:
        return len(self._images) * sum(image.part != "query" for image in self._images)

    def score(self, vectors: Vectors, device: Device = None) -> Outcome:
        """Recall@k, mAP and R-precision of the queries, and the metrics of cosine thresholds, in percent."""
        features, images = self._read(vectors)
        if reason := unusable(features):
            return Outcome((), empty=reason)
        rows, retrieved = retrieve_instances(features, *_facts(images), device)
        counted = np.flatnonzero(~np.isnan(retrieved.wrong))
        if not len(counted):
            return Outcome((), empty=ALONE)
        pairs, missing = pair_metrics(retrieved.pairs, self.config)
        moved = {name: pairs[name] + each for name, each in pair_columns(retrieved, self.config).items()}
        columns = {f"recall@{k}": retrieved.recall(k) for k in self.config.cutoffs}
        columns |= {"mAP": retrieved.average_precision, "R-precision": retrieved.r_precision}
        values = {metric: 100.0 * column for metric, column in columns.items()}
        items = _items([images[row] for row in rows], values, moved).only(counted)
        known = {metric: items.values[metric] for metric in items.statistics if metric not in moved}
        known = {metric: column[~np.isnan(column)] for metric, column in known.items()}
        means = [(metric, float(column.mean()), len(column)) for metric, column in known.items()]
        scores = [Score(*mean, "queries") for mean in means]
        number = len(retrieved.pairs.same) + retrieved.pairs.different
        scores += [Score(metric, value, number, "pairs") for metric, value in pairs.items()]
        precision = dict(zip(items.keys, items.values["mAP"], strict=True))
        predicted = self._predicted(features, images, precision)
        return Outcome(tuple(scores), items, missing=missing, predicted=predicted)

    def exported(self, vectors: Vectors) -> dict[str, NDArray[np.generic]]:
        """All readable images, with the instance (group), the part and the name of each.

        If there are any, also the groups of images that are left out of each other's ranking.
        """
        features, images = self._read(vectors)
        instances, parts, series = _facts(images)
        roles = np.where(instances == "", DISTRACTOR, parts)
        keys = np.array([image.sample.key for image in images])
        apart = {"series": series} if series.any() else {}
        return {"features": features, "groups": instances, "roles": roles, "keys": keys, **apart}

    def _read(self, vectors: Vectors) -> tuple[NDArray[np.float32], list[Instance]]:
        """Vectors of the readable images, and these images."""
        features = np.concatenate([vectors[name] for name in self._parts])
        rows = np.flatnonzero(~np.isnan(features[:, 0]))
        return features[rows], [self._images[row] for row in rows]

    # ---- examples -------------------------------------------------------------------------------

    @cached_property
    def queries(self) -> Mapping[str, tuple[Instance, int]]:
        """The example queries by name, instances taking turns, and the number of images each has to find."""
        pairs = [pair for pair in zip(self._images, sought(self._images), strict=True) if pair[1]]
        keys, instances = [image.sample.key for image, _ in pairs], [image.thing for image, _ in pairs]
        return {keys[row]: pairs[row] for row in drawn_indices(keys, QUERIES, instances)}

    def _predicted(
        self, features: NDArray[np.float32], images: Sequence[Instance], precision: Mapping[str, float]
    ) -> Predicted:
        """The nearest images of the examples; empty texts for an unreadable example.

        ``precision`` is the average precision, in percent, of each query by its name.
        """
        shape = (len(self.queries), RANKED)
        keys, kinds = np.full(shape, "", object), np.full(shape, "", "<U5")
        near = np.full(shape, np.nan, np.float32)
        row_of = {image.sample.key: row for row, image in enumerate(images)}
        _, parts, groups = _facts(images)
        ranked = np.flatnonzero(parts != "query")
        for number, (key, (query, _)) in enumerate(self.queries.items()):
            if (row := row_of.get(key)) is None:
                continue
            others = ranked[(ranked != row) & ((groups[ranked] == "") | (groups[ranked] != groups[row]))]
            cosines = cosine_similarities(features[others], features[row : row + 1])[:, 0].astype(np.float32)
            same = np.array([images[other].thing == query.thing for other in others])
            first = np.lexsort((same, -cosines))[:RANKED]
            keys[number, : len(first)] = [images[other].sample.key for other in others[first]]
            kinds[number, : len(first)] = np.where(same[first], "same", "wrong")
            near[number, : len(first)] = cosines[first].round(4)
        values = np.array([precision.get(key, np.nan) for key in self.queries], np.float32)
        return {"neighbour": keys.astype(str), "kind": kinds, "cosine": near, "average_precision": values}

    def facts(self) -> Predicted:
        return {
            "query": np.array([*self.queries]),
            "positives": np.array([number for _, number in self.queries.values()], np.int64),
        }

    def pictures(self, predicted: Sequence[Predicted]) -> Mapping[str, Sample]:
        samples = [image.sample for image in self._images]
        ranks = [layer["neighbour"][:, rank] for rank in range(RANKED) for layer in predicted]
        near = [str(key) for names in ranks for key in names]
        return by_key(samples, [*self.queries]) | by_key(samples, near)


def _facts(images: Sequence[Instance]) -> tuple[Texts, Texts, Texts]:
    """Thing, part and group of each image."""
    columns = zip(*((image.thing, image.part, image.group) for image in images), strict=True)
    instances, parts, groups = (np.array(column, str) for column in columns)
    return instances, parts, groups


def _items(asked: Sequence[Instance], values: Mapping[str, Floats], moved: Mapping[str, Floats]) -> Items:
    """Items: scores of each query, also by kind of copy, and its influence on the pair metrics.

    An instance is sampled with all its queries.
    """
    kinds = np.array([image.kind for image in asked])
    counted = {*kinds[~np.isnan(values["mAP"])].tolist()}
    columns = dict(values)
    for kind in (kind for kind in COPIES if kind in counted):
        columns |= {f"{name} {kind}": np.where(kinds == kind, values[name], np.nan) for name in OF_KINDS}
    keys, instances = tuple(image.sample.key for image in asked), tuple(image.thing for image in asked)
    statistics = {metric: Statistic(metric) for metric in columns}
    statistics |= {metric: Statistic(metric, "shares") for metric in moved}
    return Items("queries", keys, instances, ("",) * len(keys), {**columns, **moved}, statistics)
