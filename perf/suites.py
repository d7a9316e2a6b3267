"""How long the full suites take on a machine with eight H100, computed from specs and stated assumptions.

``python -m perf.suites`` prints the table of `docs/scale.md`. Nothing is measured here: operations and bytes
follow from the specs and the datasets' official counts; throughputs are `Assumed`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tabulate import tabulate

from benchmark.plan.plan import view_for
from benchmark.plan.suites import PAPER_SUITE, REAL, STANDARD_SUITE
from perf.grids import covered
from tasks.protocols import STANDARD
from tasks.registry import config_of
from zoo.registry import all_specs, find
from zoo.spec import BackboneSpec
from zoo.view.views import View

SPAIR_IMAGES = 1800
"""All images of SPair-71k (Min et al., 2019, table 1)."""

FRAME, PHOTO = (854, 480), (640, 480)
"""Width and height of a DAVIS frame at 480p, and what stands for the others'."""


@dataclass(frozen=True, slots=True)
class Assumed:
    """What is assumed of the machine; each is a number to replace by one's own.

    Attributes:
        cards: Graphics cards.
        peak: Operations a second of a card in bfloat16, dense (NVIDIA's data sheet of the H100 SXM).
        used: Share of it that forwards reach, all layers kept.
        products: Operations a second of a card in products of float32, top-k included.
        scaling: Share of a card's throughput that is left of each where all work.
        cores: Processor cores of the machine.
        decoding: Core seconds of an image that is read, decoded and resized.
        masks: Core seconds of J and F, a frame, object and layer.
        clustering: Operations a second of a core in k-means.
        iterations: Of k-means, a start.
        storage: Bytes a second of the folder of features, read or written.
        reads: How often the vectors are read: k-NN, few-shot, linear probe.
    """

    cards: int = 8
    peak: float = 989e12
    used: float = 0.4
    products: float = 25e12
    scaling: float = 0.9
    cores: int = 128
    decoding: float = 0.010
    masks: float = 0.004
    clustering: float = 5e9
    iterations: int = 50
    storage: float = 2e9
    reads: int = 3


@dataclass(frozen=True, slots=True)
class Need:
    """What backbones need of a machine.

    Attributes:
        backbones: How many.
        forwards: Images through them.
        cards: Seconds of all cards together.
        cores: Seconds of all cores together.
        storage: Seconds of reading and writing vectors.
        disk: Bytes of the vectors, float32.
    """

    backbones: int
    forwards: int
    cards: float
    cores: float
    storage: float
    disk: float

    @property
    def hours(self) -> tuple[float, float]:
        """At best, all three at the same time, and at worst, one after the other."""
        every = (self.cards, self.cores, self.storage)
        return max(every) / 3600, sum(every) / 3600


def operations(spec: BackboneSpec, size: tuple[int, int]) -> float:
    """Floating-point operations of a forward of an image of that width and height, products alone."""
    if spec.heads is None:
        return _of_convnet(spec, size)
    total = 0.0
    for stage in spec.stages:
        tokens = size[0] // stage.stride * (size[1] // stage.stride) + spec.prefix_tokens
        seen = tokens if len(spec.stages) == 1 else 49  # windows of Swin: 7 x 7
        hidden = spec.mlp_width or 4 * stage.width
        block = 4 * stage.width**2 + 2 * stage.width * hidden + 2 * seen * stage.width
        total += stage.blocks * 2 * tokens * block
    first = spec.stages[0]
    cells = size[0] // first.stride * (size[1] // first.stride)
    return total + 2 * cells * 3 * first.stride**2 * first.width


def _of_convnet(spec: BackboneSpec, size: tuple[int, int]) -> float:
    bottleneck = "resnet" in spec.name or spec.family == "ResNet"
    total = 2 * (size[0] // 2) * (size[1] // 2) * 3 * 49 * 64.0 if bottleneck else 0.0
    for stage in spec.stages:
        cells, width = size[0] // stage.stride * (size[1] // stage.stride), stage.width
        inner = width / 4  # 1 x 1, 3 x 3, 1 x 1; or 7 x 7 a channel and an MLP
        block = 2 * width * inner + 9 * inner**2 if bottleneck else 49 * width + 8 * width**2
        total += stage.blocks * 2 * cells * block
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
    every = [_of_one(spec, assumed) for spec in specs]
    return Need(
        len(specs),
        sum(each.forwards for each in every),
        sum(each.cards for each in every) / (assumed.cards * assumed.scaling),
        sum(each.cores for each in every) / assumed.cores,
        sum(each.storage for each in every),
        sum(each.disk for each in every),
    )


def _of_one(spec: BackboneSpec, assumed: Assumed) -> Need:
    """Seconds of one card, one core and the storage."""
    sources = [*shown(spec)]
    images, forwards = sum(count for count, _ in sources), sum(count * each for count, each in sources)
    widths = sum(spec.stage_of(layer).width for layer in spec.layers) * (2 if spec.has_cls else 1)
    train, val = REAL.classification.train, REAL.classification.val
    vectors = train + val + sum(dataset.database + dataset.queries for dataset in REAL.retrieval)
    neighbours = 2.0 * train * val * widths
    probe = 6.0 * config_of(STANDARD, "linear").epochs * train * REAL.classification.classes * widths
    layers = len(spec.layers)
    frame = [length // spec.patch_size for length in _size(spec, config_of(STANDARD, "davis").view, FRAME)]
    radius, kept = config_of(STANDARD, "davis").radius, config_of(STANDARD, "davis").n_last_frames + 1
    windows = kept * covered(frame[0], radius) * covered(frame[1], radius)
    propagation = 2.0 * REAL.videos.frames * windows * spec.width * layers
    cards = forwards / (assumed.peak * assumed.used)
    cards += (neighbours + probe + propagation) / assumed.products
    masks = REAL.videos.frames * REAL.videos.objects / REAL.videos.sequences * layers * assumed.masks
    starts = config_of(STANDARD, "cluster-image").n_init * assumed.iterations
    grouped = 5000 * 50 + 7300 * REAL.object_clusters + 4000 * REAL.part_clusters
    cores = images * assumed.decoding + masks + 2.0 * starts * grouped * widths / assumed.clustering
    disk = 4.0 * vectors * widths
    return Need(1, images, cards, cores, disk * (1 + assumed.reads) / assumed.storage, disk)


def _size(spec: BackboneSpec, view: View, size: tuple[int, int]) -> tuple[int, int]:
    return view_for(spec, view).geometry(size).size


def real_specs() -> tuple[BackboneSpec, ...]:
    """The backbones of the registry that were trained by others."""
    return tuple(spec for spec in all_specs() if spec.checkpoint not in ("packaged", "generated"))


def table() -> str:
    """What the suites need, as Markdown."""
    rows = []
    standard, paper = (find(suite.backbones) for suite in (STANDARD_SUITE, PAPER_SUITE))
    for name, specs in (
        ("`standard`, 7 backbones", standard),
        ("backbones of `paper`, 20", paper),
        (f"all {len(real_specs())} of the registry", real_specs()),
    ):
        needed = need(specs)
        parts = (needed.cards, needed.cores, needed.storage)
        low, high = needed.hours
        rows.append(
            [
                name,
                f"{needed.forwards / 1e6:.0f} M",
                *(f"{seconds / 3600:.1f} h" for seconds in parts),
                f"{low:.1f} to {high:.1f} h",
                f"{needed.disk / 1e12:.1f} TB",
            ]
        )
    heads = ("what", "forwards", "cards", "cores", "storage", "in all", "vectors, float32")
    return tabulate(rows, heads, tablefmt="github", disable_numparse=True)


if __name__ == "__main__":
    print(table())
