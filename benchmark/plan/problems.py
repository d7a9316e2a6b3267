"""From the data of a role to a bound task: one function a task, in one table."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from benchmark.plan.bound import (
    AnalysisTask,
    BoundTask,
    Comparison,
    CostTask,
    GradientTask,
    InspectTask,
    MeasuredTask,
    RememberingTask,
    Subject,
    VectorsTask,
    VectorTask,
)
from tasks.analyses.attention_distance import AttentionDistance
from tasks.analyses.attention_maps import AttentionMapsProblem
from tasks.analyses.attention_shares import AttentionShares
from tasks.analyses.cost import CostProblem
from tasks.analyses.inspect import InspectProblem
from tasks.analyses.label_free import LabelFree
from tasks.analyses.localisation import LocalisationProblem
from tasks.analyses.locality import Locality
from tasks.analyses.position_audit import PositionAudit
from tasks.analyses.receptive_field import ReceptiveFieldProblem
from tasks.analyses.residual_cka import ResidualCka
from tasks.analyses.residuals import Residuals
from tasks.analyses.saliency import SaliencyProblem
from tasks.analyses.token_probes import TokenProbes
from tasks.cka import CkaProblem
from tasks.clustering import ImageClusterProblem, RegionClusterProblem
from tasks.datasets.base import Coverage
from tasks.datasets.coco import Regions
from tasks.datasets.davis import Videos
from tasks.datasets.revisitop import Retrieval
from tasks.datasets.scenes import Scenes
from tasks.datasets.spair import Keypoints
from tasks.fewshot import FewShotProblem
from tasks.keypoints.problem import KeypointProblem
from tasks.knn import KnnProblem
from tasks.linear import LinearProblem
from tasks.propagation.problem import PropagationProblem
from tasks.protocols import EvaluationProtocol
from tasks.registry import TaskEntry
from tasks.retrieval import RetrievalProblem
from tasks.segmentation.capi import CapiProblem, CapiRule
from tasks.segmentation.hummingbird import HummingbirdProblem, HummingbirdRule
from tasks.segmentation.problem import SegmentationProblem
from tasks.sources import ClusteredRegions, ProbedClasses, ProbedImages

Bind = Callable[[TaskEntry, Any, EvaluationProtocol], BoundTask]
"""Joins a task with the data of its role (`benchmark.plan.datasets`) by the rules of a protocol."""


def knn(entry: TaskEntry, data: ProbedClasses, rules: EvaluationProtocol) -> VectorTask:
    """Bind k-NN to validation images and the bank of training images."""
    images = data.images
    subject = Subject(entry, rules.name, images.name, images.split, images.coverage)
    problem = KnnProblem(images, data.where, rules.knn)
    return VectorTask(subject, problem, examples=problem.examples)


def fewshot(entry: TaskEntry, data: ProbedClasses, rules: EvaluationProtocol) -> VectorTask:
    """Bind few-shot classification to validation and training images."""
    images = data.images
    subject = Subject(entry, rules.name, images.name, images.split, images.coverage)
    return VectorTask(subject, FewShotProblem(images, data.where, rules.fewshot), all_tokens=True)


def linear(entry: TaskEntry, data: ProbedClasses, rules: EvaluationProtocol) -> VectorTask:
    """Bind the trained linear probe to validation and training images."""
    images = data.images
    subject = Subject(entry, rules.name, images.name, images.split, images.coverage)
    return VectorTask(subject, LinearProblem(images, data.where, rules.linear), all_tokens=True)


def retrieval(entry: TaskEntry, data: Retrieval, rules: EvaluationProtocol) -> VectorTask:
    """Bind retrieval to one of the revisited datasets."""
    subject = Subject(entry, rules.name, data.name, "database, queries", data.coverage)
    problem = RetrievalProblem(data, rules.retrieval)
    return VectorTask(subject, problem, examples=problem.examples)


def davis(entry: TaskEntry, data: Videos, rules: EvaluationProtocol) -> MeasuredTask:
    """Bind mask propagation to videos."""
    subject = Subject(entry, rules.name, data.name, "val", data.coverage)
    problem = PropagationProblem(data, rules.propagation)
    return MeasuredTask(subject, problem, examples=problem.examples)


def spair(entry: TaskEntry, data: Keypoints, rules: EvaluationProtocol) -> MeasuredTask:
    """Bind keypoint correspondence to pairs of images."""
    coverage = data.coverage
    if coverage.partial and rules.keypoints.draw is not None:
        note = "pairs drawn from what is there, which are others than those drawn from all"
        coverage = replace(coverage, notes=(*coverage.notes, note))
    primary = rules.keypoints.primary
    entry = replace(entry, metrics=tuple(dict.fromkeys((primary, *entry.metrics))))
    subject = Subject(entry, rules.name, data.name, "test", coverage)
    problem = KeypointProblem(data, rules.keypoints)
    return MeasuredTask(subject, problem, examples=problem.examples)


def segment(entry: TaskEntry, data: Scenes, rules: EvaluationProtocol) -> RememberingTask:
    """Bind segmentation in context to images to learn from and images to label."""
    subject = Subject(entry, rules.name, data.name, "train, val", data.coverage)
    rule = rules.segmentation
    if isinstance(rule, HummingbirdRule):
        return RememberingTask(subject, HummingbirdProblem(data, rule))
    if isinstance(rule, CapiRule):
        return RememberingTask(subject, CapiProblem(data, rule))
    return RememberingTask(subject, SegmentationProblem(data, rule))


def cluster_image(entry: TaskEntry, data: ProbedClasses, rules: EvaluationProtocol) -> VectorTask:
    """Bind the clustering of images to the probe subset."""
    subject = _on_probe(entry, data, rules)
    classes = data.images.train.classes
    problem = ImageClusterProblem(data.where, data.labels, rules.clusters, classes)
    return VectorTask(subject, problem, examples=problem.examples)


def cluster_object(entry: TaskEntry, data: ClusteredRegions, rules: EvaluationProtocol) -> MeasuredTask:
    """Bind the clustering of objects to their images."""
    return _regions(entry, data, "objects", "val", rules)


def cluster_part(entry: TaskEntry, data: ClusteredRegions, rules: EvaluationProtocol) -> MeasuredTask:
    """Bind the clustering of parts to their images."""
    return _regions(entry, data, "parts", "train, val, test", rules)


def cka(entry: TaskEntry, data: ProbedImages, rules: EvaluationProtocol) -> Comparison:
    """Bind CKA to the probe subset."""
    return Comparison(_on_probe(entry, data, rules), CkaProblem(data.where, rules.cka))


def attention_distance(entry: TaskEntry, data: ProbedImages, rules: EvaluationProtocol) -> AnalysisTask:
    """Bind attention distance to the probe subset."""
    return AnalysisTask(_on_probe(entry, data, rules), AttentionDistance(data.where))


def attention_maps(entry: TaskEntry, data: ProbedImages, rules: EvaluationProtocol) -> AnalysisTask:
    """Bind average attention maps to the probe subset."""
    return AnalysisTask(_on_probe(entry, data, rules), AttentionMapsProblem(data.where, rules.maps))


def attention_shares(entry: TaskEntry, data: ProbedImages, rules: EvaluationProtocol) -> AnalysisTask:
    """Bind the shares of special tokens to the probe subset."""
    return AnalysisTask(_on_probe(entry, data, rules), AttentionShares(data.where))


def saliency(entry: TaskEntry, data: Regions, rules: EvaluationProtocol) -> AnalysisTask:
    """Bind saliency to the images of a dataset with masks."""
    subject = Subject(entry, rules.name, data.name, "masks", data.coverage)
    return AnalysisTask(subject, SaliencyProblem(data, rules.saliency))


def localisation(entry: TaskEntry, data: ProbedImages, rules: EvaluationProtocol) -> AnalysisTask:
    """Bind the similarity of tokens and image patches to the probe subset."""
    return AnalysisTask(_on_probe(entry, data, rules), LocalisationProblem(data.where, rules.localisation))


def position_audit(entry: TaskEntry, data: ProbedImages, rules: EvaluationProtocol) -> AnalysisTask:
    """Bind the position audit to the probe subset; it is worth having without the position, too."""
    problem = PositionAudit(data.where, rules.position)
    return AnalysisTask(_on_probe(entry, data, rules), problem, transforms=True)


def receptive_field(entry: TaskEntry, data: ProbedImages, rules: EvaluationProtocol) -> GradientTask:
    """Bind receptive fields to a few images of the probe subset."""
    return GradientTask(_on_probe(entry, data, rules), ReceptiveFieldProblem(data.where, rules.fields))


def inspect(entry: TaskEntry, data: None, rules: EvaluationProtocol) -> InspectTask:
    """Bind the inspection of weights, which needs no data."""
    return InspectTask(Subject(entry, rules.name, "weights", "", Coverage(())), InspectProblem(rules.inspect))


def cost(entry: TaskEntry, data: None, rules: EvaluationProtocol) -> CostTask:
    """Bind the measurement of cost, which needs no data; its records name the device in its place."""
    return CostTask(Subject(entry, rules.name, "device", "", Coverage(())), CostProblem(rules.cost))


def residuals(entry: TaskEntry, data: ProbedImages, rules: EvaluationProtocol) -> AnalysisTask:
    """Bind norm ratios and cosines of residual sums to the probe subset."""
    return AnalysisTask(_on_probe(entry, data, rules), Residuals(data.where))


def residual_cka(entry: TaskEntry, data: ProbedImages, rules: EvaluationProtocol) -> AnalysisTask:
    """Bind CKA of skips, branches and outputs to the probe subset."""
    return AnalysisTask(_on_probe(entry, data, rules), ResidualCka(data.where, rules.residual_cka))


def locality(entry: TaskEntry, data: ProbedImages, rules: EvaluationProtocol) -> Comparison:
    """Bind the comparison of heads with ConvNets to the probe subset."""
    return Comparison(_on_probe(entry, data, rules), Locality(data.where, rules.locality))


def token_probes(entry: TaskEntry, data: ProbedClasses, rules: EvaluationProtocol) -> AnalysisTask:
    """Bind probes of single tokens to the probe subset."""
    problem = TokenProbes(data.where, data.labels, rules.fewshot)
    return AnalysisTask(_on_probe(entry, data, rules), problem, "token")


def label_free(entry: TaskEntry, data: ProbedImages, rules: EvaluationProtocol) -> VectorsTask:
    """Bind the criteria that need no labels to the probe subset."""
    return VectorsTask(_on_probe(entry, data, rules), LabelFree(data.where, rules.label_free))


PROBLEMS: Mapping[str, Bind] = {
    "knn": knn,
    "fewshot": fewshot,
    "linear": linear,
    "retrieval": retrieval,
    "davis": davis,
    "spair": spair,
    "segment": segment,
    "cluster-image": cluster_image,
    "cluster-object": cluster_object,
    "cluster-part": cluster_part,
    "cka": cka,
    "attention-maps": attention_maps,
    "attention-distance": attention_distance,
    "attention-shares": attention_shares,
    "saliency": saliency,
    "localisation": localisation,
    "position-audit": position_audit,
    "receptive-field": receptive_field,
    "inspect": inspect,
    "residuals": residuals,
    "residual-cka": residual_cka,
    "locality": locality,
    "token-probes": token_probes,
    "label-free": label_free,
    "cost": cost,
}
"""By name of the task."""


def _on_probe(entry: TaskEntry, data: ProbedImages, rules: EvaluationProtocol) -> Subject:
    """A task on the probe subset, whose coverage says what was there of the whole dataset, too."""
    whole = data.images.coverage
    notes, remarks = (*whole.notes, *data.coverage.notes), (*whole.remarks, *data.coverage.remarks)
    coverage: Coverage = replace(data.coverage, notes=notes, remarks=remarks)
    split = "train-probe" if isinstance(data, ProbedClasses) else "images"
    return Subject(entry, rules.name, data.images.name, split, coverage)


def _regions(
    entry: TaskEntry, data: ClusteredRegions, unit: str, split: str, rules: EvaluationProtocol
) -> MeasuredTask:
    regions = data.regions
    subject = Subject(entry, rules.name, regions.name, split, regions.coverage)
    return MeasuredTask(subject, RegionClusterProblem(regions, data.k, unit, rules.clusters))
