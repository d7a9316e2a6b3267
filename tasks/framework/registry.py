"""Registry of the tasks: names, metrics and requirements. Imports nothing heavy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, Literal, NamedTuple

from layerboard.tasks.framework.protocols import EvaluationProtocol
from layerboard.zoo.errors import InputError, require_known
from layerboard.zoo.references import find_object, is_reference

NO_DATA = "weights"  # role of tasks without a dataset, which use only a backbone's weights
DIRECTIONS = "directions"  # metric of a layer that CKA compares: over how many its variance is spread


class Headline(NamedTuple):
    """A number per backbone that answers the question of an analysis, for the top of its page."""

    title: str
    metric: str
    pooling: str = ""  # pooling of the score; empty for any
    tap: str = ""  # empty for any
    block: Literal["first", "last", "lowest", "whole"] = "last"  # block of the score, or the whole backbone


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEntry:
    """A task of the benchmark.

    The numbers of an ``analysis`` describe a backbone and do not rank it: they have a page of their own and
    are not a column of the best-layer table.
    """

    name: str  # on the command line and in records
    role: str  # of the datasets that it is run on (`tasks.datasets.base.DatasetEntry.roles`), or `NO_DATA`
    title: str  # short description, for lists
    data: str  # dataset of the standard protocol
    metrics: tuple[str, ...]  # in the order of tables, the primary one first; others follow by name
    asks: str  # the question that it answers about the features, for a newcomer
    measures: str  # definition of the primary metric
    analysis: bool = False
    default: bool = True  # whether it runs if no task is named
    labels: bool = True  # whether it needs classes of its images, for the role ``classification``
    unlabelled: bool = False  # whether it runs on images without classes if no task is named
    sampled: str = ""  # what is sampled with all items in it, in the plural, if it is not the item itself
    at_best: tuple[str, ...] = ()  # metrics of the best layer alone, such as its thresholds
    headlines: tuple[Headline, ...] = ()
    code: str | type[Any] = ""  # its class (`tasks.task.Task`), or the class's path, imported when it runs
    by_protocol: tuple[tuple[str, str], ...] = ()  # protocols with another class, and its path

    @property
    def metric(self) -> str:
        """Name of the primary metric."""
        return self.metrics[0]


_VOTES = tuple(f"top-{rank}{k}" for k in ("", " k=10", " k=20", " k=100", " k=200") for rank in (1, 5))
_RANKINGS = tuple(
    f"{name} {level}" for name in ("mAP", "mP@1", "mP@5", "mP@10") for level in ("medium", "easy", "hard")
)
_THRESHOLDS = tuple(
    f"{name} at precision {level}" for level in ("0.99", "0.9") for name in ("cosine", "recall")
)
_CLUSTERINGS = ("purity", "NMI", "ARI")

_classified = partial(TaskEntry, role="classification", data="ImageNet-1k")
# an analysis of the inside of a backbone, on probe images without need for classes; runs only if named
_inside = partial(
    TaskEntry, role="classification", data="ImageNet-50", analysis=True, default=False, labels=False
)

TASKS: tuple[TaskEntry, ...] = (
    _classified(
        name="knn",
        code="layerboard.tasks.classification.knn:KnnTask",
        title="k-NN classification",
        metrics=(*_VOTES, "ECE top-1"),
        at_best=("ECE top-1",),
        asks="Do the nearest neighbours of an image show its class? They vote.",
        measures="top-1: images that are given their own class",
    ),
    _classified(
        name="fewshot",
        code="layerboard.tasks.classification.probes:FewShotTask",
        title="few-shot linear probe",
        metrics=("top1-10shot", "top1-1shot", "top1-5shot", "top1-25shot", "ECE"),
        at_best=("ECE",),
        asks="Can a linear probe learn the classes from a few labelled images?",
        measures="top1-10shot: images given their own class by a linear probe of 10 images a class",
        default=False,
    ),
    _classified(
        name="linear",
        code="layerboard.tasks.classification.probes:LinearTask",
        title="linear probe on all labels",
        metrics=("top1", "top1-bn", "top1-ridge", "ECE top1", "ECE top1-bn", "ECE top1-ridge"),
        at_best=("ECE top1", "ECE top1-bn", "ECE top1-ridge"),
        asks="What accuracy does a linear layer reach that is trained on all labels?",
        measures="top1: images given their own class by the trained linear layer",
        default=False,
    ),
    TaskEntry(
        name="retrieval",
        code="layerboard.tasks.retrieval.landmarks:RetrievalTask",
        role="retrieval",
        sampled="landmarks",
        title="instance retrieval",
        data="revisited Oxford and Paris",
        metrics=_RANKINGS,
        asks="Are photos of the same landmark retrieved?",
        measures="mAP medium: mean average precision over the queries, Medium setup",
    ),
    TaskEntry(
        name="instances",
        code="layerboard.tasks.retrieval.instances:InstancesTask",
        role="instances",
        sampled="things",
        title="instances and near-duplicates",
        data="SOP, CUB",
        metrics=(
            *("recall@1", "recall@5", "recall@10", "mAP", "R-precision", "ROC AUC"),
            *("TAR at FAR 0.01", "TAR at FAR 0.001"),
            *_THRESHOLDS,
        ),
        at_best=_THRESHOLDS,
        asks="Is an image of the same thing the nearest one, and from which cosine on are two the same?",
        measures="recall@1: queries whose nearest image shows the same thing",
        default=False,
    ),
    TaskEntry(
        name="davis",
        code="layerboard.tasks.propagation.task:PropagationTask",
        role="videos",
        sampled="videos",
        title="video mask propagation",
        data="DAVIS-2017 val",
        metrics=("J&F", "J", "F"),
        asks="Can the object masks of the first frame be propagated through a video by matching patches?",
        measures="J&F: mean of region overlap (J) and outline accuracy (F)",
    ),
    TaskEntry(
        name="spair",
        code="layerboard.tasks.keypoints.task:KeypointTask",
        role="keypoints",
        sampled="pairs",
        title="keypoint correspondence",
        data="SPair-71k test",
        metrics=tuple(
            f"PCK@{alpha}{variant}"
            for variant in ("", " per image", " per keypoint", " image size")
            for alpha in ("0.1", "0.05", "0.01", "0.15", "0.2")
        ),
        asks="Is a keypoint, such as an ear, found on another object of the same category?",
        measures="PCK@0.1: points found within 0.1 of the longer side of the object's box",
    ),
    TaskEntry(
        name="segment",
        code="layerboard.tasks.segmentation.task:SegmentationTask",
        by_protocol=(
            ("hummingbird", "layerboard.tasks.segmentation.hummingbird:HummingbirdTask"),
            ("capi", "layerboard.tasks.segmentation.capi:CapiTask"),
        ),
        role="scenes",
        title="segmentation in context",
        data="PASCAL VOC 2012, ADE20k",
        metrics=("mIoU", "pixel accuracy", "class accuracy", "mIoU k=1", "mIoU ceiling"),
        asks="Do the nearest patches of labelled images predict the class of a patch?",
        measures="mIoU: intersection over union of predicted and true pixels, mean over the classes",
        default=False,
    ),
    TaskEntry(
        name="anomaly",
        code="layerboard.tasks.anomaly.task:AnomalyTask",
        role="defects",
        title="anomaly detection",
        data="MVTec AD, VisA",
        metrics=(
            *("AUROC", "AP", "F1max", "pixel AUROC", "AU-PRO", "AU-PRO 0.05", "pixel F1max"),
            *("AUROC 1-shot", "AUROC 4-shot", "memory"),
        ),
        at_best=("memory",),
        asks="Do the patches of a defect differ from those of images without one?",
        measures="AUROC: pairs of a defective and a good image of which the defective one is farther from "
        "the reference images",
        default=False,
    ),
    TaskEntry(
        name="regress",
        code="layerboard.tasks.targets.task:RegressTask",
        role="numbers",
        title="regression of numbers",
        data="your own images with numbers",
        metrics=("R2", "rho", "MAE"),
        at_best=("MAE",),
        asks="Can a linear map predict numbers that belong to an image, such as a count or an age?",
        measures="R2: variance of the numbers that ridge regression predicts of images it did not see; mean "
        "of several numbers",
        default=False,
    ),
    TaskEntry(
        name="multilabel",
        code="layerboard.tasks.targets.task:MultilabelTask",
        role="labels",
        title="multi-label classification",
        data="your own images with several labels",
        metrics=tuple(f"macro {name}{way}" for way in ("", " k-NN") for name in ("AP", "AUROC")),
        asks="Can a linear map tell which of several labels an image has?",
        measures="macro AP: average precision of a label, by ridge regression on images it did not see; mean "
        "of the labels",
        default=False,
    ),
    _classified(
        name="cluster-image",
        code="layerboard.tasks.clustering.task:ImageClusterTask",
        title="k-means clustering of images",
        data="ImageNet-50",
        metrics=_CLUSTERINGS,
        asks="Do images fall into their classes when grouped without labels (k-means)?",
        measures="purity: images that belong to the commonest class of their group",
    ),
    TaskEntry(
        name="cluster-object",
        code="layerboard.tasks.clustering.task:RegionClusterTask",
        role="objects",
        sampled="images",
        title="k-means clustering of objects",
        data="COCO val2017",
        metrics=_CLUSTERINGS,
        asks="Do objects, cut out by their masks, fall into their categories when grouped?",
        measures="purity: objects that belong to the commonest category of their group",
    ),
    TaskEntry(
        name="cluster-part",
        code="layerboard.tasks.clustering.task:RegionClusterTask",
        role="parts",
        sampled="images",
        title="k-means clustering of parts",
        data="PartImageNet",
        metrics=_CLUSTERINGS,
        asks="Do parts of objects, cut out by their masks, fall into their kinds when grouped?",
        measures="purity: parts that belong to the commonest kind of their group",
    ),
    _classified(
        name="cka",
        code="layerboard.tasks.similarity.cka:CkaTask",
        title="similarity of layers (CKA)",
        data="ImageNet-50",
        metrics=("CKA", DIRECTIONS),
        asks="Do two layers consider the same images similar?",
        measures="CKA: 1 for the same similarities, 0 for unrelated ones",
        labels=False,
        unlabelled=True,
    ),
    _classified(
        name="drift",
        code="layerboard.tasks.similarity.drift:DriftTask",
        title="difference of vectors between number formats or resizings",
        data="ImageNet-50",
        metrics=("drift", "drift-max"),
        asks="How far do the vectors of a layer move in another number format, or by another resizing?",
        measures="drift: median relative difference of the vectors of an image, 0 for none",
        default=False,
        labels=False,
    ),
    _inside(
        name="attention-maps",
        code="layerboard.tasks.analyses.attention_maps:AttentionMapsTask",
        title="attention maps and offsets",
        metrics=(
            *("map-centre-distance", "std-over-queries", "std-over-heads"),
            *("offset", "offset-unit", "local-mass", "peak-offset", "offset-heads"),
        ),
        asks="Where do class token and patches attend to, and do heads have a fixed offset?",
        measures="map-centre-distance: mean distance of the attention from the image's centre, unit square",
    ),
    _inside(
        name="attention-distance",
        code="layerboard.tasks.analyses.attention:AttentionDistance",
        title="attention distance",
        metrics=(
            *("attention-distance", "attention-distance-px", "attention-distance-ratio"),
            *("distance-range", "local-heads"),
        ),
        asks="Are attention heads local or global?",
        measures="attention-distance: mean distance from a patch to what it attends to, on the unit square",
        headlines=(
            Headline(
                "attention distance as a share of uniform attention's, the most local block",
                *("attention-distance-ratio", "patch", "attention", "lowest"),
            ),
        ),
    ),
    _inside(
        name="attention-shares",
        code="layerboard.tasks.analyses.attention:AttentionShares",
        title="attention entropy and shares",
        metrics=("entropy", "attention-to-cls", "attention-to-registers", "attention-to-self"),
        asks="Is attention broad or sharp, and how much goes to the class token and registers?",
        measures="entropy: of the attention of a token over all tokens, as a share of the largest",
        headlines=(Headline("entropy of the class token's attention, last block", "entropy", "cls"),),
    ),
    _inside(
        name="localisation",
        code="layerboard.tasks.analyses.localisation:LocalisationTask",
        title="localisation of tokens",
        metrics=("localisation", *(f"localisation-{name}" for name in ("top1", "distance", "contrast"))),
        asks="Do deep tokens still represent their own image patch?",
        measures="localisation: share of the other image patches that are less similar (CKA) to a token than "
        "the patch at its own position; 0.5 by chance",
        headlines=(
            Headline(
                "share of tokens that know their place, last block", "localisation-top1", "patch", "block"
            ),
        ),
    ),
    _inside(
        name="position-audit",
        code="layerboard.tasks.analyses.position:PositionAudit",
        title="position information in tokens",
        metrics=(
            *("position-r2", "same-place", "same-place-chance", "match-distance"),
            *("position-r2-row", "position-r2-column"),
        ),
        asks="Can the position of a token be decoded from it, and do tokens of unrelated images match "
        "because of their position?",
        measures="position-r2: share of the variance of row and column that a linear map predicts from "
        "tokens of held-out images",
        headlines=(Headline("R² of row and column, last block", "position-r2", "patch", "block"),),
    ),
    _inside(
        name="saliency",
        code="layerboard.tasks.analyses.saliency:SaliencyTask",
        role="masks",
        labels=True,
        title="overlap of attention with objects",
        data="COCO val2017, PartImageNet",
        metrics=(
            *(f"saliency-iou-{ending}" for ending in ("best", "best-block", "best-head", "best-held-out")),
            *("saliency-iou-oracle", "saliency-iou-merged"),
            *("saliency-iou", "saliency-iou-uniform", "rollout-iou", "rollout-iou-max", "rollout-iou-min"),
            *(f"rollout-iou-{ending}" for ending in ("discard", "max-discard", "min-discard")),
        ),
        asks="Do attention heads and attention rollout highlight the objects of an image?",
        measures="saliency-iou-best: intersection over union with the objects' masks, of a layer's best head",
        headlines=(
            Headline(
                "IoU of the best head, chosen on other images",
                *("saliency-iou-best-held-out", "patch", "", "whole"),
            ),
            Headline("IoU of rollout over all blocks", "rollout-iou", "cls"),
        ),
    ),
    _inside(
        name="receptive-field",
        code="layerboard.tasks.analyses.receptive_field:ReceptiveFieldTask",
        title="effective receptive fields",
        metrics=("erf-half-radius", "erf-half-area", "erf-centre-share"),
        asks="How large is the effective receptive field of the central token?",
        measures="erf-half-radius: radius around the token that holds half of the gradient magnitude, as a "
        "share of the image side; 0.399 for a uniform gradient",
        headlines=(
            Headline("radius in the first block", "erf-half-radius", tap="block", block="first"),
            Headline("radius in the last block", "erf-half-radius", tap="block"),
        ),
    ),
    _inside(
        name="inspect",
        code="layerboard.tasks.analyses.inspect:InspectTask",
        role=NO_DATA,
        labels=True,
        title="patch filters and position embeddings",
        data="none",
        metrics=(
            *("filter-rank", "filter-variance-28"),
            *(f"position-{name}" for name in ("distance-rho", "row", "column", "other")),
        ),
        asks="How diverse are the patch filters, and do position embeddings reflect the grid?",
        measures="filter-rank: effective number of principal components of the first filters",
        headlines=(Headline("effective rank of the filters", "filter-rank", block="whole"),),
    ),
    _inside(
        name="residuals",
        code="layerboard.tasks.analyses.residuals:Residuals",
        title="norms of skip connections and branches",
        metrics=(
            *("norm-ratio", "norm-ratio-frobenius"),
            *("cosine-skip-output", "cosine-skip-branch", "cosine-branch-output"),
            *("zero-branches", "phase-transition"),
        ),
        asks="How much does a block change the residual stream?",
        measures="norm-ratio: norm of the skip connection over the norm of the branch (attention or MLP)",
        headlines=(
            Headline(
                "norm of the skip over that of attention, last block", "norm-ratio", "patch", "attention"
            ),
        ),
    ),
    _inside(
        name="residual-cka",
        code="layerboard.tasks.analyses.residual_cka:ResidualCka",
        title="CKA of skips, branches and outputs",
        metrics=("cka-skip-branch", "cka-skip-output", "cka-branch-output", "CKA"),
        asks="Are the branch and the skip connection of a block similar (CKA)?",
        measures="cka-skip-branch: CKA of the skip connection with the branch (attention or MLP)",
        headlines=(
            Headline("CKA of skip and attention, last block", "cka-skip-branch", "patch", "attention"),
        ),
    ),
    _inside(
        name="locality",
        code="layerboard.tasks.analyses.locality:Locality",
        title="local heads compared with a ConvNet",
        metrics=("locality-rho",),
        asks="Are local heads similar to the first blocks of a ConvNet?",
        measures="locality-rho: rank correlation of attention distance and CKA with a ConvNet, over heads",
    ),
    _inside(
        name="token-probes",
        code="layerboard.tasks.analyses.token_probes:TokenProbes",
        labels=True,
        title="few-shot probes of single tokens",
        metrics=("fewshot-10", "fewshot-10-first"),
        asks="Can the class of an image be predicted from a single patch token?",
        measures="fewshot-10: percent of images given their own class by a probe of one token, which learned "
        "from 10 images a class; the mean over tokens",
        headlines=(Headline("accuracy of one token, last block, %", "fewshot-10", "token", "block"),),
    ),
    _inside(
        name="label-free",
        code="layerboard.tasks.analyses.label_free:LabelFree",
        title="label-free criteria of layers",
        data="ImageNet-50, or images without labels",
        metrics=(
            *("effective-rank", "rankme", "spectrum-decay", "cka-to-last"),
            *("neighbours-to-last", "view-neighbours", "view-top1"),
        ),
        asks="Which layers spread images over many directions, resemble the last one, and are invariant "
        "to mirroring? None of these is an accuracy.",
        measures="effective-rank: over how many directions the vectors of the images are spread; exp of the "
        "entropy of their singular values",
        unlabelled=True,
    ),
    TaskEntry(
        name="cost",
        code="layerboard.tasks.analyses.cost:CostTask",
        role=NO_DATA,
        title="latency, memory and parameters by depth",
        data="none",
        metrics=(
            *("ms", "ms-batch", "parameters", "gflops", "dim", "bytes", "tokens"),
            *("images-per-second", "best-batch", "largest-batch", "latency", "peak-memory"),
            *("spread", "waiting", "compiling"),
        ),
        asks="What does a backbone cost if it is cut after this layer?",
        measures="ms: latency of one image up to the layer, in milliseconds",
        analysis=True,
    ),
)

DRIFT = "drift"  # the task that compares number formats and resizings; runs if there are several
PULL = "pull"  # metric: share of a soft arg-max's weight, in percent, where similarities are nearly 0
COST = "cost"  # the task that measures the cost of layers; it has a page of its own
DEPENDS_ON_LOAD = tuple(  # cost metrics that differ from run to run
    metric
    for task in TASKS
    if task.name == COST
    for metric in task.metrics
    if metric not in ("parameters", "gflops", "dim", "bytes", "tokens")
)
DISTURBED = {"spread": 50.0, "waiting": 5.0}  # above these, in percent, other work disturbed the times
# roles that the user's own images may have, and what is needed for each
OWN_ROLES: Mapping[str, str] = {
    "classification": "class folders or --labels",
    "defects": "folders NAME/train/good and NAME/test in --images",
    "instances": "folders query and database, class folders or --copies",
    "numbers": "a column of numbers in --labels",
    "labels": "several labels an image in --labels, parted by | or columns of 0 and 1",
}
# of these, roles whose layout implies the task: their tasks run if none is named
LAID_OUT = tuple(role for role in OWN_ROLES if role != "classification")
WITHOUT_LABELS = tuple(task for task in TASKS if task.unlabelled)  # run by default on images without classes
INSIDE = "inside"  # name that stands for all analyses of the registry except `WITHOUT_LABELS`


def find_tasks(names: Sequence[str]) -> tuple[TaskEntry, ...]:
    """The named tasks, or the default ones: first those of the registry, in its order, then others as given.

    Names are those of the registry, ``inside`` for its analyses of the inside of a backbone, or
    ``module:name`` of an external entry. Raises InputError for any other, or an object that is not a task.
    """
    others = tuple(_own(name) for name in dict.fromkeys(names) if is_reference(name))
    known = [*(task.name for task in TASKS), INSIDE]
    require_known("task", (name for name in names if not is_reference(name)), known)
    if not names:
        return tuple(task for task in TASKS if task.default)
    grouped = [task for task in TASKS if task.analysis and not task.unlabelled and INSIDE in names]
    return (*(task for task in TASKS if task.name in names or task in grouped), *others)


def find_covered(names: Sequence[str], protocols: Sequence[EvaluationProtocol]) -> tuple[TaskEntry, ...]:
    """The tasks of `find_tasks`; raises InputError for a named one that no protocol covers, too."""
    asked = find_tasks(names)
    for task in asked if names else ():
        if not any(protocol.covers(task.name) for protocol in protocols):
            scopes = " and ".join(protocol.scope for protocol in protocols)
            raise InputError(f"{scopes}; --tasks names {task.name}, too")
    return asked


def _own(reference: str) -> TaskEntry:
    """An entry from outside this package; raises InputError for anything else."""
    entry = find_object(reference)
    if not isinstance(entry, TaskEntry) or not entry.code:
        raise InputError(
            f"{reference}: expected a TaskEntry with its code (tasks.registry); found {type(entry).__name__}."
        )
    if any(task.name == entry.name for task in TASKS):
        raise InputError(f"{reference} is a task of the name {entry.name!r}, which the registry has.")
    return entry


def load_code(task: TaskEntry, protocol: str = "") -> type[Any]:
    """Import and return the class of a task for a protocol."""
    code = dict(task.by_protocol).get(protocol) or task.code
    if isinstance(code, type):
        return code
    module, _, name = code.partition(":")
    return getattr(import_module(module), name)  # type: ignore[no-any-return]


def entry_of(code: type[Any]) -> TaskEntry:
    """The registry's entry for a class; an entry without a name for an unregistered class, run by hand."""
    reference = f"{code.__module__}:{code.__name__}"
    for task in TASKS:
        if reference in (task.code, *dict(task.by_protocol).values()):
            return task
    return TaskEntry(name="", code=code, role=NO_DATA, title="", data="", metrics=("",), asks="", measures="")


def config_of(protocol: EvaluationProtocol, name: str) -> Any:  # noqa: ANN401 - of the task's own class
    """The config of a registered task for a protocol."""
    (task,) = (task for task in TASKS if task.name == name)
    return protocol.config_for(load_code(task, protocol.name).configs)
