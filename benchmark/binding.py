"""Tasks joined with the data that is there."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmark.limits import limit_classes, limit_keypoints, limit_regions, limit_retrieval, limit_videos
from benchmark.plan import BoundTask
from benchmark.suites import Catalogue
from tasks.cka import CkaProblem
from tasks.clustering import ImageClusterProblem, RegionClusterProblem
from tasks.datasets.base import Classification, Coverage, Regions
from tasks.datasets.coco import read_coco
from tasks.datasets.davis import read_davis
from tasks.datasets.folder import read_folder
from tasks.datasets.hub import read_hub_dataset
from tasks.datasets.imagenet import probe_subset, read_imagenet
from tasks.datasets.partimagenet import read_partimagenet
from tasks.datasets.revisitop import read_revisited
from tasks.datasets.spair import read_spair
from tasks.keypoints import KeypointProblem
from tasks.knn import KnnProblem
from tasks.propagation import PropagationProblem
from tasks.registry import TaskEntry
from tasks.retrieval import RetrievalProblem
from tasks.sources import ClassificationSources, classification_sources
from zoo.errors import InputError

OWN_PROBE = 100
"""Images per class of the probe subset of a dataset without a list of its own."""


@dataclass(frozen=True)
class DataLocation:
    """Where the data is.

    Attributes:
        catalogue: Datasets of the suite.
        data: Folder that holds them; None for the user's own images.
        images: Folder of class folders, or ``hf:`` dataset, that replaces them all.
        limit: At most so many images a class, videos, pairs a category, images with regions, queries.
    """

    catalogue: Catalogue
    data: Path | None
    images: str | None = None
    limit: int | None = None


@dataclass
class Bound:
    """Tasks with data, and those that have none: task name and why."""

    tasks: list[BoundTask] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _ProbedClasses:
    """A classification dataset, its sources, and the labels of its probe subset."""

    data: Classification
    where: ClassificationSources
    labels: NDArray[np.int64]
    coverage: Coverage


class Binder:
    """Reads each dataset once for all tasks that need it."""

    def __init__(self, location: DataLocation) -> None:
        self._at = location

    def bind(self, tasks: Sequence[TaskEntry], *, named: bool) -> Bound:
        """Join tasks with data.

        Args:
            tasks: The tasks.
            named: Whether the user named them; absent data is then an error.

        Raises:
            InputError: A named task has no data, or no task has any.
        """
        bound = Bound()
        for task in tasks:
            for role, folder, read in self._readers(task):
                try:
                    if folder is not None and not folder.is_dir():
                        bound.absent.append(f"{task.name} needs {role} at {folder}")
                    else:
                        bound.tasks.append(read())
                except InputError as error:
                    bound.broken.append(f"{task.name}: {error}")
        lacking = [name for name in bound.absent if not _has_data(name.split()[0], bound)]
        if named and lacking:
            raise InputError(f"expected data that is not there: {'; '.join(lacking)}")
        if not bound.tasks:
            problems = bound.broken or bound.absent or ["no task fits this data"]
            raise InputError(f"there is nothing to run: {'; '.join(problems)}")
        return bound

    def _readers(self, task: TaskEntry) -> list[tuple[str, Path | None, Callable[[], BoundTask]]]:
        """For each dataset of a task: its name, its folder, and what reads and binds it."""
        at = self._at
        catalogue = at.catalogue
        if task.role == "classification":
            folder = None if at.data is None else at.data / catalogue.classification.folder
            return [(catalogue.classification.name, folder, lambda: self._classes(task))]
        if at.data is None:
            return []
        data = at.data
        if task.role == "retrieval":
            return [
                (entry.name, data / entry.folder, lambda e=entry: self._retrieval(task, e))  # type: ignore[misc]
                for entry in catalogue.retrieval
            ]
        one: dict[str, tuple[str, str, Callable[[], BoundTask]]] = {
            "videos": (catalogue.videos.name, catalogue.videos.folder, lambda: self._videos(task)),
            "keypoints": (
                catalogue.keypoints.name,
                catalogue.keypoints.folder,
                lambda: self._keypoints(task),
            ),
            "objects": (catalogue.objects.name, catalogue.objects.folder, lambda: self._objects(task)),
            "parts": (catalogue.parts.name, catalogue.parts.folder, lambda: self._parts(task)),
        }
        name, folder_name, read = one[task.role]
        return [(name, data / folder_name, read)]

    @cached_property
    def _probed(self) -> _ProbedClasses:
        at, entry = self._at, self._at.catalogue.classification
        wnids, per_class = (entry.probe_wnids, entry.probe_per_class)
        if at.images is not None:
            wnids, per_class = None, OWN_PROBE
            hub = at.images.startswith("hf:")
            data = read_hub_dataset(at.images) if hub else read_folder(Path(at.images))
        else:
            assert at.data is not None
            data = read_imagenet(at.data, entry)
        data = limit_classes(data, at.limit) if at.limit else data
        probe = probe_subset(data, wnids, per_class)
        where = classification_sources(data, probe.indices)
        labels = data.train.labels[where.probe_order]
        return _ProbedClasses(data, where, labels, probe.coverage)

    def _classes(self, task: TaskEntry) -> BoundTask:
        probed = self._probed
        name = probed.data.name
        if task.name == "knn":
            problem = KnnProblem(probed.data, probed.where)
            return BoundTask(task, problem, name, "train, val", probed.data.coverage)
        coverage = Coverage(
            (*probed.data.coverage.counts, *probed.coverage.counts),
            (*probed.data.coverage.notes, *probed.coverage.notes),
        )
        if task.name == "cka":
            return BoundTask(task, CkaProblem(probed.where), name, "train-probe", coverage)
        clusters = ImageClusterProblem(probed.where, probed.labels)
        return BoundTask(task, clusters, name, "train-probe", coverage)

    def _retrieval(self, task: TaskEntry, entry: "object") -> BoundTask:
        from tasks.datasets.revisitop import RevisitedEntry

        assert isinstance(entry, RevisitedEntry)
        assert self._at.data is not None
        data = read_revisited(self._at.data, entry)
        data = limit_retrieval(data, self._at.limit) if self._at.limit else data
        return BoundTask(task, RetrievalProblem(data), data.name, "database, queries", data.coverage)

    def _videos(self, task: TaskEntry) -> BoundTask:
        assert self._at.data is not None
        data = read_davis(self._at.data, self._at.catalogue.videos)
        data = limit_videos(data, self._at.limit) if self._at.limit else data
        return BoundTask(task, PropagationProblem(data), data.name, "val", data.coverage)

    def _keypoints(self, task: TaskEntry) -> BoundTask:
        assert self._at.data is not None
        data = read_spair(self._at.data, self._at.catalogue.keypoints)
        data = limit_keypoints(data, self._at.limit) if self._at.limit else data
        return BoundTask(task, KeypointProblem(data), data.name, "test", data.coverage)

    def _objects(self, task: TaskEntry) -> BoundTask:
        assert self._at.data is not None
        data = read_coco(self._at.data, self._at.catalogue.objects)
        return self._regions(task, data, self._at.catalogue.object_clusters, "objects", "val")

    def _parts(self, task: TaskEntry) -> BoundTask:
        assert self._at.data is not None
        data = read_partimagenet(self._at.data, self._at.catalogue.parts)
        return self._regions(task, data, self._at.catalogue.part_clusters, "parts", "train, val, test")

    def _regions(self, task: TaskEntry, data: Regions, k: int, unit: str, split: str) -> BoundTask:
        data = limit_regions(data, self._at.limit) if self._at.limit else data
        coverage = data.coverage
        present = len({region.label for image in data.images for region in image.regions})
        if coverage.partial and present < k:
            note = f"k-means with k = {present}, the categories present, instead of {k}"
            coverage, k = replace(coverage, notes=(*coverage.notes, note)), present
        return BoundTask(task, RegionClusterProblem(data, k, unit), data.name, split, coverage)


def _has_data(task: str, bound: Bound) -> bool:
    return any(one.task.name == task for one in bound.tasks)
