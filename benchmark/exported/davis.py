"""J and F of masks that any code predicted for DAVIS."""

from pathlib import Path

from layerboard.benchmark.exported.report import Grid, ScoreReport
from layerboard.tasks.datasets.davis import (
    DAVIS_2017_VAL,
    PredictedSequence,
    annotation_folder,
    read_davis_results,
)
from layerboard.tasks.datasets.files import folder_names
from layerboard.tasks.datasets.masks import read_mask
from layerboard.tasks.metrics.arrays import VOID
from layerboard.tasks.propagation.j_and_f import Statistics, VideoScores, score_video, statistics, summarise
from layerboard.zoo.errors import InputError, some


def score_davis(ground_truth: Path, predictions: Path) -> ScoreReport:
    """Official scores in percent, over all objects and per object, of every predicted sequence.

    The ground truth is DAVIS, its ``Annotations``, or a folder of ``<sequence>/*.png``, as predictions are;
    pixel values are object ids. Raises InputError if a file is missing, or if masks do not match.
    """
    sequences = read_davis_results(ground_truth, predictions)
    videos = [_score(sequence) for sequence in sequences]
    total = summarise(videos)
    overall = {"J&F-Mean": 100.0 * total.jf_mean, **_columns(total.j, total.f)}
    objects = {
        f"{sequence.name}_{number}": _columns(statistics(j), statistics(f))
        for sequence, video in zip(sequences, videos, strict=True)
        for number, (j, f) in enumerate(zip(video.j, video.f, strict=True), start=1)
    }
    rows = {name: tuple(scores.get(column) for column in overall) for name, scores in objects.items()}
    names = [sequence.name for sequence in sequences]
    listed = ground_truth / DAVIS_2017_VAL.subset
    if listed.is_file():
        every = {*map(str.strip, listed.read_text(encoding="utf-8", errors="replace").splitlines())} - {""}
    else:
        every = {*folder_names(annotation_folder(ground_truth))}
    missing = sorted(every - {*names})
    note = f"{len(missing)} of {len(every)} sequences have no prediction and do not count: {some(missing)}"
    return ScoreReport(
        protocol="official",
        parameters={"ground_truth": str(ground_truth), "predictions": str(predictions)},
        n=total.objects,
        unit="objects",
        scores=overall,
        grid=Grid("object", tuple(overall), {**rows, "all objects": tuple(overall.values())}),
        details={"sequences": names, "objects": objects},
        notes=(note,) if missing else (),
    )


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
