"""Suites: the default backbones and datasets. Imports no torch."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path

from layerboard.benchmark.forms.request import Request
from layerboard.mini import facts as mini
from layerboard.tasks.datasets.base import Data, DatasetEntry
from layerboard.tasks.datasets.catalogue import DATASETS
from layerboard.tasks.datasets.cifar import CIFAR_RAGHU
from layerboard.tasks.datasets.classes import ProbeSubset
from layerboard.tasks.datasets.coco import CocoEntry
from layerboard.tasks.datasets.davis import DavisEntry
from layerboard.tasks.datasets.defects import DefectEntry
from layerboard.tasks.datasets.folder import NO_LABELS, TabledEntry
from layerboard.tasks.datasets.hub_spec import PREFIX
from layerboard.tasks.datasets.imagenet import IMAGENET, ImageNetEntry
from layerboard.tasks.datasets.instances import InstanceEntry
from layerboard.tasks.datasets.partimagenet import PartImageNetEntry
from layerboard.tasks.datasets.reading.labels import Labelling
from layerboard.tasks.datasets.revisitop import RevisitedEntry
from layerboard.tasks.datasets.scenes import VOC_2012_AUG, VocEntry
from layerboard.tasks.datasets.spair import SpairEntry
from layerboard.tasks.datasets.vtab import VTAB
from layerboard.zoo.entries.supervised import WITH_LITTLE_DATA
from layerboard.zoo.errors import InputError, ensure, unknown

LONGEST_SUITE = 120  # maximum characters of the name of a suite, which names its pages


@dataclass(frozen=True)
class Suite:
    """A named combination of backbones and datasets."""

    name: str  # on the command line and of its page
    title: str
    backbones: tuple[str, ...]  # default backbones
    floors: tuple[str, ...]  # untrained baselines at the end of its tables: random features and raw pixels
    datasets: tuple[DatasetEntry[Data], ...]  # tasks run on those of their role, in this order
    protocol: str = "standard"  # by default
    embedded: bool = False  # whether its datasets come with the package, rather than from ``--data``


MINI_SUITE = Suite(
    name="mini",
    title="embedded: rendered data, seven small backbones, no network; about two minutes on two cores",
    backbones=("mini-fs", "mini-clip", "mini-dino", "mini-moco", "mini-mae", "mini-beit", "mini-resnet"),
    floors=("mini-random", "mini-pixels"),
    embedded=True,
    datasets=(
        ImageNetEntry(
            name="mini-imagenet",
            classes=mini.CLASSES,
            train=mini.TRAIN,
            val=mini.VAL,
            probe=ProbeSubset(None, per_class=mini.TRAIN_PER_CLASS),
            class_names=tuple((each.wnid, each.name) for each in mini.MINI_CLASSES),
        ),
        RevisitedEntry("mini-oxford", "roxford5k", mini.DATABASE, mini.QUERIES),
        DavisEntry(name="mini-davis", sequences=mini.SEQUENCES, frames=mini.FRAMES, objects=mini.OBJECTS),
        SpairEntry(
            name="mini-spair",
            pairs=mini.PAIRS,
            categories=mini.CATEGORIES,
            groups=tuple((each.name, each.interchangeable) for each in mini.MINI_CLASSES),
            levels=(),
        ),
        VocEntry(
            name="mini-voc",
            train_images=mini.SCENES_TRAIN,
            val_images=mini.SCENES_VAL,
            memory=mini.MEMORY,
            most=mini.MEMORY,
        ),
        CocoEntry(
            name="mini-coco", images=mini.COCO_IMAGES, first=mini.COCO_IMAGES, categories=mini.COCO_CATEGORIES
        ),
        PartImageNetEntry(
            name="mini-partimagenet",
            images=mini.PART_IMAGES,
            classes=mini.PART_CLASSES,
            supercategories=mini.PART_SUPERCATEGORIES,
            parts=mini.PART_CATEGORIES,
            objects=mini.COCO_CATEGORIES,
        ),
        DefectEntry(
            name="mini-defects",
            folder="defects",
            products=mini.PRODUCTS,
            references=mini.REFERENCES,
            images=mini.INSPECTED,
            memory=mini.MEMORY,
        ),
        InstanceEntry("mini-things", "things", mini.THINGS, mini.THING_IMAGES, table="Ebay_test.txt"),
        TabledEntry("mini-targets", "numbers.csv", mini.TARGET_IMAGES, ("numbers",)),
        TabledEntry("mini-targets", "labels.csv", mini.TARGET_IMAGES, ("labels",)),
    ),
)

MINI_INTERVENTIONS = replace(
    MINI_SUITE,
    name="mini-interventions",
    title="embedded: one network trained in eight ways, and untrained networks, on the mini suite's data",
    backbones=(
        *("mini-fs64", "mini-fs64-seed1", "mini-fs64-mean", "mini-fs64-noskip6", "mini-fs64-noskip10"),
        *("mini-fs64-30pct", "mini-fs64-10pct", "mini-fs64-3pct"),
        *("mini-fs64-untrained", "mini-fs-untrained"),
        *("mini-clip-untrained", "mini-beit-untrained", "mini-resnet-untrained"),
    ),
)

MINI_REFEREE = replace(
    MINI_SUITE,
    name="mini-referee",
    title="embedded: the mini suite's data and backbones, for pages of sets, transforms and protocols",
)


# protocols read the larger VOC 2012 in place of the other; what other suites have is theirs
REAL = tuple(entry for entry in DATASETS if entry not in (VOC_2012_AUG, *CIFAR_RAGHU, *VTAB))

STANDARD_SUITE = Suite(
    name="standard",
    title="the real datasets below --data, one base-size backbone of each family",
    backbones=("fs-b16", "clip-b16", "dino-b16", "moco-b16", "mae-b16", "beit-b16", "resnet50"),
    floors=("random", "raw-pixels"),
    datasets=REAL,
)

PAPER_SUITE = Suite(
    name="paper",
    title="the real datasets below --data, the 20 ViTs of Teaching Matters by its released code's protocol",
    backbones=(
        *("fs-s32", "fs-s16", "fs-b32", "fs-b16", "fs-b8", "fs-l16"),
        *("clip-b32", "clip-b16", "clip-l14"),
        *("dino-s16", "dino-s8-300ep", "dino-b16", "dino-b8"),
        *("moco-s16", "moco-b16"),
        *("mae-b16", "mae-l16", "mae-h14"),
        *("beit-b16", "beit-l16"),
    ),
    floors=("random", "raw-pixels"),
    datasets=REAL,
    protocol="paper",
)

RAGHU_SUITE = Suite(
    name="raghu",
    title="ImageNet and CIFAR below --data, the kinds of networks of Raghu et al., NeurIPS 2021: ViT, BiT, "
    "hybrid, and Mixer of ViT's authors",
    backbones=(
        *("vit-b32-in21k", "vit-b16-in21k", "vit-l16-in21k", "vit-h14-in21k", "vit-b16", "vit-l16"),
        *WITH_LITTLE_DATA,
        *("bit-50", "timm:resnetv2_50x1_bit.goog_in21k", "timm:resnetv2_152x2_bit.goog_in21k"),
        "timm:vit_base_r50_s16_224.orig_in21k",
        *("timm:mixer_b16_224.goog_in21k", "timm:mixer_l16_224.goog_in21k"),
    ),
    floors=STANDARD_SUITE.floors,
    datasets=(IMAGENET, *CIFAR_RAGHU),
)

VTAB_SUITE = Suite(
    name="vtab",
    title="VTAB-1k below --data: 19 datasets in three groups, of 1,000 training images each, stretched",
    backbones=STANDARD_SUITE.backbones,
    floors=STANDARD_SUITE.floors,
    datasets=VTAB,
    protocol="vtab",
)

SUITES = (MINI_SUITE, MINI_INTERVENTIONS, MINI_REFEREE, STANDARD_SUITE, PAPER_SUITE, RAGHU_SUITE, VTAB_SUITE)


def images_suite(datasets: Iterable[str]) -> str:
    """Name of the suite of a run on own datasets of those names, whatever their order and repetitions."""
    names = sorted(set(datasets))
    whole = f"images-{'+'.join(names)}"
    if len(names) == 1 or len(whole) <= LONGEST_SUITE:
        return whole
    return f"images-{len(names)}-datasets-{blake2b(whole.encode(), digest_size=4).hexdigest()}"


def choose_suite(request: Request) -> Suite:
    """The named suite, or the one that fits the data."""
    require_fitting(request.data, request.images, Labelling.of(request))
    real = request.data is not None or bool(request.images)
    name = request.suite or (STANDARD_SUITE if real else MINI_SUITE).name
    suites = {suite.name: suite for suite in SUITES}
    if name not in suites:
        raise unknown("suite", name, [*suites])
    suite = suites[name]
    if suite.embedded and real:
        raise InputError(
            f"the suite {suite.name!r} brings its own data; leave --suite out to use --data or --images"
        )
    ensure(suite.embedded or real, f"the suite {suite.name!r} needs the real datasets; give --data DIR")
    return suite


def require_fitting(data: Path | None, images: Sequence[str], labelling: Labelling) -> None:
    """Raise InputError for data together with images, and for tables without exactly one folder."""
    ensure(data is None or not images, "give --data or --images, not both")
    says = {
        "labels": "the classes of your own images",
        "groups": "which of your own images belong together",
        "target": "what the labels of your own images are",
    }
    if labelling.copies and not images:
        raise InputError("--copies makes copies of your own images; give their folder with --images DIR")
    for option in says:
        if (table := getattr(labelling, option)) is None:
            continue
        ensure(images, f"--{option} says {says[option]}; give their folder with --images DIR")
        if any(location.startswith(PREFIX) for location in images):
            instead = "; choose the columns of hf:ID with ?label=COLUMN" if option == "labels" else ""
            raise InputError(f"--{option} is for a folder of images{instead}")
        if len(images) > 1 and table != NO_LABELS:
            raise InputError(
                f"--{option} is for one folder of images, found {len(images)}; put a metadata.csv with the "
                "same columns into each folder"
            )
