"""The evaluation protocols. A result without its protocol is not a result.

``standard`` is the clean practice. ``paper`` follows the released code of Walmer et al., Teaching Matters,
CVPR 2023 (repository mwalmer-umd/vit_analysis, commit c8810df), quirks included, so that its tables can be
reproduced. The others follow the released code of other papers for one task. Differences between a protocol
and its source are listed in ``unlike`` and on the pages. The configs are defined next to their tasks, by
protocol name (`tasks.task.Task.configs`); configs and metrics have no defaults.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from layerboard.zoo.errors import require_known
from layerboard.zoo.spec import Dtype

Config = TypeVar("Config")


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationProtocol:
    """A way of evaluating."""

    name: str  # name on the command line and in records
    title: str  # what it is, in one line
    tasks: tuple[str, ...] | None = None  # names of the tasks that it defines; None for all
    unlike: tuple[str, ...] = ()  # differences from its source, in whole sentences
    beside: tuple[str, ...] = ()  # protocols with other answers to what its source does not say
    gpu_dtype: Dtype = "float32"  # number format of forward passes on a GPU, unless the user sets one
    shots: tuple[int, ...] = ()  # numbers of shots that replace the usual ones

    def covers(self, task: str) -> bool:
        """Whether the protocol defines the task of that name."""
        return self.tasks is None or task in self.tasks

    @property
    def scope(self) -> str:
        """The tasks that it covers, in words."""
        return f"the protocol {self.name} is for {', '.join(self.tasks or ('all tasks',))}"

    def config_for(self, configs: Mapping[str, Config]) -> Config:
        """The protocol's config among those of a task; that of ``standard`` if it has none of its own."""
        return configs[self.name] if self.name in configs else configs["standard"]


STANDARD = EvaluationProtocol(
    name="standard", title="the clean practice; the default", gpu_dtype="amp-bfloat16"
)

PAPER = EvaluationProtocol(
    name="paper",
    title="the released code of Teaching Matters (Walmer et al., CVPR 2023), quirks included",
    unlike=(
        "Where the released code depends on the order of a folder listing, the order here is alphabetical.",
    ),
)

_PE_UNLIKE = (
    "The paper names no number of neighbours, window or temperature. J&F is by those of DINO's script (5, "
    "square of 12, 0.1), which its README cites; `J&F lowest` and `J&F highest` are the ends over these and "
    "those of Jabri et al. (10, circle of 12, 0.05, maps as they are), whom it cites; of Toto, which it "
    "cites, too, none are known here.",
    "The window holds in all frames; in the code of Jabri et al. not in the first. Frames are resized by a "
    "bicubic filter, sides to the nearest multiple of a patch.",
)

PROTOCOLS = (
    STANDARD,
    PAPER,
    EvaluationProtocol(
        name="paper-squares",
        title="mask propagation as the code of Teaching Matters without tiles: frames stretched to a square",
        tasks=("davis",),
        unlike=(
            "An object that covers all of a frame evenly has no range to scale: its code computes NaN, "
            "here it counts as 1.",
        ),
    ),
    EvaluationProtocol(
        name="raghu",
        title="CKA of 10,240 images in batches of 1,024, as Raghu et al., NeurIPS 2021 (arXiv:2108.08810)",
        tasks=("cka",),
        unlike=(
            "Its 20 repeats, in other random batches of the same images, are made of class tokens and means, "
            "whose vectors are stored; patches are compared once.",
            "It compares all tokens of a ViT, flattened; here patches, without the class token, so that "
            "ConvNets have the same pooling.",
            "Images are drawn here from the training images of all classes; which ones it drew is not known.",
        ),
    ),
    EvaluationProtocol(
        name="vtab",
        title="frozen features of images stretched to a square, as VTAB's code shows them (arXiv:1910.04867)",
        tasks=("knn", "linear"),
        unlike=(
            "VTAB fine-tunes whole networks; here the backbone is frozen.",
            "Its code resizes without antialiasing; here an image that shrinks is antialiased.",
            "A linear probe learns from four in five of the 1,000 training images; the others, a fifth of "
            "each class, choose its learning rate.",
        ),
    ),
    EvaluationProtocol(
        name="omniprobe",
        title="k-NN as the code of OmniProbe (GenIntel/OmniProbe): a random crop of each training image",
        tasks=("knn",),
        unlike=(
            "It draws crops and mirrors anew in every run; here they follow from an image's name.",
            "It leaves out the last batch of training images if that is not full.",
            "It takes the mean of some networks with a class token (Perception Encoder), which is another "
            "pooling here; and the class token of a last block, without the final norm.",
        ),
    ),
    EvaluationProtocol(
        name="probe3d",
        title="keypoints as the code of El Banani et al., CVPR 2024 (probe3d, commit a1f1464)",
        tasks=("spair",),
        unlike=(
            "Its 200 pairs of a category depend on an unsorted listing of files; here the names are sorted, "
            "so the pairs are others, and the interval says how much other pairs would change.",
            "It draws other pairs for each level of viewpoint; here the levels are those of the same pairs.",
            "What patches of 14 pixels need beyond 800 pixels is the mean colour of ImageNet in whole pixel "
            "values, which normalisation does not turn into exactly 0.",
        ),
    ),
    EvaluationProtocol(
        name="geoaware",
        title="keypoints as the zero-shot code of Zhang et al., CVPR 2024 (GeoAware-SC, commit 99fd6b6)",
        tasks=("spair",),
        unlike=(
            "It flips the source image where object masks say so (ADAPT_FLIP), which needs masks; here it is "
            "not flipped.",
            "Its geometry-aware numbers per point take wrong points of four categories; here the right ones "
            "count.",
        ),
    ),
    EvaluationProtocol(
        name="sd-dino",
        title="keypoints as the code of Zhang et al., NeurIPS 2023, of DINO alone (sd-dino, commit b85df18)",
        tasks=("spair",),
        unlike=("It can draw 20 pairs of a category; here all are taken, as its paper says.",),
    ),
    EvaluationProtocol(
        name="insid3",
        title="keypoints as the code of INSID3 (visinf/INSID3, commit f1c9622), features as they are",
        tasks=("spair",),
        unlike=("Its better numbers are of features without position, which are not measured here.",),
    ),
    EvaluationProtocol(
        name="dift",
        title="keypoints as the code of Tang et al., NeurIPS 2023 (dift, commit 9421eb2)",
        tasks=("spair",),
        unlike=("By which filter it resizes images was not looked up; here it is bicubic.",),
    ),
    EvaluationProtocol(
        name="dino",
        title="mask propagation at the sizes of DINO's script (Caron et al., ICCV 2021; commit 7c446df)",
        tasks=("davis",),
        unlike=(
            "It divides the red channel by a deviation of 0.228; here normalisation is the backbone's own.",
            "An object that covers all of a frame evenly has no range to scale: its script computes NaN, "
            "here it counts as 1.",
            "Patches that do not divide 64 have no size in its script: the nearest multiples are taken.",
        ),
    ),
    EvaluationProtocol(
        name="dinov3",
        title="mask propagation as DINOv3's notebook (commit 6876159), retrieval and keypoints as its paper",
        tasks=("davis", "retrieval", "spair"),
        unlike=(
            "The notebook holds no score; J and F are the official ones.",
            "The paper (arXiv:2508.10104, Table 23) says of retrieval: longer side 224, centre crop. Here "
            "the filter is bicubic, what the crop adds is black, and queries are not cropped.",
            "Of keypoints it says (Table 4): as probe3d, at 1,024 pixels for patches of 16 and 896 for 14, "
            "the better of the last block with and without the final norm. Pairs are those of the protocol "
            "probe3d, which are not known to be its own.",
        ),
    ),
    *(
        EvaluationProtocol(
            name=f"dinov3-{short}",
            title=f"mask propagation as Table 5 of DINOv3's paper (arXiv:2508.10104) at {short} pixels",
            tasks=("davis",),
            unlike=(
                "The paper does not say the shape and temperature of the neighbourhood, nor whether maps are "
                "scaled. J&F is by the answers of its notebook (circle, 0.2, scaled), `J&F lowest` and "
                "`J&F highest` are the ends over all eight combinations with those of DINO's script (square, "
                "0.1) and with maps as they are.",
                "Images are resized, and masks seeded, as in the notebook.",
            ),
        )
        for short in (480, 960, 1440)
    ),
    EvaluationProtocol(
        name="pe",
        title="mask propagation as Perception Encoder (arXiv:2504.13181, B.3.3): native size, at most 448",
        tasks=("davis",),
        unlike=(
            *_PE_UNLIKE,
            "The paper does not say whether frames keep their proportions; here they do, and in the protocol "
            "pe-squares they do not.",
        ),
        beside=("pe-squares",),
    ),
    EvaluationProtocol(
        name="pe-squares",
        title="mask propagation as the protocol pe, frames stretched to a square",
        tasks=("davis",),
        unlike=_PE_UNLIKE,
    ),
    EvaluationProtocol(
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
    ),
    EvaluationProtocol(
        name="capi",
        title="segmentation by a vote of pixels, as the k-NN evaluation of CAPI (Darcet et al., 2025)",
        tasks=("segment",),
        unlike=(
            "It remembers every cell; here as many as the dataset's entry says (100,000), so that its "
            "published numbers are others.",
            "Which images it holds out follows from an unsorted listing; here names are sorted, and of those "
            "images only what is remembered chooses the vote.",
            "It computes in bfloat16; here in single precision.",
        ),
    ),
)


def find_protocol(name: str) -> EvaluationProtocol:
    """The protocol of that name; raises InputError if it is unknown."""
    by_name = {protocol.name: protocol for protocol in PROTOCOLS}
    require_known("protocol", [name], by_name)
    return by_name[name]
