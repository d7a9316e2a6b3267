"""How tasks, metrics and poolings are called, ordered and formatted in tables; one entry a task."""

import math
import re
from dataclasses import dataclass

COMPARISON_TASK = "cka"

TIED = "≈"
"""Mark of a score that the data cannot tell from the best one."""


@dataclass(frozen=True, slots=True)
class TaskDisplay:
    """How a task is shown.

    Attributes:
        name: The task's name in records.
        asks: What the task finds out about the features, for a newcomer.
        measures: What the primary metric counts.
        metrics: Its metrics in the order of the tables; others follow by name.
    """

    name: str
    asks: str
    measures: str
    metrics: tuple[str, ...]


_VOTES = tuple(f"top-{rank}{k}" for k in ("", " k=10", " k=20", " k=100", " k=200") for rank in (1, 5))
_RANKINGS = tuple(
    f"{name} {level}" for name in ("mAP", "mP@1", "mP@5", "mP@10") for level in ("medium", "easy", "hard")
)
_KEYPOINTS = tuple(
    f"PCK@{alpha}{variant}"
    for variant in ("", " per image", " per keypoint", " image size")
    for alpha in ("0.1", "0.05", "0.01")
)
_CLUSTERINGS = ("purity", "NMI", "ARI")

TASKS: tuple[TaskDisplay, ...] = (
    TaskDisplay(
        "knn",
        "Do the images most similar to an image show the same class? They vote on its class.",
        "top-1: images that are given their own class",
        _VOTES,
    ),
    TaskDisplay(
        "retrieval",
        "Does a photo of a place find the other photos of that place?",
        "mAP medium: mean average precision over the queries, Medium setup",
        _RANKINGS,
    ),
    TaskDisplay(
        "davis",
        "Can objects outlined in a video's first frame be followed to its last by matching patches?",
        "J&F: mean of region overlap (J) and outline accuracy (F)",
        ("J&F", "J", "F"),
    ),
    TaskDisplay(
        "spair",
        "Does a point on an object, such as an ear, find the same point on another such object?",
        "PCK@0.1: points found within 0.1 of the longer side of the object's box",
        _KEYPOINTS,
    ),
    TaskDisplay(
        "cluster-image",
        "Do images fall into their classes when grouped without labels (k-means)?",
        "purity: images that belong to the commonest class of their group",
        _CLUSTERINGS,
    ),
    TaskDisplay(
        "cluster-object",
        "Do objects, cut out by their masks, fall into their categories when grouped?",
        "purity: objects that belong to the commonest category of their group",
        _CLUSTERINGS,
    ),
    TaskDisplay(
        "cluster-part",
        "Do parts of objects, cut out by their masks, fall into their kinds when grouped?",
        "purity: parts that belong to the commonest kind of their group",
        _CLUSTERINGS,
    ),
    TaskDisplay(
        COMPARISON_TASK,
        "Do two layers see the same images as similar?",
        "CKA: 1 for the same similarities, 0 for unrelated ones",
        ("CKA",),
    ),
)

POOLINGS: dict[str, str] = {
    "cls": "class token",
    "mean": "mean of the patch tokens",
    "grid": "the grid of patch features",
    "patch": "all patch tokens, flattened",
}
GLOBAL_AVERAGE = "global average"
"""What the mean is called where it stands in for the class token that a ConvNet lacks."""


def task_display(name: str) -> TaskDisplay:
    """The entry of a task; a bare one for a task that has none."""
    found = [task for task in TASKS if task.name == name]
    return found[0] if found else TaskDisplay(name, "", "", ())


def file_name(suite: str) -> str:
    """A suite's name as the name of its files, which stay in their folder whatever it is called."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", suite).strip(".-") or "unnamed"


def natural(text: str) -> tuple[tuple[int, str], ...]:
    """Sort key by which ``k=9`` comes before ``k=10``."""
    parts = re.findall(r"\d+|\D+", text)
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in parts)


def task_rank(name: str) -> tuple[int, str]:
    """Sort key of tasks: order of `TASKS`, then unknown ones by name."""
    names = [task.name for task in TASKS]
    return (names.index(name) if name in names else len(names), name)


def metric_rank(task: str, metric: str) -> tuple[int, tuple[tuple[int, str], ...]]:
    """Sort key of a task's metrics: order of its entry, then unknown ones by name."""
    names = task_display(task).metrics
    return (names.index(metric) if metric in names else len(names), natural(metric))


def pooling_rank(pooling: str) -> tuple[int, str]:
    """Sort key of poolings: order of `POOLINGS`, then unknown ones by name."""
    names = list(POOLINGS)
    return (names.index(pooling) if pooling in names else len(names), pooling)


def pooling_name(pooling: str) -> str:
    """A pooling in words."""
    return POOLINGS.get(pooling, pooling)


def fixed(value: float, decimals: int) -> str:
    """A number with so many decimals, never ``-0.0``; "" where there is none."""
    return "" if math.isnan(value) else f"{round(value, decimals) + 0.0:.{decimals}f}"


def score_text(value: float, spread: float = math.nan) -> str:
    """A score as tables show it: percent with one decimal, and its spread where that is known."""
    return _with_spread(value, spread, 1)


def similarity_text(value: float, spread: float = math.nan) -> str:
    """A CKA as tables show it: three decimals, and its spread where that is known."""
    return _with_spread(value, spread, 3)


def signed_text(value: float) -> str:
    """A difference of scores as tables show it: one decimal and a sign, ``0.0`` where it rounds to that."""
    text = fixed(value, 1)
    return f"+{text}" if text not in ("", "0.0") and value > 0 else text


def _with_spread(value: float, spread: float, decimals: int) -> str:
    """``value ± spread``, without the spread where there is none, "" without a value."""
    text, around = fixed(value, decimals), fixed(spread, decimals)
    return f"{text} ± {around}" if text and around else text


def marked(text: str, *, best: bool, tied: bool) -> str:
    """A cell's text in bold where it is the best, followed by `TIED` where it cannot be told from that."""
    if best:
        return f"**{text}**"
    return f"{text} {TIED}" if tied else text


def ranges_text(numbers: list[int]) -> str:
    """Whole numbers in words: ``1, 2, 4 to 6``."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    texts = [[f"{run[0]} to {run[-1]}"] if len(run) > 2 else [str(number) for number in run] for run in runs]
    return ", ".join(text for run in texts for text in run)
