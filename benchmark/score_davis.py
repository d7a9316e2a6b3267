"""The DAVIS scorer on its own, for predictions made by any code."""

from pathlib import Path
from typing import TypedDict

from tasks.datasets.davis_masks import read_mask
from tasks.datasets.davis_results import read_davis_results
from tasks.metrics.segmentation import Statistics, VideoScores, score_video, statistics, summarise
from zoo.errors import InputError

Columns = dict[str, float]


class DavisScores(TypedDict):
    """Official columns as fractions: over all objects, and of each object as ``<sequence>_<id>``."""

    all: Columns
    objects: dict[str, Columns]


def score_davis(ground_truth: Path, predictions: Path) -> DavisScores:
    """Scores of every predicted sequence that has annotations.

    Raises:
        InputError: A folder, sequence or frame is missing, or masks do not fit each other.
    """
    videos: list[VideoScores] = []
    objects: dict[str, Columns] = {}
    for sequence in read_davis_results(ground_truth, predictions):
        truths = [read_mask(path) for path in sequence.truth]
        try:
            scores = score_video([read_mask(path) for path in sequence.predictions], truths)
        except ValueError as error:
            raise InputError(f"sequence {sequence.name}: {error}") from error
        videos.append(scores)
        for number, (j, f) in enumerate(zip(scores.j, scores.f, strict=True), start=1):
            objects[f"{sequence.name}_{number}"] = _columns(statistics(j), statistics(f))
    total = summarise(videos)
    return {"all": {"J&F-Mean": total.jf_mean, **_columns(total.j, total.f)}, "objects": objects}


def _columns(j: Statistics, f: Statistics) -> Columns:
    named = (("J", j), ("F", f))
    return {
        f"{name}-{column}": value
        for name, found in named
        for column, value in (("Mean", found.mean), ("Recall", found.recall), ("Decay", found.decay))
    }
