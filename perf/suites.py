"""How long the full suites take on a machine with eight H100, computed from specs and stated assumptions.

``python -m perf.suites`` prints the table of `docs/scale.md`. Nothing is measured here: operations and bytes
follow from the specs and the datasets' official counts; throughputs are `Assumed`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from tabulate import tabulate

from benchmark.plan.plan import view_for
from benchmark.plan.suites import PAPER_SUITE, REAL, STANDARD_SUITE
from perf.grids import covered
from tasks.protocols import STANDARD
from tasks.registry import config_of
from zoo.registry import all_specs, find
from zoo.spec import BackboneSpec
from zoo.view.views import View

SPAIR_IMAGES = 1800  # all images of SPair-71k (Min et al., 2019, table 1)
FRAME, PHOTO = (854, 480), (640, 480)  # sides of a DAVIS frame at 480p, and what stands for the others'


@dataclass(frozen=True, slots=True)
class Assumed:
    """What is assumed of the machine; each is a number to replace by one's own."""

    cards: int = 8  # graphics cards
    # operations a second of a card in bfloat16, dense (NVIDIA's data sheet of the H100 SXM)
    peak: float = 989e12
    used: float = 0.4  # share of it that forwards reach, all layers kept
    products: float = 25e12  # operations a second of a card in products of float32, top-k included
    scaling: float = 0.9  # share of a card's throughput that is left of each where all work
    cores: int = 128  # processor cores of the machine
    decoding: float = 0.010  # core seconds of an image that is read, decoded and resized
    masks: float = 0.004  # core seconds of J and F, a frame, object and layer
    clustering: float = 5e9  # operations a second of a core in k-means
    iterations: int = 50  # of k-means, a start
    storage: float = 2e9  # bytes a second of the folder of features, read or written
    reads: int = 3  # how often the vectors are read: k-NN, few-shot, linear probe


@dataclass(frozen=True, slots=True)
class Need:
    """What backbones need of a machine."""

    forwards: float  # images through them
    cards: float  # seconds of all cards together
    cores: float  # seconds of all cores together
    storage: float  # seconds of reading and writing vectors
    disk: float  # bytes of the vectors, float32

    @property
    def hours(self) -> tuple[float, float]:
        """At best, all three at the same time, and at worst, one after the other."""
        every = (self.cards, self.cores, self.storage)
        return max(every) / 3600, sum(every) / 3600


def operations(spec: BackboneSpec, size: tuple[int, int]) -> float:
    """Floating-point operations of a forward of an image of that width and height, products alone."""

    def cells(stride: int) -> int:
        return size[0] // stride * (size[1] // stride)

    total, first = 0.0, spec.stages[0]
    bottleneck = spec.heads is None and ("resnet" in spec.name or spec.family == "ResNet")
    if bottleneck:
        total = 2 * cells(2) * 3 * 49 * 64.0
    elif spec.heads is not None:
        total = 2 * cells(first.stride) * 3 * first.stride**2 * first.width
    for stage in spec.stages:
        tokens, width = cells(stage.stride) + spec.prefix_tokens, stage.width
        if spec.heads is not None:
            seen = tokens if len(spec.stages) == 1 else 49  # windows of Swin: 7 x 7
            block: float = 4 * width**2 + 2 * width * (spec.mlp_width or 4 * width) + 2 * seen * width
        elif bottleneck:  # 1 x 1, 3 x 3, 1 x 1
            block = 2 * width * (width / 4) + 9 * (width / 4) ** 2
        else:  # 7 x 7 a channel and an MLP
            block = 49 * width + 8 * width**2
        total += stage.blocks * 2 * tokens * block
    return total


def shown(spec: BackboneSpec) -> Iterator[tuple[int, float]]:
    """Images of each dataset, and the operations of one of them."""
    images = REAL.classification.train + REAL.classification.val
    images += sum(dataset.database + dataset.queries for dataset in REAL.retrieval) + SPAIR_IMAGES
    side = spec.input_size
    yield images, operations(spec, (side, side))
    yield REAL.videos.frames, operations(spec, _size(spec, config_of(STANDARD, "davis").view, FRAME))
    regions = REAL.objects.first + REAL.parts.supercategories * REAL.parts.per_supercategory
    wide, high = _size(spec, config_of(STANDARD, "cluster-image").view, PHOTO)
    yield regions, operations(spec, (side, side)) * -(-wide // side) * -(-high // side)


def need(specs: Sequence[BackboneSpec], assumed: Assumed = Assumed()) -> Need:
    """What so many backbones need, on all real datasets, protocol `standard`, all layers."""
    every = np.sum([_of_one(spec, assumed) for spec in specs], axis=0)
    return Need(*(every / (1, assumed.cards * assumed.scaling, assumed.cores, 1, 1)))


def _of_one(spec: BackboneSpec, assumed: Assumed) -> tuple[float, ...]:
    """The numbers of `Need` of a backbone, of one card and of one core."""
    sources = [*shown(spec)]
    images, forwards = sum(count for count, _ in sources), sum(count * each for count, each in sources)
    widths = sum(spec.stage_of(layer).width for layer in spec.layers) * (2 if spec.has_cls else 1)
    train, val = REAL.classification.train, REAL.classification.val
    vectors = train + val + sum(dataset.database + dataset.queries for dataset in REAL.retrieval)
    neighbours = 2.0 * train * val * widths
    probe = 6.0 * config_of(STANDARD, "linear").epochs * train * REAL.classification.classes * widths
    layers = len(spec.layers)
    davis = config_of(STANDARD, "davis")
    wide, high = (covered(side // spec.patch_size, davis.radius) for side in _size(spec, davis.view, FRAME))
    windows = (davis.n_last_frames + 1) * wide * high
    propagation = 2.0 * REAL.videos.frames * windows * spec.width * layers
    cards = forwards / (assumed.peak * assumed.used)
    cards += (neighbours + probe + propagation) / assumed.products
    masks = REAL.videos.frames * REAL.videos.objects / REAL.videos.sequences * layers * assumed.masks
    starts = config_of(STANDARD, "cluster-image").n_init * assumed.iterations
    grouped = 5000 * 50 + 7300 * REAL.object_clusters + 4000 * REAL.part_clusters
    cores = images * assumed.decoding + masks + 2.0 * starts * grouped * widths / assumed.clustering
    disk = 4.0 * vectors * widths
    return images, cards, cores, disk * (1 + assumed.reads) / assumed.storage, disk


def _size(spec: BackboneSpec, view: View, size: tuple[int, int]) -> tuple[int, int]:
    return view_for(spec, view).geometry(size).size


def table() -> str:
    """What the suites need, as Markdown."""
    real = [spec for spec in all_specs() if spec.checkpoint not in ("packaged", "generated")]
    needs = {
        "`standard`, 7 backbones": need(find(STANDARD_SUITE.backbones)),
        "backbones of `paper`, 20": need(find(PAPER_SUITE.backbones)),
        f"all {len(real)} of the registry": need(real),
    }
    columns = {
        "what": needs,
        "forwards": [f"{needed.forwards / 1e6:.0f} M" for needed in needs.values()],
        "cards": [f"{needed.cards / 3600:.1f} h" for needed in needs.values()],
        "cores": [f"{needed.cores / 3600:.1f} h" for needed in needs.values()],
        "storage": [f"{needed.storage / 3600:.1f} h" for needed in needs.values()],
        "in all": ["{:.1f} to {:.1f} h".format(*needed.hours) for needed in needs.values()],
        "vectors, float32": [f"{needed.disk / 1e12:.1f} TB" for needed in needs.values()],
    }
    return tabulate(columns, "keys", tablefmt="github", disable_numparse=True)


if __name__ == "__main__":
    print(table())
