"""The protocols: all numbers of all tasks, side by side. A result without its protocol is not a result.

``standard`` is the clean practice. ``paper`` is what the released code of Walmer et al., Teaching Matters,
CVPR 2023 (repository mwalmer-umd/vit_analysis, commit c8810df) does, quirks included, so that its tables can
be reproduced. The others are what the released code of other papers does in one task. What a protocol does
not do as its source does is said in its ``unlike``, and on the pages.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tasks.analyses.attention_maps import MapRule
from tasks.analyses.cost import CostRule
from tasks.analyses.inspect import InspectRule
from tasks.analyses.label_free import LabelFreeRule
from tasks.analyses.localisation import LocalisationRule
from tasks.analyses.locality import LocalityRule
from tasks.analyses.position_audit import PositionRule
from tasks.analyses.receptive_field import ReceptiveFieldRule
from tasks.analyses.saliency import SaliencyRule
from tasks.cka import CkaConfig
from tasks.clustering import ClusterConfig
from tasks.keypoints.rule import KeypointConfig, PairDraw, PairSample
from tasks.knn import KnnConfig
from tasks.metrics.few_shot import FewShotRule
from tasks.metrics.saliency import Threshold
from tasks.metrics.soft_argmax import SoftArgmax
from tasks.metrics.softmax import SoftmaxRule
from tasks.propagation.rule import PropagationConfig
from tasks.retrieval import RetrievalConfig
from tasks.segmentation.augmented import Augmentation
from tasks.segmentation.capi import CapiConfig
from tasks.segmentation.hummingbird import HummingbirdConfig
from tasks.segmentation.in_context import Vote
from tasks.segmentation.pixel_memory import Electorate
from tasks.segmentation.problem import SegmentationConfig
from tasks.sources import Batches
from zoo.errors import unknown
from zoo.view.released import CornerSquare, OfTokens, ScriptFrame
from zoo.view.views import (
    FitLongSide,
    Letterbox,
    LoweredSquare,
    RaisedFrame,
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
        unlike: What of its source it does not do, or cannot, in whole sentences.
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
        position: Numbers of the position audit.
        objects_left_out: How many of the first images of the object dataset are left out at their end.
        parts_as_objects: Whether parts fall into as many clusters as there are object categories.
        parts_by_partition: Whether classes of the part dataset are taken partition by partition and stay
            together (`PartImageNetEntry`), instead of in sorted order and in turns.
        further_masks: Whether VOC 2012 is segmented by its further training masks (trainaug).
    """

    name: str
    title: str
    tasks: tuple[str, ...] | None
    unlike: tuple[str, ...]
    images: View
    batches: Batches
    own_probe: int
    own_unlabelled: int
    knn: KnnConfig
    fewshot: FewShotRule
    linear: SoftmaxRule
    retrieval: RetrievalConfig
    propagation: PropagationConfig
    keypoints: KeypointConfig
    clusters: ClusterConfig
    cka: CkaConfig
    maps: MapRule
    segmentation: SegmentationConfig | CapiConfig
    saliency: SaliencyRule
    localisation: LocalisationRule
    fields: ReceptiveFieldRule
    inspect: InspectRule
    cost: CostRule
    residual_cka: CkaConfig
    locality: LocalityRule
    label_free: LabelFreeRule
    position: PositionRule
    objects_left_out: int
    parts_as_objects: bool
    parts_by_partition: bool
    further_masks: bool

    def speaks_of(self, task: str) -> bool:
        """Whether it says how the task of that name is run."""
        return self.tasks is None or task in self.tasks


_TILES = Tiles(short=448, tile=224)
_IMAGES = ResizeCrop(short=256, crop=224)
_PAPER_IMAGES = ResizeCrop(short=224, crop=224)
_LOCALISATION = LocalisationRule(batch=256, cells=256)
_FIELDS = ReceptiveFieldRule(images=32, channels=32, seed=0)
_INSPECT = InspectRule(components=28)
SEGMENTATION = SegmentationConfig(
    view=Stretch(side=448), vote=Vote(k=30, other=1, temperature=0.02), least=0.5, seed=0
)
"""Of `standard`, and of exported features."""

_COST = CostRule(warm_up=2, rounds=5, single_seconds=0.2, most_rounds=50, gain=1.03, images=250, seconds=20.0)
_POSITION = PositionRule(images=64, penalties=tuple(10.0**power for power in range(-3, 4)))
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
    unlike=(),
    images=_IMAGES,
    batches=Batches(size=256, seed=0),
    own_probe=100,
    own_unlabelled=5000,
    knn=KnnConfig(k=20, others=(10, 100, 200), temperature=0.07),
    fewshot=_FEW_SHOT,
    linear=_LINEAR,
    retrieval=RetrievalConfig(view=FitLongSide(long=224), crop_queries=True),
    propagation=PropagationConfig(
        n_last_frames=7,
        topk=5,
        radius=12,
        circle=False,
        temperature=0.1,
        keep_vanished=True,
        every_channel=False,
        nearest=False,
        view=WholeFrame(short=480),
        decimals=None,
    ),
    keypoints=KeypointConfig(
        view=Letterbox(side=224),
        points="exact",
        source="bilinear",
        unit="both",
        search="pixels",
        soft=None,
        said="centre",
        alphas=(0.1, 0.05, 0.01),
        inclusive=False,
        draw=None,
        average="category",
    ),
    clusters=ClusterConfig(n_init=10, seed=0, view=_TILES),
    cka=CkaConfig(poolings=("cls", "mean", "patch"), min_max=False),
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
    residual_cka=CkaConfig(poolings=("cls", "patch", "all"), min_max=False),
    locality=LocalityRule(block=1, blocks=5),
    label_free=LabelFreeRule(neighbours=10),
    position=_POSITION,
    objects_left_out=0,
    parts_as_objects=False,
    parts_by_partition=False,
    further_masks=False,
)

PAPER = EvaluationProtocol(
    name="paper",
    title="the released code of Teaching Matters (Walmer et al., CVPR 2023), quirks included",
    tasks=None,
    unlike=(
        "Where the released code depends on the order of a folder listing, the order here is alphabetical.",
    ),
    images=_PAPER_IMAGES,
    batches=Batches(size=8, seed=None),
    own_probe=100,
    own_unlabelled=5000,
    knn=KnnConfig(k=20, others=(10, 100, 200), temperature=0.07),
    fewshot=replace(_FEW_SHOT, penalties=()),
    linear=_LINEAR,
    retrieval=RetrievalConfig(view=ThumbnailCrop(long=224, crop=224), crop_queries=False),
    propagation=PropagationConfig(
        n_last_frames=7,
        topk=5,
        radius=12,
        circle=False,
        temperature=0.1,
        keep_vanished=False,
        every_channel=False,
        nearest=False,
        view=_TILES,
        decimals=3,
    ),
    keypoints=KeypointConfig(
        view=Letterbox(side=224, lanczos=True),
        points="view pixel",
        source="bilinear",
        unit="tokens",
        search="all pixels",
        soft=None,
        said="corner",
        alphas=(0.1, 0.05, 0.01),
        inclusive=False,
        draw=PairDraw(per_category=20, seed=42),
        average="category",
    ),
    clusters=ClusterConfig(n_init=10, seed=0, view=_TILES),
    cka=CkaConfig(poolings=("cls", "patch", "all"), min_max=True),
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
    residual_cka=CkaConfig(poolings=("cls", "patch", "all"), min_max=True),
    locality=LocalityRule(block=1, blocks=5),
    label_free=LabelFreeRule(neighbours=10),
    position=_POSITION,
    objects_left_out=1,
    parts_as_objects=True,
    parts_by_partition=True,
    further_masks=False,
)

PROBE3D = replace(
    STANDARD,
    name="probe3d",
    title="keypoints as the code of El Banani et al., CVPR 2024 (probe3d, commit a1f1464)",
    tasks=("spair",),
    unlike=(
        "Its 200 pairs of a category depend on an unsorted listing of files; here the names are sorted, so "
        "the pairs are others, and the interval says how much other pairs would change.",
        "It draws other pairs for each level of viewpoint; here the levels are those of the same pairs.",
        "What patches of 14 pixels need beyond 800 pixels is the mean colour of ImageNet in whole pixel "
        "values, which normalisation does not turn into exactly 0.",
    ),
    keypoints=KeypointConfig(
        view=CornerSquare(side=800),
        points="truncated",
        source="corners",
        unit="tokens",
        search="tokens",
        soft=None,
        said="corner",
        alphas=(0.1,),
        inclusive=False,
        draw=PairSample(most=200, seed=20),
        average="category",
    ),
)

GEOAWARE = replace(
    STANDARD,
    name="geoaware",
    title="keypoints as the zero-shot code of Zhang et al., CVPR 2024 (GeoAware-SC, commit 99fd6b6)",
    tasks=("spair",),
    unlike=(
        "It flips the source image where object masks say so (ADAPT_FLIP), which needs masks; here it is not "
        "flipped.",
        "Its geometry-aware numbers per point take wrong points of four categories; here the right ones "
        "count.",
    ),
    keypoints=KeypointConfig(
        view=OfTokens(Letterbox(side=840, lanczos=True), tokens=60),
        points="exact",
        source="token below",
        unit="tokens",
        search="tokens",
        soft=SoftArgmax(beta=0.02, window=5),
        said="centre",
        alphas=(0.1, 0.05, 0.01),
        inclusive=False,
        draw=None,
        average="image",
    ),
)

SD_DINO = replace(
    GEOAWARE,
    name="sd-dino",
    title="keypoints as the code of Zhang et al., NeurIPS 2023, of DINO alone (sd-dino, commit b85df18)",
    unlike=("It can draw 20 pairs of a category; here all are taken, as its paper says.",),
    keypoints=replace(GEOAWARE.keypoints, soft=None, said="middle pixel", average="category"),
)

INSID3 = replace(
    STANDARD,
    name="insid3",
    title="keypoints as the code of INSID3 (visinf/INSID3, commit f1c9622), features as they are",
    tasks=("spair",),
    unlike=("Its better numbers are of features without position: add --transform debias:20 for those.",),
    keypoints=KeypointConfig(
        view=OfTokens(Stretch(side=768, bilinear=True), tokens=48),
        points="exact",
        source="nearest token",
        unit="tokens",
        search="tokens",
        soft=SoftArgmax(beta=0.04, sigma=7.0),
        said="corner",
        alphas=(0.1, 0.05, 0.15, 0.2),
        inclusive=True,
        draw=None,
        average="image",
    ),
)

DIFT = replace(
    STANDARD,
    name="dift",
    title="keypoints as the code of Tang et al., NeurIPS 2023 (dift, commit 9421eb2)",
    tasks=("spair",),
    unlike=("By which filter it resizes images was not looked up; here it is bicubic.",),
    keypoints=KeypointConfig(
        view=OfTokens(Stretch(side=768), tokens=48),
        points="image pixel",
        source="bilinear",
        unit="samples",
        search="image pixels",
        soft=None,
        said="corner",
        alphas=(0.1,),
        inclusive=True,
        draw=None,
        average="image",
    ),
)

DINO = replace(
    STANDARD,
    name="dino",
    title="mask propagation at the sizes of DINO's script (Caron et al., ICCV 2021; commit 7c446df)",
    tasks=("davis",),
    unlike=(
        "It divides the red channel by a deviation of 0.228; here normalisation is the backbone's own.",
        "An object that covers all of a frame evenly has no range to scale: its script computes NaN, here it "
        "counts as 1.",
        "Patches that do not divide 64 have no size in its script: the nearest multiples are taken.",
    ),
    propagation=replace(STANDARD.propagation, keep_vanished=False, view=ScriptFrame(short=480, step=64)),
)

DINOV3 = replace(
    STANDARD,
    name="dinov3",
    title="mask propagation as DINOv3's tracking notebook (facebookresearch/dinov3, commit 6876159)",
    tasks=("davis",),
    unlike=("The notebook holds no score; J and F are the official ones.",),
    propagation=PropagationConfig(
        n_last_frames=7,
        topk=5,
        radius=12,
        circle=True,
        temperature=0.2,
        keep_vanished=False,
        every_channel=True,
        nearest=True,
        view=RaisedFrame(short=960),
        decimals=None,
    ),
)

HUMMINGBIRD = replace(
    STANDARD,
    name="hummingbird",
    title="segmentation in context by its public evaluation (open-hummingbird-eval), 102,400 cells",
    tasks=("segment",),
    unlike=(
        "Its search is approximate by default (512 leaves, of which 32 are searched); here it is exact.",
        "It divides the blue channel by a deviation of 0.255; here normalisation is the backbone's own.",
        "Workers draw its colours and crops, so that only their distribution can be had again; here they "
        "follow from an image's name and the time that it is shown.",
        "Between colours, crop and resize pixels are whole values here, and rows of the memory are half "
        "precision.",
    ),
    segmentation=HummingbirdConfig(
        view=LoweredSquare(side=512, bilinear=True),
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
    unlike=(
        "It remembers every cell; here as many as the dataset's entry says (100,000), so that its published "
        "numbers are others.",
        "Which images it holds out follows from an unsorted listing; here names are sorted, and of those "
        "images only what is remembered chooses the vote.",
        "It computes in bfloat16; here in single precision.",
    ),
    segmentation=CapiConfig(
        view=Stretch(side=224),
        electorate=Electorate(ks=(1, 3, 10, 30), distances=("cosine", "L2")),
        held_out=10,
        seed=0,
    ),
)

PROTOCOLS = (
    STANDARD,
    PAPER,
    PROBE3D,
    GEOAWARE,
    SD_DINO,
    INSID3,
    DIFT,
    DINO,
    DINOV3,
    HUMMINGBIRD,
    CAPI,
)


def find_protocol(name: str) -> EvaluationProtocol:
    """The protocol of that name; raises InputError for an unknown one."""
    for protocol in PROTOCOLS:
        if protocol.name == name:
            return protocol
    raise unknown("protocol", name, [protocol.name for protocol in PROTOCOLS])


def find_protocols(names: Sequence[str]) -> tuple[EvaluationProtocol, ...]:
    """The protocols of those names in their order, each once; raises InputError for an unknown one."""
    return tuple(find_protocol(name) for name in dict.fromkeys(names))
