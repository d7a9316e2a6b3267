"""The tasks: names, metrics and what each needs. Imports nothing heavy."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, Literal

from layerboard.tasks.protocols import EvaluationProtocol
from layerboard.zoo.errors import InputError, require_known
from layerboard.zoo.references import find_object, is_reference

Role = Literal[
    "classification", "retrieval", "videos", "keypoints", "scenes", "objects", "parts", "masks", "weights"
]
"""Kinds of datasets; ``weights`` stands for none, where a task looks at a backbone's weights alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskEntry:
    """A task of the benchmark.

    The numbers of an ``analysis`` describe a backbone and do not rank it: they have a page of their own and
    are no column of the best-layer table. What is drawn of one is a ``drawing``, ``module:name`` of a
    function from its evidence (`tasks.analyses.drawings.evidence`) to blocks; "" for a line a backbone and a
    point a head.
    """

    name: str  # on the command line and in records
    role: Role
    title: str  # what it measures, for lists
    data: str  # dataset of the standard protocol
    metrics: tuple[str, ...]  # in the order of tables, the primary one first; others follow by name
    asks: str  # what it finds out about the features, as a question for a newcomer
    measures: str  # what the primary metric counts
    analysis: bool = False
    default: bool = True  # whether it is run where no task is named
    labels: bool = True  # whether it needs the classes of its images, of the role ``classification``
    unlabelled: bool = False  # whether it is run on images without classes where no task is named
    drawing: str = ""
    code: str | type[Any] = ""  # its class (`tasks.task.Task`), or where it is found: imported when it runs
    by_protocol: tuple[tuple[str, str], ...] = ()  # protocols that run another class, and where it is found

    @property
    def metric(self) -> str:
        """Name of the primary metric."""
        return self.metrics[0]


_VOTES = tuple(f"top-{rank}{k}" for k in ("", " k=10", " k=20", " k=100", " k=200") for rank in (1, 5))
_RANKINGS = tuple(
    f"{name} {level}" for name in ("mAP", "mP@1", "mP@5", "mP@10") for level in ("medium", "easy", "hard")
)
_CLUSTERINGS = ("purity", "NMI", "ARI")

_classified = partial(TaskEntry, role="classification", data="ImageNet-1k")
# an analysis of what goes on inside, on probe images that need no classes; run where it is named
_inside = partial(
    TaskEntry, role="classification", data="ImageNet-50", analysis=True, default=False, labels=False
)

TASKS: tuple[TaskEntry, ...] = (
    _classified(
        name="knn",
        code="layerboard.tasks.knn:KnnTask",
        title="k-NN classification",
        metrics=_VOTES,
        asks="Do the images most similar to an image show the same class? They vote on its class.",
        measures="top-1: images that are given their own class",
    ),
    _classified(
        name="fewshot",
        code="layerboard.tasks.probes:FewShotTask",
        title="few-shot linear probe",
        metrics=("top1-10shot", "top1-1shot", "top1-5shot", "top1-25shot"),
        asks="Are the classes linearly readable from a few labelled images of each?",
        measures="top1-10shot: images given their own class by a linear probe of 10 images a class",
        default=False,
    ),
    _classified(
        name="linear",
        code="layerboard.tasks.probes:LinearTask",
        title="linear probe on all labels",
        metrics=("top1", "top1-bn"),
        asks="How far does a linear layer get that is trained on all labels?",
        measures="top1: images given their own class by the trained linear layer",
        default=False,
    ),
    TaskEntry(
        name="retrieval",
        code="layerboard.tasks.retrieval:RetrievalTask",
        role="retrieval",
        title="instance retrieval",
        data="revisited Oxford and Paris",
        metrics=_RANKINGS,
        asks="Does a photo of a place find the other photos of that place?",
        measures="mAP medium: mean average precision over the queries, Medium setup",
    ),
    TaskEntry(
        name="davis",
        code="layerboard.tasks.propagation.task:PropagationTask",
        role="videos",
        title="video mask propagation",
        data="DAVIS-2017 val",
        metrics=("J&F", "J", "F"),
        asks="Can objects outlined in a video's first frame be followed to its last by matching patches?",
        measures="J&F: mean of region overlap (J) and outline accuracy (F)",
    ),
    TaskEntry(
        name="spair",
        code="layerboard.tasks.keypoints.task:KeypointTask",
        role="keypoints",
        title="keypoint correspondence",
        data="SPair-71k test",
        metrics=tuple(
            f"PCK@{alpha}{variant}"
            for variant in ("", " per image", " per keypoint", " image size")
            for alpha in ("0.1", "0.05", "0.01", "0.15", "0.2")
        ),
        asks="Does a point on an object, such as an ear, find the same point on another such object?",
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
        asks="Do patches of labelled images tell what the patches of another image show? They vote.",
        measures="mIoU: intersection over union of predicted and true pixels, mean over the classes",
        default=False,
    ),
    _classified(
        name="cluster-image",
        code="layerboard.tasks.clustering:ImageClusterTask",
        title="k-means clustering of images",
        data="ImageNet-50",
        metrics=_CLUSTERINGS,
        asks="Do images fall into their classes when grouped without labels (k-means)?",
        measures="purity: images that belong to the commonest class of their group",
    ),
    TaskEntry(
        name="cluster-object",
        code="layerboard.tasks.clustering:RegionClusterTask",
        role="objects",
        title="k-means clustering of objects",
        data="COCO val2017",
        metrics=_CLUSTERINGS,
        asks="Do objects, cut out by their masks, fall into their categories when grouped?",
        measures="purity: objects that belong to the commonest category of their group",
    ),
    TaskEntry(
        name="cluster-part",
        code="layerboard.tasks.clustering:RegionClusterTask",
        role="parts",
        title="k-means clustering of parts",
        data="PartImageNet",
        metrics=_CLUSTERINGS,
        asks="Do parts of objects, cut out by their masks, fall into their kinds when grouped?",
        measures="purity: parts that belong to the commonest kind of their group",
    ),
    _classified(
        name="cka",
        code="layerboard.tasks.cka:CkaTask",
        title="similarity of layers",
        data="ImageNet-50",
        metrics=("CKA",),
        asks="Do two layers see the same images as similar?",
        measures="CKA: 1 for the same similarities, 0 for unrelated ones",
        labels=False,
        unlabelled=True,
    ),
    _inside(
        name="attention-maps",
        code="layerboard.tasks.analyses.attention_maps:AttentionMapsTask",
        title="average attention maps and offsets",
        metrics=(
            *("map-centre-distance", "std-over-queries", "std-over-heads"),
            *("offset", "offset-unit", "local-mass", "peak-offset", "offset-heads"),
        ),
        asks="Where do the class token and the patches look on average, and do heads look to one side?",
        measures="map-centre-distance: mean distance of the attention from the image's centre, unit square",
        drawing="layerboard.tasks.analyses.drawings.attention:draw_maps",
    ),
    _inside(
        name="attention-distance",
        code="layerboard.tasks.analyses.attention:AttentionDistance",
        title="how far attention heads look",
        metrics=(
            *("attention-distance", "attention-distance-px", "attention-distance-ratio"),
            *("distance-range", "local-heads"),
        ),
        asks="Do attention heads look at what is near, or all over the image?",
        measures="attention-distance: mean distance from a patch to what it attends to, on the unit square",
        drawing="layerboard.tasks.analyses.drawings.attention:draw_distance",
    ),
    _inside(
        name="attention-shares",
        code="layerboard.tasks.analyses.attention:AttentionShares",
        title="what attention gives to special tokens",
        metrics=("entropy", "attention-to-cls", "attention-to-registers", "attention-to-self"),
        asks="Is attention spread or sharp, and how much of it goes to tokens that are no part of the image?",
        measures="entropy: of the attention of a token over all tokens, as a share of the largest",
        drawing="layerboard.tasks.analyses.drawings.attention:draw_shares",
    ),
    _inside(
        name="localisation",
        code="layerboard.tasks.analyses.places:LocalisationTask",
        title="whether tokens hold their places",
        metrics=("localisation", *(f"localisation-{name}" for name in ("top1", "distance", "contrast"))),
        asks="Does a token in the depth of a network still tell of its own place in the image?",
        measures="localisation: share of the other image patches that are less similar (CKA) to a token than "
        "the patch at its own place; 0.5 by chance",
        drawing="layerboard.tasks.analyses.drawings.tokens:draw_localisation",
    ),
    _inside(
        name="position-audit",
        code="layerboard.tasks.analyses.places:PositionAudit",
        title="how much of tokens is their place",
        metrics=(
            *("position-r2", "same-place", "same-place-chance", "match-distance"),
            *("position-r2-row", "position-r2-column"),
        ),
        asks="Can the place of a token be read off it, and do tokens of unrelated images match because they "
        "are at the same place?",
        measures="position-r2: share of the variance of row and column that a linear map reads off tokens of "
        "images that it has not seen; 0 where nothing can be read",
        drawing="layerboard.tasks.analyses.drawings.tokens:draw_position",
    ),
    _inside(
        name="saliency",
        code="layerboard.tasks.analyses.saliency:SaliencyTask",
        role="masks",
        labels=True,
        title="whether attention marks objects",
        data="COCO val2017, PartImageNet",
        metrics=(
            *(f"saliency-iou-{ending}" for ending in ("best", "best-block", "best-head", "best-held-out")),
            *("saliency-iou-oracle", "saliency-iou-merged"),
            *("saliency-iou", "saliency-iou-uniform", "rollout-iou", "rollout-iou-max", "rollout-iou-min"),
            *(f"rollout-iou-{ending}" for ending in ("discard", "max-discard", "min-discard")),
        ),
        asks="Do attention heads, and attention through all layers, mark the objects of an image?",
        measures="saliency-iou-best: intersection over union with the objects' masks, of a layer's best head",
        drawing="layerboard.tasks.analyses.drawings.attention:draw_saliency",
    ),
    _inside(
        name="receptive-field",
        code="layerboard.tasks.analyses.receptive_field:ReceptiveFieldTask",
        title="which pixels move a token",
        metrics=("erf-half-radius", "erf-half-area", "erf-centre-share"),
        asks="How far around the centre of an image do the pixels lie that move the token there?",
        measures="erf-half-radius: radius around the token that holds half of the gradients by the pixels, "
        "over the side of the image; 0.399 where all pixels count alike",
        drawing="layerboard.tasks.analyses.drawings.pixels:draw_fields",
    ),
    _inside(
        name="inspect",
        code="layerboard.tasks.analyses.inspect:InspectTask",
        role="weights",
        labels=True,
        title="what the first weights look like",
        data="none",
        metrics=(
            *("filter-rank", "filter-variance-28"),
            *(f"position-{name}" for name in ("distance-rho", "row", "column", "other")),
        ),
        asks="How many kinds of filters see the pixels, and have position embeddings learned the grid?",
        measures="filter-rank: effective number of principal components of the first filters",
        drawing="layerboard.tasks.analyses.drawings.pixels:draw_weights",
    ),
    _inside(
        name="residuals",
        code="layerboard.tasks.analyses.residuals:Residuals",
        title="what blocks add to what skips them",
        metrics=(
            *("norm-ratio", "norm-ratio-frobenius"),
            *("cosine-skip-output", "cosine-skip-branch", "cosine-branch-output"),
            *("zero-branches", "phase-transition"),
        ),
        asks="Does a block change the stream of features much, or let it pass?",
        measures="norm-ratio: length of what skips half a block, over the length of what that half adds",
        drawing="layerboard.tasks.analyses.drawings.residuals:draw_residuals",
    ),
    _inside(
        name="residual-cka",
        code="layerboard.tasks.analyses.residual_cka:ResidualCka",
        title="similarity of skips, branches and outputs",
        metrics=("cka-skip-branch", "cka-skip-output", "cka-branch-output", "CKA"),
        asks="Does what a block adds find the same images alike as what skips it?",
        measures="cka-skip-branch: CKA of what skips half a block with what that half adds",
        drawing="layerboard.tasks.analyses.drawings.residuals:draw_similarity",
    ),
    _inside(
        name="locality",
        code="layerboard.tasks.analyses.locality:Locality",
        title="likeness of local heads to a ConvNet",
        metrics=("locality-rho",),
        asks="Are the heads that look near those that are like the first blocks of a ConvNet?",
        measures="locality-rho: rank correlation of how far heads look and their CKA with a ConvNet",
        drawing="layerboard.tasks.analyses.drawings.attention:draw_locality",
    ),
    _inside(
        name="token-probes",
        code="layerboard.tasks.analyses.token_probes:TokenProbes",
        labels=True,
        title="few-shot probes of single tokens",
        metrics=("fewshot-10", "fewshot-10-first"),
        asks="Is one patch token enough to tell the class of the image?",
        measures="fewshot-10: percent of images given their own class by a probe of one token, which learned "
        "from 10 images a class; the mean over tokens",
        drawing="layerboard.tasks.analyses.drawings.tokens:draw_tokens",
    ),
    _inside(
        name="label-free",
        code="layerboard.tasks.analyses.label_free:LabelFree",
        title="criteria of layers that need no labels",
        data="ImageNet-50, or images without labels",
        metrics=(
            *("effective-rank", "rankme", "spectrum-decay", "cka-to-last"),
            *("neighbours-to-last", "view-neighbours", "view-top1"),
        ),
        asks="Which layers spread images over many directions, are like the last one, and see an image and "
        "its mirror image alike? None of it is an accuracy.",
        measures="effective-rank: over how many directions the vectors of the images are spread; exp of the "
        "entropy of their singular values",
        drawing="layerboard.tasks.analyses.drawings.tokens:draw_label_free",
        unlabelled=True,
    ),
    TaskEntry(
        name="cost",
        code="layerboard.tasks.analyses.cost:CostTask",
        role="weights",
        title="time, memory and size up to each depth",
        data="none",
        metrics=(
            *("ms", "ms-batch", "parameters", "gflops", "dim", "bytes"),
            *("images-per-second", "best-batch", "largest-batch", "latency", "peak-memory"),
            *("spread", "waiting"),
        ),
        asks="What does a layer cost on this machine, if the backbone is cut after it?",
        measures="ms: milliseconds of one image up to the layer",
        analysis=True,
    ),
)

COST = "cost"  # the task that measures what layers cost, which has a page of its own
DEPENDS_ON_LOAD = tuple(  # metrics of costs that no two runs measure alike
    name for name in TASKS[-1].metrics if name not in ("parameters", "gflops", "dim", "bytes")
)
WITHOUT_LABELS = tuple(task for task in TASKS if task.unlabelled)  # run by default on images without classes
INSIDE = "inside"  # stands for the registry's analyses where tasks are named, but for `WITHOUT_LABELS`


def find_tasks(names: Sequence[str]) -> tuple[TaskEntry, ...]:
    """Tasks of those names, or those run by default: of the registry in its order, then others as given.

    Names are those of the registry, ``inside`` for its analyses of what goes on inside, or ``module:name`` of
    an entry of somebody's own.

    Raises:
        InputError: There is no task of a name, or what is found there is none.
    """
    others = tuple(_own(name) for name in dict.fromkeys(names) if is_reference(name))
    known = [*(task.name for task in TASKS), INSIDE]
    require_known("task", (name for name in names if not is_reference(name)), known)
    if not names:
        return tuple(task for task in TASKS if task.default)
    grouped = [task for task in TASKS if task.analysis and not task.unlabelled and INSIDE in names]
    return (*(task for task in TASKS if task.name in names or task in grouped), *others)


def _own(reference: str) -> TaskEntry:
    """An entry that is not of this package; raises InputError for anything else."""
    entry = find_object(reference)
    if not isinstance(entry, TaskEntry) or not entry.code:
        raise InputError(
            f"{reference}: expected a TaskEntry with its code (tasks.registry); found {type(entry).__name__}."
        )
    if any(task.name == entry.name for task in TASKS):
        raise InputError(f"{reference} is a task of the name {entry.name!r}, which the registry has.")
    return entry


def load_code(task: TaskEntry, protocol: str = "") -> type[Any]:
    """The class of a task by a protocol, which is imported now."""
    code = dict(task.by_protocol).get(protocol) or task.code
    if isinstance(code, type):
        return code
    module, _, name = code.partition(":")
    return getattr(import_module(module), name)  # type: ignore[no-any-return]


def entry_of(code: type[Any]) -> TaskEntry:
    """The registry's entry of a class; one without a name for a class that has none, which is run by hand."""
    reference = f"{code.__module__}:{code.__name__}"
    for task in TASKS:
        if reference in (task.code, *dict(task.by_protocol).values()):
            return task
    return TaskEntry(
        name="", code=code, role="weights", title="", data="", metrics=("",), asks="", measures=""
    )


def config_of(protocol: EvaluationProtocol, name: str) -> Any:  # noqa: ANN401 - of the task's own class
    """The numbers of a task of the registry by a protocol."""
    (task,) = (task for task in TASKS if task.name == name)
    return protocol.choice(load_code(task, protocol.name).configs)
