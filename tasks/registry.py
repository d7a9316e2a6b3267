"""The tasks: names, metrics and what each needs. Imports nothing heavy."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from zoo.errors import InputError, unknown
from zoo.references import find_object, is_reference

Role = Literal["classification", "retrieval", "videos", "keypoints", "objects", "parts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEntry:
    """A task of the benchmark.

    Attributes:
        name: Name on the command line and in records.
        role: Kind of dataset that it needs.
        title: What it measures, for lists.
        data: Dataset of the standard protocol.
        metrics: Names of its metrics in the order of tables, the primary one first; others follow by name.
        asks: What it finds out about the features, as a question for a newcomer.
        measures: What the primary metric counts.
        analysis: Whether its numbers describe a backbone and do not rank it: they have a page of their own
            and are no column of the best-layer table.
        default: Whether it is run where no task is named.
        bind: Joins it with the data of its role; None for the tasks of this package, whose table is in
            `benchmark.plan.problems`.
    """

    name: str
    role: Role
    title: str
    data: str
    metrics: tuple[str, ...]
    asks: str
    measures: str
    analysis: bool = False
    default: bool = True
    bind: Callable[..., Any] | None = None

    @property
    def metric(self) -> str:
        """Name of the primary metric."""
        return self.metrics[0]


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

TASKS: tuple[TaskEntry, ...] = (
    TaskEntry(
        name="knn",
        role="classification",
        title="k-NN classification",
        data="ImageNet-1k",
        metrics=_VOTES,
        asks="Do the images most similar to an image show the same class? They vote on its class.",
        measures="top-1: images that are given their own class",
    ),
    TaskEntry(
        name="retrieval",
        role="retrieval",
        title="instance retrieval",
        data="revisited Oxford and Paris",
        metrics=_RANKINGS,
        asks="Does a photo of a place find the other photos of that place?",
        measures="mAP medium: mean average precision over the queries, Medium setup",
    ),
    TaskEntry(
        name="davis",
        role="videos",
        title="video mask propagation",
        data="DAVIS-2017 val",
        metrics=("J&F", "J", "F"),
        asks="Can objects outlined in a video's first frame be followed to its last by matching patches?",
        measures="J&F: mean of region overlap (J) and outline accuracy (F)",
    ),
    TaskEntry(
        name="spair",
        role="keypoints",
        title="keypoint correspondence",
        data="SPair-71k test",
        metrics=_KEYPOINTS,
        asks="Does a point on an object, such as an ear, find the same point on another such object?",
        measures="PCK@0.1: points found within 0.1 of the longer side of the object's box",
    ),
    TaskEntry(
        name="cluster-image",
        role="classification",
        title="k-means clustering of images",
        data="ImageNet-50",
        metrics=_CLUSTERINGS,
        asks="Do images fall into their classes when grouped without labels (k-means)?",
        measures="purity: images that belong to the commonest class of their group",
    ),
    TaskEntry(
        name="cluster-object",
        role="objects",
        title="k-means clustering of objects",
        data="COCO val2017",
        metrics=_CLUSTERINGS,
        asks="Do objects, cut out by their masks, fall into their categories when grouped?",
        measures="purity: objects that belong to the commonest category of their group",
    ),
    TaskEntry(
        name="cluster-part",
        role="parts",
        title="k-means clustering of parts",
        data="PartImageNet",
        metrics=_CLUSTERINGS,
        asks="Do parts of objects, cut out by their masks, fall into their kinds when grouped?",
        measures="purity: parts that belong to the commonest kind of their group",
    ),
    TaskEntry(
        name="cka",
        role="classification",
        title="similarity of layers",
        data="ImageNet-50",
        metrics=("CKA",),
        asks="Do two layers see the same images as similar?",
        measures="CKA: 1 for the same similarities, 0 for unrelated ones",
    ),
    TaskEntry(
        name="attention-distance",
        role="classification",
        title="how far attention heads look",
        data="ImageNet-50",
        metrics=("attention-distance", "attention-distance-px", "attention-distance-ratio"),
        asks="Do attention heads look at what is near, or all over the image?",
        measures="attention-distance: mean distance from a patch to what it attends to, on the unit square",
        analysis=True,
        default=False,
    ),
)


INSIDE = "inside"
"""Stands for all analyses of the registry where tasks are named."""


def find_tasks(names: Sequence[str]) -> tuple[TaskEntry, ...]:
    """Tasks of those names; those run by default if none is given.

    Args:
        names: Names of the registry, ``inside`` for all of its analyses, or ``module:name`` of an entry of
            somebody's own, with `TaskEntry.bind`.

    Returns:
        Those of the registry in its order, then the others in the order given.

    Raises:
        InputError: There is no task of a name, or what is found there is none.
    """
    own = tuple(_own(name) for name in dict.fromkeys(names) if is_reference(name))
    known = [*(task.name for task in TASKS), INSIDE]
    for name in names:
        if name not in known and not is_reference(name):
            raise unknown("task", name, known)
    return (*(task for task in TASKS if (_asked(task, names) if names else task.default)), *own)


def _asked(task: TaskEntry, names: Sequence[str]) -> bool:
    """Whether a task of the registry is among those names."""
    return task.name in names or (task.analysis and INSIDE in names)


def _own(reference: str) -> TaskEntry:
    """An entry that is not of this package; raises InputError for anything else."""
    found = find_object(reference)
    if not isinstance(found, TaskEntry) or found.bind is None:
        raise InputError(
            f"{reference}: expected a TaskEntry with bind (tasks.registry); found {type(found).__name__}."
        )
    if any(task.name == found.name for task in TASKS):
        raise InputError(f"{reference} is a task of the name {found.name!r}, which the registry has.")
    return found
