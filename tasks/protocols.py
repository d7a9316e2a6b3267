"""The protocols: all numbers of all tasks, side by side. A result without its protocol is not a result.

``standard`` is the clean practice. ``paper`` is what the released code of Walmer et al., Teaching Matters,
CVPR 2023 (repository mwalmer-umd/vit_analysis, commit c8810df) does, quirks included, so that its tables can
be reproduced; where that code depends on the order of a folder listing, the order here is alphabetical.
"""

from dataclasses import dataclass, replace

from tasks.analyses.attention_maps import MapRule
from tasks.analyses.cost import CostRule
from tasks.analyses.inspect import InspectRule
from tasks.analyses.label_free import LabelFreeRule
from tasks.analyses.localisation import LocalisationRule
from tasks.analyses.locality import LocalityRule
from tasks.analyses.receptive_field import ReceptiveFieldRule
from tasks.analyses.saliency import SaliencyRule
from tasks.augmented import Augmentation
from tasks.capi import CapiRule
from tasks.cka import CkaRule
from tasks.clustering import ClusterRule
from tasks.hummingbird import HummingbirdRule
from tasks.in_context import Vote
from tasks.keypoints import KeypointRule, PairDraw
from tasks.knn import KnnRule
from tasks.metrics.few_shot import FewShotRule
from tasks.metrics.saliency import Threshold
from tasks.metrics.softmax import SoftmaxRule
from tasks.pixel_memory import Electorate
from tasks.propagation import PropagationRule
from tasks.retrieval import RetrievalRule
from tasks.segmentation import SegmentationRule
from tasks.sources import Batches
from zoo.errors import unknown
from zoo.view.views import (
    FitLongSide,
    Letterbox,
    LoweredSquare,
    ResizeCrop,
    Stretch,
    ThumbnailCrop,
    Tiles,
    View,
    WholeFrame,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationProtocol:
    """The numbers and the ways of all tasks, and their only owner: rules and metrics have no defaults.

    Attributes:
        name: Name on the command line and in records.
        title: What it is, in a line.
        tasks: Names of the tasks that it speaks of; None for all.
        images: How images of a classification dataset are shown (k-NN, image clustering, CKA).
        batches: Batches of CKA.
        own_probe: Images that each class gives the probe subset (image clustering, CKA) where the dataset has
            no list of its own.
        own_unlabelled: Images at most that are looked at where the images have no classes.
        knn: Numbers of k-NN.
        fewshot: Numbers of few-shot classification.
        linear: Numbers of the trained linear probe.
        retrieval: Numbers of retrieval.
        propagation: Numbers of mask propagation.
        keypoints: Numbers of keypoint correspondence.
        clusters: Numbers of the clusterings.
        cka: Numbers of CKA.
        maps: Numbers of the average attention maps.
        segmentation: Numbers of segmentation in context.
        saliency: Numbers of saliency.
        localisation: Numbers of the similarity of tokens and patches.
        fields: Numbers of receptive fields.
        inspect: Numbers of the inspection of weights.
        cost: Numbers of the measurement of cost.
        residual_cka: Numbers of CKA of skips, branches and outputs.
        locality: Numbers of the comparison of heads with ConvNets.
        label_free: Numbers of the criteria that need no labels.
        objects_left_out: How many of the first images of the object dataset are left out at their end.
        parts_as_objects: Whether parts fall into as many clusters as there are object categories.
        parts_by_partition: Whether classes of the part dataset are taken partition by partition and stay
            together (`PartImageNetEntry`), instead of in sorted order and in turns.
        further_masks: Whether VOC 2012 is segmented by its further training masks (trainaug).
    """

    name: str
    title: str
    tasks: tuple[str, ...] | None
    images: View
    batches: Batches
    own_probe: int
    own_unlabelled: int
    knn: KnnRule
    fewshot: FewShotRule
    linear: SoftmaxRule
    retrieval: RetrievalRule
    propagation: PropagationRule
    keypoints: KeypointRule
    clusters: ClusterRule
    cka: CkaRule
    maps: MapRule
    segmentation: SegmentationRule | CapiRule
    saliency: SaliencyRule
    localisation: LocalisationRule
    fields: ReceptiveFieldRule
    inspect: InspectRule
    cost: CostRule
    residual_cka: CkaRule
    locality: LocalityRule
    label_free: LabelFreeRule
    objects_left_out: int
    parts_as_objects: bool
    parts_by_partition: bool
    further_masks: bool


_TILES = Tiles(short=448, tile=224)
_IMAGES = ResizeCrop(short=256, crop=224)
_PAPER_IMAGES = ResizeCrop(short=224, crop=224)
_LOCALISATION = LocalisationRule(batch=256, cells=256)
_FIELDS = ReceptiveFieldRule(images=32, channels=32, seed=0)
_INSPECT = InspectRule(components=28)
SEGMENTATION = SegmentationRule(
    view=Stretch(side=448), vote=Vote(k=30, other=1, temperature=0.02), least=0.5, seed=0
)
"""Of `standard`, and of exported features."""

_COST = CostRule(warm_up=2, rounds=5, single_seconds=0.2, most_rounds=50, gain=1.03, images=250, seconds=20.0)
_FEW_SHOT = FewShotRule(
    shots=(10, 1, 5, 25),
    seeds=(0, 1, 2),
    penalties=tuple(2.0**power for power in range(-6, 21, 2)),
    held_out=5,
    penalty=2.0**10,
)
_LINEAR = SoftmaxRule(
    epochs=20,
    batch=1024,
    momentum=0.9,
    rates=(0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0),
    held_out=100,
    least=4,
    seed=0,
)

STANDARD = EvaluationProtocol(
    name="standard",
    title="the clean practice; the default",
    tasks=None,
    images=_IMAGES,
    batches=Batches(size=256, seed=0),
    own_probe=100,
    own_unlabelled=5000,
    knn=KnnRule(k=20, others=(10, 100, 200), temperature=0.07),
    fewshot=_FEW_SHOT,
    linear=_LINEAR,
    retrieval=RetrievalRule(view=FitLongSide(long=224), crop_queries=True),
    propagation=PropagationRule(
        n_last_frames=7,
        topk=5,
        radius=12,
        circle=False,
        temperature=0.1,
        keep_vanished=True,
        view=WholeFrame(short=480),
        decimals=None,
    ),
    keypoints=KeypointRule(
        alphas=(0.1, 0.05, 0.01),
        view=Letterbox(side=224),
        draw=None,
        whole_pixels=False,
    ),
    clusters=ClusterRule(n_init=10, seed=0, view=_TILES),
    cka=CkaRule(poolings=("cls", "mean", "patch"), min_max=False),
    maps=MapRule(normalised=False, samples=6),
    segmentation=SEGMENTATION,
    saliency=SaliencyRule(
        view=_IMAGES,
        threshold=Threshold(mass=0.6, margin=1e-6, ties=True),
        separate_masks=False,
        splits=100,
        seed=0,
        discard=0.9,
        images_per_supercategory=500,
    ),
    localisation=_LOCALISATION,
    fields=_FIELDS,
    inspect=_INSPECT,
    cost=_COST,
    residual_cka=CkaRule(poolings=("cls", "patch", "all"), min_max=False),
    locality=LocalityRule(block=1, blocks=5),
    label_free=LabelFreeRule(neighbours=10),
    objects_left_out=0,
    parts_as_objects=False,
    parts_by_partition=False,
    further_masks=False,
)

PAPER = EvaluationProtocol(
    name="paper",
    title="the released code of Teaching Matters (Walmer et al., CVPR 2023), quirks included",
    tasks=None,
    images=_PAPER_IMAGES,
    batches=Batches(size=8, seed=None),
    own_probe=100,
    own_unlabelled=5000,
    knn=KnnRule(k=20, others=(10, 100, 200), temperature=0.07),
    fewshot=replace(_FEW_SHOT, penalties=()),
    linear=_LINEAR,
    retrieval=RetrievalRule(view=ThumbnailCrop(long=224, crop=224), crop_queries=False),
    propagation=PropagationRule(
        n_last_frames=7,
        topk=5,
        radius=12,
        circle=False,
        temperature=0.1,
        keep_vanished=False,
        view=_TILES,
        decimals=3,
    ),
    keypoints=KeypointRule(
        alphas=(0.1, 0.05, 0.01),
        view=Letterbox(side=224, lanczos=True),
        draw=PairDraw(per_category=20, seed=42),
        whole_pixels=True,
    ),
    clusters=ClusterRule(n_init=10, seed=0, view=_TILES),
    cka=CkaRule(poolings=("cls", "patch", "all"), min_max=True),
    maps=MapRule(normalised=True, samples=6),
    segmentation=SEGMENTATION,
    saliency=SaliencyRule(
        view=_PAPER_IMAGES,
        threshold=Threshold(mass=0.6, margin=0.0, ties=False),
        separate_masks=True,
        splits=100,
        seed=0,
        discard=0.9,
        images_per_supercategory=500,
    ),
    localisation=_LOCALISATION,
    fields=_FIELDS,
    inspect=_INSPECT,
    cost=_COST,
    residual_cka=CkaRule(poolings=("cls", "patch", "all"), min_max=True),
    locality=LocalityRule(block=1, blocks=5),
    label_free=LabelFreeRule(neighbours=10),
    objects_left_out=1,
    parts_as_objects=True,
    parts_by_partition=True,
    further_masks=False,
)

HUMMINGBIRD = replace(
    STANDARD,
    name="hummingbird",
    title="segmentation in context by its public evaluation (open-hummingbird-eval), 102,400 cells",
    tasks=("segment",),
    segmentation=HummingbirdRule(
        view=LoweredSquare(side=512),
        vote=Vote(k=30, other=1, temperature=0.02),
        least=0.0,
        seed=123,
        memory=102_400,
        augmentation=Augmentation(
            epochs=2,
            contrast=0.1,
            hue=0.1,
            probability=0.5,
            area=(0.5, 2.0),
            ratio=(3 / 4, 4 / 3),
            tries=10,
            seed=123,
        ),
    ),
    further_masks=True,
)

CAPI = replace(
    STANDARD,
    name="capi",
    title="segmentation by a vote of pixels, as the k-NN evaluation of CAPI (Darcet et al., 2025)",
    tasks=("segment",),
    segmentation=CapiRule(
        view=Stretch(side=224),
        electorate=Electorate(ks=(1, 3, 10, 30), distances=("cosine", "L2")),
        held_out=10,
        seed=0,
    ),
)

PROTOCOLS = (STANDARD, PAPER, HUMMINGBIRD, CAPI)


def find_protocol(name: str) -> EvaluationProtocol:
    """The protocol of that name; raises InputError for an unknown one."""
    for protocol in PROTOCOLS:
        if protocol.name == name:
            return protocol
    raise unknown("protocol", name, [protocol.name for protocol in PROTOCOLS])
