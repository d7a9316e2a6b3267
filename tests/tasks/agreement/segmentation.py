"""J and F of video masks against the official DAVIS-2017 evaluator."""

from collections.abc import Iterator, Sequence
from dataclasses import astuple

import numpy as np

from layerboard.tasks.metrics.arrays import Floats
from layerboard.tasks.propagation.j_and_f import Statistics, VideoScores, score_video, statistics
from tests.tasks.agreement import golden
from tests.tasks.agreement.base import OFFICIAL, Agreement, Finding, close, exact, gathered

CASES = golden.cases("davis_jf")


def compare(name: str) -> list[Finding]:
    """Findings of one case over its videos and objects."""
    return gathered(_findings(name))


def _findings(name: str) -> Iterator[Finding]:
    data, expected = golden.build(CASES[name]), CASES[name]["expected"]
    videos = []
    for video, objects in expected["per_frame"].items():
        scores = score_video(list(data[f"{video}/pred"]), list(data[f"{video}/gt"]))
        videos.append(scores)
        yield exact("objects", OFFICIAL, len(scores.j), len(objects))
        yield from _objects(scores, objects, expected["per_object"])
    means = expected["global"]
    yield exact("objects", OFFICIAL, sum(len(scores.j) for scores in videos), len(expected["per_object"]))
    found = {"J": _mean([row for scores in videos for row in scores.j])}
    found["F"] = _mean([row for scores in videos for row in scores.f])
    both = (found["J"].mean + found["F"].mean) / 2
    yield close("J&F over all objects", OFFICIAL, both, means["J&F-Mean"], 1e-12)
    for letter, each in found.items():
        yield _statistics(f"{letter} over all objects: mean, recall, decay", letter, each, means)


def _mean(objects: Sequence[Floats]) -> Statistics:
    """Means over objects of the statistics of each, from its values by frame."""
    return Statistics(*np.mean([astuple(statistics(frames)) for frames in objects], axis=0).tolist())


def _objects(
    scores: VideoScores, objects: dict[str, dict[str, list[float]]], means: dict[str, dict[str, float]]
) -> Iterator[Finding]:
    for row, (key, frames) in enumerate(objects.items()):
        for letter, values in (("J", scores.j[row]), ("F", scores.f[row])):
            yield close(f"{letter} of each object and frame", OFFICIAL, values, frames[letter], 1e-12)
            what = f"{letter} of each object: mean, recall, decay"
            yield _statistics(what, letter, statistics(values), means[key])


def _statistics(what: str, letter: str, found: Statistics, means: dict[str, float]) -> Finding:
    expected = [means[f"{letter}-{name}"] for name in ("Mean", "Recall", "Decay")]
    return close(what, OFFICIAL, [found.mean, found.recall, found.decay], expected, 1e-12)


AGREEMENT = Agreement(
    title="DAVIS J and F",
    module="tasks/propagation/j_and_f.py",
    file="davis_jf",
    recipes={
        "two_sequences": "drawn discs and rectangles that move and cover each other; predictions shifted, "
        "shrunk, or missing in some frames; one object leaves and comes back"
    },
    compare=compare,
    notes=(
        "Checked once by hand, as the masks are not part of this repository: predictions of OSVOS for five "
        "real sequences (blackswan, camel, car-shadow, dog, libby; 289 frames, masks of one object each), "
        "which come with the official evaluator. Mean, recall and decay of J and F equal its own, to all "
        "six decimals of its table.",
        "By choice: a predicted id above the number of objects is an error with its frame; the official "
        "program stops without one.",
    ),
)
