"""From the data of a role to a bound task: one function a task, in one table."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from benchmark.plan.bound import AnalysisTask, BoundTask, Comparison, MeasuredTask, Subject, VectorTask
from tasks.analyses.attention_distance import AttentionDistance
from tasks.cka import CkaProblem
from tasks.clustering import ImageClusterProblem, RegionClusterProblem
from tasks.datasets.base import Coverage, Keypoints, Retrieval, Videos
from tasks.keypoints import KeypointProblem
from tasks.knn import KnnProblem
from tasks.propagation import PropagationProblem
from tasks.protocols import EvaluationProtocol
from tasks.registry import TaskEntry
from tasks.retrieval import RetrievalProblem
from tasks.sources import ClusteredRegions, ProbedClasses

Bind = Callable[[TaskEntry, Any, EvaluationProtocol], BoundTask]
"""Joins a task with the data of its role (`benchmark.plan.datasets`) by the rules of a protocol."""


def knn(entry: TaskEntry, data: ProbedClasses, rules: EvaluationProtocol) -> VectorTask:
    """Bind k-NN to validation images and the bank of training images."""
    images = data.images
    subject = Subject(entry, rules.name, images.name, "train, val", images.coverage)
    return VectorTask(subject, KnnProblem(images, data.where, rules.knn))


def retrieval(entry: TaskEntry, data: Retrieval, rules: EvaluationProtocol) -> VectorTask:
    """Bind retrieval to one of the revisited datasets."""
    subject = Subject(entry, rules.name, data.name, "database, queries", data.coverage)
    return VectorTask(subject, RetrievalProblem(data, rules.retrieval))


def davis(entry: TaskEntry, data: Videos, rules: EvaluationProtocol) -> MeasuredTask:
    """Bind mask propagation to videos."""
    subject = Subject(entry, rules.name, data.name, "val", data.coverage)
    return MeasuredTask(subject, PropagationProblem(data, rules.propagation))


def spair(entry: TaskEntry, data: Keypoints, rules: EvaluationProtocol) -> MeasuredTask:
    """Bind keypoint correspondence to pairs of images."""
    coverage = data.coverage
    if coverage.partial and rules.keypoints.draw is not None:
        note = "pairs drawn from what is there, which are others than those drawn from all"
        coverage = replace(coverage, notes=(*coverage.notes, note))
    subject = Subject(entry, rules.name, data.name, "test", coverage)
    return MeasuredTask(subject, KeypointProblem(data, rules.keypoints))


def cluster_image(entry: TaskEntry, data: ProbedClasses, rules: EvaluationProtocol) -> VectorTask:
    """Bind the clustering of images to the probe subset."""
    subject = _on_probe(entry, data, rules)
    return VectorTask(subject, ImageClusterProblem(data.where, data.labels, rules.clusters))


def cluster_object(entry: TaskEntry, data: ClusteredRegions, rules: EvaluationProtocol) -> MeasuredTask:
    """Bind the clustering of objects to their images."""
    return _regions(entry, data, "objects", "val", rules)


def cluster_part(entry: TaskEntry, data: ClusteredRegions, rules: EvaluationProtocol) -> MeasuredTask:
    """Bind the clustering of parts to their images."""
    return _regions(entry, data, "parts", "train, val, test", rules)


def cka(entry: TaskEntry, data: ProbedClasses, rules: EvaluationProtocol) -> Comparison:
    """Bind CKA to the probe subset."""
    return Comparison(_on_probe(entry, data, rules), CkaProblem(data.where, rules.cka))


def attention_distance(entry: TaskEntry, data: ProbedClasses, rules: EvaluationProtocol) -> AnalysisTask:
    """Bind attention distance to the probe subset."""
    return AnalysisTask(_on_probe(entry, data, rules), AttentionDistance(data.where))


PROBLEMS: Mapping[str, Bind] = {
    "knn": knn,
    "retrieval": retrieval,
    "davis": davis,
    "spair": spair,
    "cluster-image": cluster_image,
    "cluster-object": cluster_object,
    "cluster-part": cluster_part,
    "cka": cka,
    "attention-distance": attention_distance,
}
"""By name of the task."""


def _on_probe(entry: TaskEntry, data: ProbedClasses, rules: EvaluationProtocol) -> Subject:
    """A task on the probe subset, whose coverage says what was there of the whole dataset, too."""
    notes = (*data.images.coverage.notes, *data.coverage.notes)
    coverage: Coverage = replace(data.coverage, notes=notes)
    return Subject(entry, rules.name, data.images.name, "train-probe", coverage)


def _regions(
    entry: TaskEntry, data: ClusteredRegions, unit: str, split: str, rules: EvaluationProtocol
) -> MeasuredTask:
    regions = data.regions
    subject = Subject(entry, rules.name, regions.name, split, regions.coverage)
    return MeasuredTask(subject, RegionClusterProblem(regions, data.k, unit, rules.clusters))
