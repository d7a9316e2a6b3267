"""What a task predicted for its examples, as a file beside the records, and the small pictures of them."""

from collections.abc import Mapping, Sequence
from itertools import islice
from math import isnan
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmark.jobs.job import ScoreJob
from benchmark.scores.records import table_pooling
from leaderboards.records.arrays import write_arrays
from leaderboards.records.thumbnails import MOST, NAMES, write_thumbnail
from mini.render import TEMPLATES
from tasks.base import LayerOutcome
from tasks.datasets.base import Sample
from tasks.datasets.files import UnreadableImageError
from tasks.examples import VERSION
from tasks.task import Task
from zoo.spec import BackboneSpec

Arrays = dict[str, NDArray[np.generic]]

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""How deep the blocks lie that pictures are kept for, beside the best one: the first is 0, the last is 1."""

_made: dict[tuple[Path, str, str], str] = {}
"""Files of pictures that this process has written, by folder, path and signature of the image."""


def keep_examples(job: ScoreJob, outcomes: Sequence[LayerOutcome]) -> None:
    """Write what the layers of one backbone predicted, or remove what an earlier run left there.

    Nothing is kept where the request wants none, of the random floor, and of tasks without predictions.

    Raises:
        OSError: The disk is full.
        UnreadableImageError: An annotation is gone. An image that cannot be read has no picture.
    """
    task, path, folder = job.task, job.kept.beside["examples"], job.kept.thumbnails
    predicting = [outcome for outcome in outcomes if outcome.outcome.predicted]
    if task.examples is None or not job.setup.keeps_examples or not predicting:
        path.unlink(missing_ok=True)
        return
    drawn = _drawn(predicting, job.setup.spec, task.entry.metric)
    every = [outcome.outcome.predicted for outcome in predicting]
    pictures = task.examples.pictures([predicting[row].outcome.predicted for row in drawn])
    arrays: Arrays = {
        "version": np.asarray(VERSION),
        "layer": np.asarray([outcome.layer.index for outcome in predicting], np.int64),
        "tap": np.asarray([outcome.layer.tap for outcome in predicting], str),
        "pooling": np.asarray([outcome.pooling for outcome in predicting], str),
        "drawn": np.isin(np.arange(len(predicting)), drawn),
        **{name: np.stack([predicted[name] for predicted in every]) for name in every[0]},
        **task.examples.facts(),
        **_pictures(pictures, folder),
        **_class_names(task),
    }
    write_arrays(arrays, path)


def _drawn(shown: Sequence[LayerOutcome], spec: BackboneSpec, metric: str) -> list[int]:
    """Places of the outcomes that are drawn: blocks at a few depths, and the best one, in the order given."""
    blocks = [
        row
        for row, outcome in enumerate(shown)
        if outcome.layer.tap == "block"
        and outcome.layer.index > 0
        and outcome.pooling in ("grid", table_pooling(spec))
    ]
    if not blocks:
        return []
    depths = {blocks[round(share * (len(blocks) - 1))] for share in SHARES}
    return sorted({*depths, max(blocks, key=lambda place: _value(shown[place], metric))})


def _value(one: LayerOutcome, metric: str) -> float:
    """An outcome's score by a metric; what is no number is the lowest."""
    values = [score.value for score in one.outcome.scores if score.metric == metric]
    return values[0] if values and not isnan(values[0]) else -np.inf


def _pictures(pictures: Mapping[str, Sample], folder: Path) -> Arrays:
    """Names of the pictures that are most needed, and of their files."""
    names = list(islice(pictures, MOST))
    files = [_thumbnail(pictures[name], folder) for name in names]
    return {"picture": np.asarray(names, str), NAMES: np.asarray(files, str)}


def _thumbnail(sample: Sample, folder: Path) -> str:
    """Name of the file of an image's picture, made once in a process; "" where it cannot be read."""
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


def _class_names(task: Task) -> Arrays:
    """What the classes of the rendered images are called in words: their folders have numbers."""
    if not task.dataset.startswith("mini-"):
        return {}
    names = {template.wnid: template.name for template in TEMPLATES}
    return {"class_folder": np.asarray([*names], str), "class_name": np.asarray([*names.values()], str)}
