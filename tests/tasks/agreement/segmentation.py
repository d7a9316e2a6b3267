"""J and F of video masks against the official DAVIS-2017 evaluator."""

from collections.abc import Iterator

from layerboard.tasks.propagation.j_and_f import Statistics, VideoScores, score_video, statistics, summarise
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
    summary, means = summarise(videos), expected["global"]
    yield exact("objects", OFFICIAL, summary.objects, len(expected["per_object"]))
    yield close("J&F over all objects", OFFICIAL, summary.jf_mean, means["J&F-Mean"], 1e-12)
    for letter, found in (("J", summary.j), ("F", summary.f)):
        yield _statistics(f"{letter} over all objects: mean, recall, decay", letter, found, means)


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
