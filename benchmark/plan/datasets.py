"""Tasks joined with the data that is there."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmark.plan.limits import limit_classes, limit_keypoints, limit_regions, limit_retrieval, limit_videos
from benchmark.plan.plan import BoundTask, Problem
from benchmark.plan.suites import Catalogue
from tasks.cka import CkaProblem
from tasks.clustering import ImageClusterProblem, RegionClusterProblem
from tasks.datasets.base import Classification, Coverage, Regions
from tasks.datasets.coco import read_coco
from tasks.datasets.davis import read_davis
from tasks.datasets.folder import read_folder
from tasks.datasets.hub import read_hub_dataset
from tasks.datasets.imagenet import probe_subset, read_imagenet
from tasks.datasets.partimagenet import read_partimagenet
from tasks.datasets.revisitop import RevisitedEntry, read_revisited
from tasks.datasets.spair import read_spair
from tasks.keypoints import KeypointProblem
from tasks.knn import KnnProblem
from tasks.propagation import PropagationProblem
from tasks.protocols import STANDARD, EvaluationProtocol
from tasks.registry import TaskEntry
from tasks.retrieval import RetrievalProblem
from tasks.sources import ClassificationSources, classification_sources
from zoo.errors import InputError, MissingDataError


@dataclass(frozen=True)
class DataLocation:
    """Where the data is.

    Attributes:
        catalogue: Datasets of the suite.
        data: Folder that holds them; None for the user's own images.
        images: Folder of class folders, or ``hf:`` dataset, that replaces them all.
        limit: At most so many images a class, videos, pairs a category, images with regions, queries.
        protocol: Numbers of the tasks.
    """

    catalogue: Catalogue
    data: Path | None
    images: str | None = None
    limit: int | None = None
    protocol: EvaluationProtocol = STANDARD


@dataclass(frozen=True, slots=True)
class Unbound:
    """A task without data, and why."""

    task: str
    reason: str

    def __str__(self) -> str:
        return f"{self.task}: {self.reason}"


@dataclass
class Bound:
    """Tasks with data, those whose data is not there, and those whose data is wrong."""

    tasks: list[BoundTask] = field(default_factory=list)
    absent: list[Unbound] = field(default_factory=list)
    broken: list[Unbound] = field(default_factory=list)


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
        self._rules = location.protocol

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
            readers = self._readers(task)
            if named and not readers:
                bound.absent.append(Unbound(task.name, "needs more than the class labels that --images has"))
            for read in readers:
                try:
                    bound.tasks.append(read())
                except MissingDataError as error:
                    bound.absent.append(Unbound(task.name, str(error)))
                except InputError as error:
                    bound.broken.append(Unbound(task.name, str(error)))
        served = {one.task.name for one in bound.tasks} | {one.task for one in bound.broken}
        lacking = [str(one) for one in bound.absent if one.task not in served]
        if named and lacking:
            raise InputError(f"data of a task that was asked for is not there: {'; '.join(lacking)}")
        if not bound.tasks:
            problems = [str(one) for one in bound.broken or bound.absent]
            raise InputError(f"there is nothing to run: {'; '.join(problems) or 'no task fits this data'}")
        return bound

    def _readers(self, task: TaskEntry) -> list[Callable[[], BoundTask]]:
        """What reads and binds each dataset of a task."""
        if task.role == "classification":
            return [lambda: self._classes(task)]
        data = self._at.data
        if data is None:  # the user's own images have class labels only
            return []
        if task.role == "retrieval":
            entries = self._at.catalogue.retrieval
            return [partial(self._retrieval, task, entry, data) for entry in entries]
        read = {
            "videos": self._videos,
            "keypoints": self._keypoints,
            "objects": self._objects,
            "parts": self._parts,
        }[task.role]
        return [partial(read, task, data)]

    @cached_property
    def _probed(self) -> _ProbedClasses:
        at, entry = self._at, self._at.catalogue.classification
        wnids, per_class = (entry.probe_wnids, entry.probe_per_class)
        if at.images is not None:
            wnids, per_class = None, self._rules.own_probe
            hub = at.images.startswith("hf:")
            data = read_hub_dataset(at.images) if hub else read_folder(Path(at.images))
        else:
            assert at.data is not None
            data = read_imagenet(at.data, entry)
        data = limit_classes(data, at.limit) if at.limit else data
        probe = probe_subset(data, wnids, per_class)
        where = classification_sources(data, probe.indices, self._rules.images, self._rules.batches)
        labels = data.train.labels[where.probe_order]
        return _ProbedClasses(data, where, labels, probe.coverage)

    def _classes(self, task: TaskEntry) -> BoundTask:
        probed = self._probed
        name = probed.data.name
        if task.name == "knn":
            problem = KnnProblem(probed.data, probed.where, self._rules.knn)
            return self._bound(task, problem, name, "train, val", probed.data.coverage)
        notes = (*probed.data.coverage.notes, *probed.coverage.notes)
        coverage = replace(probed.coverage, notes=notes)
        if task.name == "cka":
            similarity = CkaProblem(probed.where, self._rules.cka)
            return self._bound(task, similarity, name, "train-probe", coverage)
        clusters = ImageClusterProblem(probed.where, probed.labels, self._rules.clusters)
        return self._bound(task, clusters, name, "train-probe", coverage)

    def _retrieval(self, task: TaskEntry, entry: RevisitedEntry, folder: Path) -> BoundTask:
        data = read_revisited(folder, entry)
        data = limit_retrieval(data, self._at.limit) if self._at.limit else data
        problem = RetrievalProblem(data, self._rules.retrieval)
        return self._bound(task, problem, data.name, "database, queries", data.coverage)

    def _videos(self, task: TaskEntry, folder: Path) -> BoundTask:
        data = read_davis(folder, self._at.catalogue.videos)
        data = limit_videos(data, self._at.limit) if self._at.limit else data
        problem = PropagationProblem(data, self._rules.propagation)
        return self._bound(task, problem, data.name, "val", data.coverage)

    def _keypoints(self, task: TaskEntry, folder: Path) -> BoundTask:
        data = read_spair(folder, self._at.catalogue.keypoints)
        data = limit_keypoints(data, self._at.limit) if self._at.limit else data
        coverage = data.coverage
        if coverage.partial and self._rules.keypoints.draw is not None:
            note = "pairs drawn from what is there, which are others than those drawn from all"
            coverage = replace(coverage, notes=(*coverage.notes, note))
        problem = KeypointProblem(data, self._rules.keypoints)
        return self._bound(task, problem, data.name, "test", coverage)

    def _objects(self, task: TaskEntry, folder: Path) -> BoundTask:
        entry = self._at.catalogue.objects
        data = read_coco(folder, replace(entry, first=entry.first - self._rules.objects_left_out))
        return self._regions(task, data, self._at.catalogue.object_clusters, "objects", "val")

    def _parts(self, task: TaskEntry, folder: Path) -> BoundTask:
        data = read_partimagenet(folder, self._at.catalogue.parts)
        catalogue = self._at.catalogue
        k = catalogue.object_clusters if self._rules.parts_as_objects else catalogue.part_clusters
        return self._regions(task, data, k, "parts", "train, val, test")

    def _regions(self, task: TaskEntry, data: Regions, k: int, unit: str, split: str) -> BoundTask:
        data = limit_regions(data, self._at.limit) if self._at.limit else data
        coverage = data.coverage
        present = len({region.label for image in data.images for region in image.regions})
        if coverage.partial and present < k:
            note = f"k-means with k = {present}, the categories present, instead of {k}"
            coverage, k = replace(coverage, notes=(*coverage.notes, note)), present
        problem = RegionClusterProblem(data, k, unit, self._rules.clusters)
        return self._bound(task, problem, data.name, split, coverage)

    def _bound(
        self, task: TaskEntry, problem: Problem, dataset: str, split: str, coverage: Coverage
    ) -> BoundTask:
        return BoundTask(task, problem, dataset, split, coverage, self._rules.name)
