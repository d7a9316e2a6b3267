"""Scores of vectors that other code has computed: the task of a run, on the items of an archive."""

from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from math import isnan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from layerboard.benchmark.exported import archives
from layerboard.benchmark.exported.arrays import as_floats, read_archive, read_array
from layerboard.benchmark.exported.report import Json, ScoreReport, one_of, outcome_report
from layerboard.benchmark.passes.failures import failure
from layerboard.tasks.clustering.task import labelled, score_partitions
from layerboard.tasks.datasets.integrity import explaining, require, require_distinct
from layerboard.tasks.framework.base import Outcome
from layerboard.tasks.framework.protocols import find_protocol
from layerboard.tasks.framework.registry import TASKS, find_tasks, load_code
from layerboard.tasks.framework.task import VectorTask
from layerboard.tasks.framework.transformed import Vectors
from layerboard.zoo.errors import InputError, either

UNITS = {  # by the first word of a metric that is no percentage
    "MAE": "Errors (MAE) are in the unit of the numbers.",
    "cosine": "The cosines at a precision are cosines, from -1 to 1.",
}
SEEDS = 2**32  # number of seeds of the random generator of k-means


class ArchiveTask(NamedTuple):
    """A task of a run, with the items of an archive as its data."""

    task: Any  # a `VectorTask`
    archive: archives.Archive

    @classmethod
    def of(cls, archive: archives.Archive, name: str, protocol: str, **numbers: object) -> "ArchiveTask":
        """The task with the config of a protocol, apart from numbers that are not None; raises InputError."""
        (entry,) = find_tasks([name])
        code, evaluation = load_code(entry, protocol), find_protocol(protocol)
        try:
            task = code.by(evaluation, archive.data, entry)
        except InputError as error:
            raise InputError(f"{archive.path} cannot be scored: {name} {error}") from error
        changes = {name: value for name, value in numbers.items() if value is not None}
        return cls(replace(task, config=replace(task.config, **changes)) if changes else task, archive)

    @property
    def vectors(self) -> Vectors:
        return self.archive.vectors(self.task)

    def report(self, outcome: Outcome | None = None, **parameters: Json) -> ScoreReport:
        """The report of an outcome, by default the score of the vectors; raises InputError if it is empty."""
        config, coverage = self.task.config, self.task.coverage
        names = [each.name for each in fields(config)] if is_dataclass(config) else []
        every = {name: getattr(config, name) for name in names}
        numbers = {name: each for name, each in every.items() if type(each) in (int, float, tuple)}
        report = outcome_report(
            self.task.score(self.vectors) if outcome is None else outcome,
            self.archive.path,
            protocol=self.task.protocol,
            parameters={"features": str(self.archive.path), **numbers, **parameters},
            notes=(*coverage.notes, *coverage.remarks),
        )
        units = tuple(
            note for start, note in UNITS.items() if any(name.startswith(start) for name in report.scores)
        )
        counts = {count.what.replace(" ", "_"): count.present for count in coverage.counts}
        scale = report.scale if self.task.entry in TASKS else "own"
        details, notes = {**counts, **report.details}, (*report.notes, *units)
        return replace(report, details=details, notes=notes, scale=scale)


def score_task(
    task: str, features: Path, protocol: str, ground_truth: Path | None = None, **numbers: object
) -> ScoreReport:
    """The scores of any task on vectors, one of the registry or ``module:NAME``; raises InputError.

    ``numbers`` are fields of its config; None stands for the number of the protocol.
    """
    (entry,) = find_tasks([task])
    require(
        issubclass(load_code(entry, protocol), VectorTask) and entry.role in (*archives.READERS, "retrieval"),
        f"a task that scores vectors of {either([*archives.READERS, 'retrieval'])} data",
        f"{task} on {entry.role} data",
        "`layerboard run` runs it",
    )
    if entry.role == "retrieval":
        if ground_truth is None:
            raise InputError(f"{task} needs --ground-truth, such as gnd_roxford5k.pkl")
        return score_retrieval(features, None, ground_truth, protocol, task)
    given = ArchiveTask.of(archives.READERS[entry.role](features), task, protocol, **numbers)
    try:
        return given.report()
    except Exception as error:
        if isinstance(error, InputError) or entry in TASKS:
            raise
        raise InputError(f"{features} cannot be scored: {failure(error, '', given.task).message}") from error


def score_knn(
    features: Path, protocol: str, k: Sequence[int] | None, temperature: float | None
) -> ScoreReport:
    """Top-1 and top-5 of weighted k-NN, in percent, for every ``k``; the first is the primary one."""
    archive = archives.read_archive_classes(features)
    if k:
        _require_counts("k", k, k, len(archive.data.images.train.samples), "the number of train items")
    numbers = {"k": k[0], "others": tuple(k[1:])} if k else {}
    return ArchiveTask.of(archive, "knn", protocol, temperature=temperature, **numbers).report()


def score_fewshot(
    features: Path, protocol: str, shots: Sequence[int] | None, penalty: float | None
) -> ScoreReport:
    """Top-1 of closed-form probes, in percent, averaged over draws; the penalty is of the squared weights.

    Shots beyond the smallest train class have no score.
    """
    penalties = None if penalty is None else ()
    numbers = {"shots": tuple(shots or ()) or None, "penalty": penalty, "penalties": penalties}
    given = ArchiveTask.of(archives.read_archive_classes(features), "fewshot", protocol, **numbers)
    if shots:
        fewest = given.task.labelled(given.vectors).fewest(len(given.task.classes))
        _require_counts("shots", shots, [min(shots)], fewest, "the items of the smallest train class")
    return given.report()


def _require_counts(name: str, numbers: Sequence[int], limited: Sequence[int], most: int, what: str) -> None:
    """Raise InputError for repeated numbers, or for a ``limited`` one that is not from 1 to ``most``."""
    for number in limited:
        require(1 <= number <= most, f"{name} of 1 to {most:,}, {what}", number)
    require_distinct(numbers, f"every {name} once")


def score_retrieval(
    features: Path | None,
    predictions: Path | None,
    ground_truth: Path,
    protocol: str,
    task: str = "retrieval",
) -> ScoreReport:
    """mAP and mP@1, 5, 10 in percent of the ranking by cosine, or by predicted similarities.

    These are [database queries], larger for more similar, in the order of the ground truth.
    """
    name, path = one_of(features=features, predictions=predictions)
    if name == "features":
        given = ArchiveTask.of(archives.read_retrieval(path, ground_truth), task, protocol)
    else:
        values = as_floats(read_array(path), f"similarities {path}", "[database queries]")
        if (values == values.flat[0]).all():
            raise InputError(f"expected similarities that rank images in {path}, but they are all the same")
        archive = archives.Archive(path, archives.read_truth(ground_truth, path, *values.shape), {})
        given = ArchiveTask.of(archive, task, protocol)
    with explaining(f"expected a consistent ground truth in {ground_truth}", ValueError):
        outcome = given.task.score(given.vectors) if name == "features" else given.task.ranked(values)
    columns = outcome.items.values if outcome.items else {}
    unscored = {*columns} - {score.metric for score in outcome.scores} if task == "retrieval" else set[str]()
    missing = {metric: f"no query has a {metric.split()[-1]} positive" for metric in sorted(unscored)}
    report = given.report(replace(outcome, missing=missing), ground_truth=str(ground_truth))
    precisions = {
        metric.removeprefix("mAP "): [None if isnan(each) else each for each in column.tolist()]
        for metric, column in columns.items()
        if metric.startswith("mAP ")
    }
    return replace(report, details={**report.details, "AP": precisions})


def score_clustering(
    features: Path | None, predictions: Path | None, protocol: str, k: int | None, **numbers: int | None
) -> ScoreReport:
    """Purity, NMI and ARI in percent of k-means clusters, or of those that an archive gives."""
    name, path = one_of(features=features, predictions=predictions)
    if name == "predictions":
        return _of_clusters(path)
    archive = archives.read_clustered(path)
    items, seed = len(archive.data.labels), numbers["seed"]
    require(k is None or 1 <= k <= items, f"k of 1 to {items:,}, the number of items", k)
    require(seed is None or 0 <= seed < SEEDS, f"seed of 0 to {SEEDS - 1:,}", seed)
    task, _ = given = ArchiveTask.of(archive, "cluster-image", protocol, **numbers)
    outcome = replace(task, clusters=k).score(given.vectors)
    return _counted(given.report(outcome, k=k or len(task.data.images.train.classes)), outcome)


def _of_clusters(path: Path) -> ScoreReport:
    """Agreement of clusters [n] with labels [n] of an archive, whole numbers or text each."""
    arrays = read_archive(path, ("clusters", "labels"))
    labels, there = arrays.classes("labels", arrays["labels"].size, text=True)
    clusters = arrays.texts("clusters", len(labels))[there]
    labels = labels[there]
    keys = [*map(str, range(len(labels)))]
    items = labelled("items", keys, keys, np.unique(labels, return_inverse=True)[1].tolist())
    outcome = score_partitions(np.unique(clusters, return_inverse=True)[1][None], items)
    given, notes = {"predictions": str(path)}, archives.missing_note("items", there)
    report = outcome_report(outcome, path, protocol="standard", parameters=given, notes=notes)
    return _counted(report, outcome)


def _counted(report: ScoreReport, outcome: Outcome) -> ScoreReport:
    """The report with the numbers of classes and clusters."""
    values = outcome.items.values if outcome.items else {}
    columns = {"classes": "label", "clusters": "start 1"}.items()
    counts = {name: len(np.unique(values[column])) for name, column in columns if column in values}
    return replace(report, details={**report.details, **counts})
