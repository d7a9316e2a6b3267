"""J and F of masks that any code predicted for DAVIS."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from layerboard.benchmark.exported.report import ScoreReport, outcome_report
from layerboard.tasks.datasets.davis import (
    DAVIS_2017_VAL,
    PredictedSequence,
    annotation_folder,
    read_davis_results,
)
from layerboard.tasks.datasets.reading.files import folder_names
from layerboard.tasks.datasets.reading.masks import read_mask
from layerboard.tasks.framework.base import Items, Outcome, Score, Statistic
from layerboard.tasks.metrics.arrays import VOID
from layerboard.tasks.propagation.j_and_f import Statistics, VideoScores, score_video, statistics
from layerboard.zoo.errors import InputError, some


def score_davis(ground_truth: Path, predictions: Path) -> ScoreReport:
    """Official scores in percent, over all objects and per object, of every predicted sequence.

    The ground truth is DAVIS, its ``Annotations``, or a folder of ``<sequence>/*.png``, as predictions are;
    pixel values are object ids. Raises InputError if a file is missing, or if masks do not match.
    """
    sequences = read_davis_results(ground_truth, predictions)
    videos = {sequence.name: _score(sequence) for sequence in sequences}
    objects, owners = dict[str, dict[str, float]](), list[str]()
    for name, video in videos.items():
        for number, (j, f) in enumerate(zip(video.j, video.f, strict=True), start=1):
            columns = _columns(statistics(j), statistics(f))
            objects[f"{name}_{number}"] = {"J&F-Mean": (columns["J-Mean"] + columns["F-Mean"]) / 2, **columns}
            owners.append(name)
    values = {
        name: np.array([each[name] for each in objects.values()]) for name in next(iter(objects.values()))
    }
    items = Items(
        unit="objects",
        keys=tuple(objects),
        clusters=tuple(owners),
        strata=("",) * len(objects),
        values=values,
        statistics={name: Statistic(name) for name in values},
    )
    scores = (Score(name, float(each.mean()), len(each), "objects") for name, each in values.items())
    return outcome_report(
        Outcome(tuple(scores), items),
        predictions,
        protocol="official",
        parameters={"ground_truth": str(ground_truth), "predictions": str(predictions)},
        notes=_unpredicted(ground_truth, [*videos]),
    ).with_parts("object", "objects", objects)


def _unpredicted(ground_truth: Path, predicted: Sequence[str]) -> tuple[str, ...]:
    """A note on the sequences of the ground truth that have no prediction."""
    listed = ground_truth / DAVIS_2017_VAL.subset
    if listed.is_file():
        every = {*map(str.strip, listed.read_text(encoding="utf-8", errors="replace").splitlines())} - {""}
    else:
        every = {*folder_names(annotation_folder(ground_truth))}
    missing = sorted(every - {*predicted})
    note = f"{len(missing)} of {len(every)} sequences have no prediction and do not count: {some(missing)}"
    return (note,) if missing else ()


def _score(sequence: PredictedSequence) -> VideoScores:
    """J and F of one sequence, whose masks are in memory; raises InputError."""
    predictions = [read_mask(path) for path in sequence.predictions]
    for path, mask in zip(sequence.predictions[1:-1], predictions[1:-1], strict=True):
        if (mask == VOID).any():
            raise InputError(
                f"expected object ids in {path}, found {VOID} (void), which only annotations may hold and "
                "the official evaluator refuses; export background as 0"
            )
    try:
        return score_video(predictions, [read_mask(path) for path in sequence.truth])
    except ValueError as error:
        raise InputError(f"sequence {sequence.name}: {error}") from error


def _columns(j: Statistics, f: Statistics) -> dict[str, float]:
    return {
        f"{name}-{column}": 100.0 * getattr(measure, column.lower())
        for name, measure in (("J", j), ("F", f))
        for column in ("Mean", "Recall", "Decay")
    }
