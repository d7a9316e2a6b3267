"""The tasks: names, metrics and what each needs. Imports nothing heavy."""

from dataclasses import dataclass
from typing import Literal

from zoo.errors import unknown

Kind = Literal["vector", "dense", "comparison"]
Role = Literal["classification", "retrieval", "videos", "keypoints", "objects", "parts"]


@dataclass(frozen=True, slots=True)
class TaskEntry:
    """A task of the benchmark.

    Attributes:
        name: Name on the command line and in records.
        kind: Scores stored vectors, is fed grids, or compares backbones.
        role: Kind of dataset that it needs.
        metric: Primary metric.
        title: What it measures, for lists.
        data: Dataset of the standard protocol.
    """

    name: str
    kind: Kind
    role: Role
    metric: str
    title: str
    data: str


TASKS: tuple[TaskEntry, ...] = (
    TaskEntry("knn", "vector", "classification", "top-1", "k-NN classification", "ImageNet-1k"),
    TaskEntry(
        "retrieval", "vector", "retrieval", "mAP medium", "instance retrieval", "revisited Oxford and Paris"
    ),
    TaskEntry("davis", "dense", "videos", "J&F", "video mask propagation", "DAVIS-2017 val"),
    TaskEntry("spair", "dense", "keypoints", "PCK@0.1", "keypoint correspondence", "SPair-71k test"),
    TaskEntry(
        "cluster-image", "vector", "classification", "purity", "k-means clustering of images", "ImageNet-50"
    ),
    TaskEntry(
        "cluster-object", "dense", "objects", "purity", "k-means clustering of objects", "COCO val2017"
    ),
    TaskEntry("cluster-part", "dense", "parts", "purity", "k-means clustering of parts", "PartImageNet"),
    TaskEntry("cka", "comparison", "classification", "CKA", "similarity of layers", "ImageNet-50"),
)


def find_tasks(names: tuple[str, ...]) -> tuple[TaskEntry, ...]:
    """Tasks of those names in registry order, all if none is given; raises InputError for an unknown one."""
    known = {task.name: task for task in TASKS}
    for name in names:
        if name not in known:
            raise unknown("task", name, known)
    return tuple(task for task in TASKS if not names or task.name in names)
