"""Predictions of a task for its examples, as a file beside the records, and their thumbnails."""

from collections.abc import Sequence
from itertools import islice
from math import inf, isnan
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from layerboard.benchmark.jobs.job import ScoreJob
from layerboard.benchmark.records.records import table_pooling
from layerboard.leaderboards.records.arrays import write_arrays
from layerboard.leaderboards.records.thumbnails import MOST, NAMES, write_thumbnail
from layerboard.tasks.datasets.base import Sample
from layerboard.tasks.framework.base import LayerOutcome
from layerboard.tasks.framework.examples import VERSION
from layerboard.zoo.errors import UnreadableImageError

Arrays = dict[str, NDArray[np.generic]]

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)  # relative depths of the blocks that are drawn besides the best

_made: dict[tuple[Path, str, str], str] = {}  # thumbnails by folder, path and signature


def write_examples(job: ScoreJob, outcomes: Sequence[LayerOutcome]) -> None:
    """Write the predictions of the layers of one backbone, or remove those of an earlier run.

    Nothing is kept if the request wants none, for the random floor, and for tasks without predictions. An
    unreadable image has no thumbnail; a lost annotation raises UnreadableImageError.
    """
    examples, path, folder = job.task.examples, job.files.beside["examples"], job.files.thumbnails
    predicting = [outcome for outcome in outcomes if outcome.outcome.predicted]
    if examples is None or not job.setup.writes_examples or not predicting:
        path.unlink(missing_ok=True)
        return
    drawn, every = _drawn(job, predicting), [outcome.outcome.predicted for outcome in predicting]
    pictures = examples.pictures([every[row] for row in drawn])
    names = list(islice(pictures, MOST))  # the most important come first
    arrays: Arrays = {
        "version": np.asarray(VERSION),
        "layer": np.asarray([outcome.layer.index for outcome in predicting], np.int64),
        "tap": np.asarray([outcome.layer.tap for outcome in predicting], str),
        "pooling": np.asarray([outcome.pooling for outcome in predicting], str),
        "drawn": np.isin(np.arange(len(predicting)), drawn),
        **{name: np.stack([predicted[name] for predicted in every]) for name in every[0]},
        **examples.facts(),
        "picture": np.asarray(names, str),
        NAMES: np.asarray([_thumbnail(pictures[name], folder) for name in names], str),
    }
    data = job.setup.plan.location
    if renamed := [pair for entry in data.datasets if not data.images for pair in entry.class_names]:
        numbers, words = zip(*renamed, strict=True)
        arrays |= {"class_folder": np.asarray(numbers, str), "class_name": np.asarray(words, str)}
    write_arrays(arrays, path)


def _drawn(job: ScoreJob, outcomes: Sequence[LayerOutcome]) -> list[int]:
    """Indices of the outcomes that are drawn: blocks at a few depths, and the best, in the given order.

    They are in the pooling of the best one: of equal scores the usual pooling, then the lower layer.
    """
    usual = ("grid", table_pooling(job.setup.spec))
    blocks = [
        row
        for row, outcome in enumerate(outcomes)
        if outcome.layer.tap == "block" and outcome.layer.index > 0
    ]
    if not blocks:
        return []

    def value(row: int) -> float:
        scores, metric = outcomes[row].outcome.scores, job.task.entry.metric
        first = next((score.value for score in scores if score.metric == metric), -inf)
        return -inf if isnan(first) else first  # NaN counts as the lowest

    best = max(sorted(blocks, key=lambda row: outcomes[row].pooling not in usual), key=value)
    blocks = [row for row in blocks if outcomes[row].pooling == outcomes[best].pooling]
    return sorted({best, *(blocks[round(share * (len(blocks) - 1))] for share in SHARES)})


def _thumbnail(sample: Sample, folder: Path) -> str:
    """File name of the thumbnail of an image, made once per process; "" if the image cannot be read."""
    try:
        key = folder, str(getattr(sample, "path", "")), sample.signature()
        if key not in _made or not (folder / _made[key]).is_file():
            image = sample.open()
            if sample.box is not None:
                left, top, right, bottom = (round(edge) for edge in sample.box)
                image = image.crop((left, top, max(right, left + 1), max(bottom, top + 1)))
            _made[key] = write_thumbnail(image, folder)
    except UnreadableImageError:
        return ""
    return _made[key]
