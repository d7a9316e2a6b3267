"""Regression and multi-label classification of exported features."""

from collections import Counter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from layerboard.benchmark.exported.arrays import as_features, as_floats, as_labels, read_archive
from layerboard.benchmark.exported.report import Grid, ScoreReport
from layerboard.tasks.datasets.base import Coverage, FileSample
from layerboard.tasks.datasets.targets import ImageLabels, ImageNumbers, Targets
from layerboard.tasks.framework.assess import intervals_of
from layerboard.tasks.framework.protocols import STANDARD
from layerboard.tasks.framework.registry import config_of
from layerboard.tasks.metrics.folds import ALWAYS_TRAINING, group_numbers, stratified_folds
from layerboard.tasks.targets.task import MultilabelTask, RegressTask, TargetTask
from layerboard.zoo.errors import InputError, some


def score_regress(features: Path) -> ScoreReport:
    """R2, Spearman's rho and mean absolute error of a ridge regression; raises InputError.

    An archive has features [n dim] and numeric targets [n] or [n targets]. It may have names [targets]; folds
    [n], whole numbers from 0, or -1 for items that are never tested; and groups [n], text or whole numbers,
    which stay within a fold. Without folds, there are five, drawn as in a run.
    """
    return _score(RegressTask, ImageNumbers, features)


def score_multilabel(features: Path) -> ScoreReport:
    """Macro average precision and AUROC of labels by ridge regression and neighbours; raises InputError.

    The archive is as for `score_regress`; targets are 1 for labels that an item has, else 0.
    """
    return _score(MultilabelTask, ImageLabels, features)


def _score(code: type[TargetTask], kind: type[Targets], path: Path) -> ScoreReport:
    """The report of a task on the features of an archive."""
    data, values = _read(kind, path)
    task = code(data, config_of(STANDARD, "regress"))
    (source,) = task.vector_sources
    outcome = task.score({source.name: values})
    if outcome.items is None:
        raise InputError(f"{path} cannot be scored: {outcome.empty}")
    note = "Low and high are the ends of the 95 % interval"
    note += "; errors (MAE) are in the unit of the numbers." if kind is ImageNumbers else "."
    ends = {metric: rows[0] for metric, rows in intervals_of([outcome.items]).items()}
    scores = {score.metric: score.value for score in outcome.scores}
    return ScoreReport(
        parameters={"features": str(path)},
        n=outcome.scores[0].n,
        unit="items",
        scores={**scores, **dict.fromkeys(outcome.missing)},
        grid=Grid(
            "metric",
            ("score", "low", "high"),
            {name: (value, *_finite(ends[name])) for name, value in scores.items()},
        ),
        details={
            "items": len(values),
            "folds": len({*data.fold.tolist()} - {ALWAYS_TRAINING}),
            "intervals": {name: _finite(pair) for name, pair in ends.items()},
        },
        notes=(note,),
        reason="; ".join(f"{name}: {why}" for name, why in outcome.missing.items()),
    )


def _finite(pair: tuple[float, float]) -> list[float | None]:
    return [None if np.isnan(end) else end for end in pair]


def _read(kind: type[Targets], path: Path) -> tuple[Targets, NDArray[np.float32]]:
    """Targets of the items of an archive, and their features; raises InputError."""
    arrays = read_archive(path, ("features", "targets"), optional=("names", "folds", "groups"))
    features = as_features(arrays, "features", path).astype(np.float32)
    count, targets = len(features), arrays["targets"]
    targets = targets.astype(np.int64) if targets.dtype == np.bool_ else targets
    targets = targets[:, None] if targets.ndim == 1 else targets
    values = as_floats(targets, f"targets of {path}", "[n targets]", wide=True).astype(np.float64)
    if len(values) != count:
        raise InputError(
            f"expected a row of targets for each of {count:,} items of {path}, found {len(values):,}"
        )
    largest = np.abs(values).max(axis=0)
    if ((largest > 0) & (largest < np.finfo(np.float32).tiny)).any():
        raise InputError(f"expected targets within float32 in {path}, found smaller ones; multiply them")
    if kind is ImageLabels and not np.isin(values, (0, 1)).all():
        raise InputError(
            f"expected targets of 0 and 1 in {path}, found {values[(values != 0) & (values != 1)][0]:g}"
        )
    names = tuple(f"target {number}" for number in range(1, values.shape[1] + 1))
    if "names" in arrays:
        names = tuple(as_labels(arrays, "names", path, len(names), text=True).astype(str).tolist())
    groups = keys = tuple(str(row) for row in range(count))
    if "groups" in arrays:
        groups = tuple(as_labels(arrays, "groups", path, count, text=True).astype(str).tolist())
    fold = stratified_folds(np.zeros(count, np.int64), group_numbers(groups))
    if "folds" in arrays:
        fold = as_labels(arrays, "folds", path, count).astype(np.int64)
        parts = Counter(group for group, _ in {*zip(groups, fold.tolist(), strict=True)})
        if divided := sorted(group for group, number in parts.items() if number > 1):
            raise InputError(
                f"expected the items of every group of {path} in one of its folds, found {some(divided)} in "
                "several; correct the folds, or leave them out to have them drawn"
            )
    samples = tuple(FileSample(key, "") for key in keys)
    return kind(path.stem, samples, values, names, fold, groups, Coverage(())), features
