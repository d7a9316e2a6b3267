"""Types of tasks: sources of images, measurements that are kept, and scores computed from them."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Generic, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from layerboard.tasks.datasets.base import Sample
from layerboard.zoo.spec import BackboneSpec, Layer

if TYPE_CHECKING:  # what is read from records needs no torch, whose import takes seconds
    import torch
    from torch import Tensor

    from layerboard.zoo.features import Shown
    from layerboard.zoo.view.views import View

Device: TypeAlias = "torch.device | None"  # device of large matrix products; None for the CPU
Measurements = Mapping[str, NDArray[np.generic]]  # arrays kept of one group of images for one layer

# name of a bool array that a measurer may add to its arrays: all true if all values that it saw were finite;
# it is read at the end of the group and not stored, and a layer with a false entry counts as not measurable
FINITE = "finite"


@dataclass(frozen=True, slots=True)
class Group:
    """Images that are measured together: a video, a category's pairs, one image, a batch."""

    key: str
    samples: tuple[Sample, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """Images of one pass, in a fixed order."""

    name: str  # unique, such as ``imagenet/val``
    groups: tuple[Group, ...]
    view: "View"  # in sizes of a 224 px backbone
    groups_per_shard: int = 1  # written together: an interrupted pass repeats at most these
    joint: bool = False  # whether a group goes through the backbone as one batch, whatever the batch size
    skip_unreadable: bool = False  # whether unreadable images are left out, counted and named, or raise

    @property
    def key(self) -> "tuple[str, View]":
        """Identity of the source: its name and its view."""
        return self.name, self.view

    @property
    def samples(self) -> tuple[Sample, ...]:
        """All images of all groups, in order."""
        return tuple(sample for group in self.groups for sample in group.samples)

    @property
    def shards(self) -> int:
        """Number of shards in which results of the source are stored."""
        return -(-len(self.groups) // self.groups_per_shard)

    def shard_groups(self, shard: int) -> range:
        """Indices in `groups` of the groups of a shard."""
        start = shard * self.groups_per_shard
        return range(start, min(start + self.groups_per_shard, len(self.groups)))

    def shard_images(self, shard: int) -> int:
        """Number of images of a shard."""
        return sum(len(self.groups[group].samples) for group in self.shard_groups(shard))

    def first(self, count: int) -> "Source":
        """The first ``count`` images, as one shard; the last group may be cut."""
        groups: list[Group] = []
        for group in self.groups:
            if count > 0:
                groups.append(replace(group, samples=group.samples[:count]))
                count -= len(group.samples)
        return replace(self, groups=tuple(groups), groups_per_shard=len(groups))


@dataclass(frozen=True, slots=True)
class Score:
    """One number: a metric's value over ``n`` units (images, queries, objects, pairs, regions)."""

    metric: str
    value: float
    n: int
    unit: str
    head: int = -1  # attention head, from 0; -1 for all heads or no heads
    error: float = float("nan")  # standard error of a score without items; NaN if unknown

    @property
    def statistic(self) -> str:
        """Name of the score's statistic in `Items.statistics`."""
        return self.metric if self.head < 0 else f"{self.metric} of head {self.head}"


Over = Literal[
    "items",
    "draws",
    "clusters",
    "strata",
    "ranks",
    "curves",
    "shares",
    "correlations",
    "explained",
    "errors",
    "partition",
    "classes",
    "seen classes",
    "all classes",
    "pixels",
]
"""What a score averages over:

- all items, with equal weight;
- draws: all items, for each of several random draws of a probe's training images;
- clusters or strata: the means of the items of each;
- ranks: as strata, where each mean is the percent of pairs that are ranked correctly (AUROC: items of one
  stratum are paired with those of another);
- curves: as ranks, of what follows from the whole ranking (AP, the largest F1);
- shares: as ranks, where an item stands for many trials (its pixels or pairs);
- correlations: as shares, from -100 to 100;
- explained: all items, in percent of a whole that the score can never exceed (R2);
- errors: all items, of which the mean is above 0;
- a partition of the items, a score that is not a mean;
- classes of pixels, each the ratio of two sums over the items: the classes in the ground truth, those in the
  ground truth or the prediction, or all;
- all pixels, as one such ratio.
"""

OF_PIXELS: tuple[Over, ...] = ("classes", "seen classes", "all classes", "pixels")  # ratios of pixel sums

# averaged classes, unless they are those in the ground truth
AVERAGED: Mapping[Over, Literal["shown", "seen", "all"]] = {"seen classes": "seen", "all classes": "all"}


@dataclass(frozen=True, slots=True)
class Statistic:
    """How a score is computed from the measured items; items without a value are left out.

    The score is the mean of a ``column`` of `Items.values`. For draws, the columns ``COLUMN draw 1``,
    ``COLUMN draw 2``, ... have the values of each draw. For a partition, ``column`` is the index (purity, NMI
    or ARI), and the columns are ``label`` and ``start 1``, ``start 2``, ...: the k-means partitions from
    several starts, best first. For classes and pixels, ``column`` is two names, such as ``inter/union``: the
    columns ``inter 0``, ``inter 1``, ... are summed for each class, and the sum is divided by that of ``union
    0``, ... The columns ``truth 0``, ... say which classes an item shows.
    """

    column: str
    over: Over = "items"

    def measured(self, columns: Collection[str]) -> bool:
        """Whether these columns include all that the statistic needs."""
        if self.over == "partition":
            return "label" in columns
        if self.over in OF_PIXELS:
            return any(name.startswith(f"{self.column.partition('/')[2]} ") for name in columns)
        return self.column in columns


NEIGHBOUR = " as neighbour"
"""End of the name of a column of `Items.values`: how much an item, as a neighbour of the others, adds to the
sum of their values in the column of that name, with mean 0."""

PAIRED = ("first image", "second image")
"""Columns of `Items.values` if clusters are pairs of images, which may share them: the numbers of the two."""


@dataclass(frozen=True, slots=True)
class Items:
    """Per-item values behind the scores, for confidence intervals and paired tests."""

    unit: str  # what an item is
    keys: tuple[str, ...]  # unique names of the items
    clusters: tuple[str, ...]  # cluster that each item is sampled with: its video, pair, image, or itself
    strata: tuple[str, ...]  # stratum that each item's cluster is sampled in (a category); "" for none
    values: Mapping[str, NDArray[np.float64]]  # columns with a value per item; NaN if the item has none
    statistics: Mapping[str, Statistic]  # for each metric, how it is computed from the columns

    def only(self, rows: Iterable[int]) -> "Items":
        """The items at these indices."""
        places = np.asarray([*rows], np.int64)
        names = (self.keys, self.clusters, self.strata)
        keys, clusters, strata = (tuple(column[row] for row in places) for column in names)
        values = {name: column[places] for name, column in self.values.items()}
        return replace(self, keys=keys, clusters=clusters, strata=strata, values=values)


@dataclass(frozen=True, slots=True)
class BatchPart:
    """The images of one group in a batch."""

    rows: slice  # rows of the batch; the tiles of an image are consecutive
    view: "View"  # scaled to the backbone
    size: tuple[int, int]  # width and height in pixels of the view of the first image, which tiles divide
    pixels: "Tensor"  # input of the backbone, uint8 RGB [rows 3 height width], on any device
    patch_size: int = 0  # side in pixels of a cell of the backbone's coarsest grid; 0 if unknown


@dataclass(frozen=True, slots=True)
class Outcome:
    """Scores of one layer, or the reason why its features cannot be scored."""

    scores: tuple[Score, ...]
    items: Items | None = None  # behind the scores; None for scores without items
    empty: str = ""  # reason why there are no scores, or none of the primary metric
    missing: Mapping[str, str] = field(default_factory=dict)  # reason why each further metric has no value
    # predictions for the task's examples (`tasks.examples`): names and shapes are the same for all layers
    predicted: Mapping[str, NDArray[np.generic]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LayerOutcome:
    """Scores of one layer and pooling."""

    layer: Layer  # `zoo.spec.WHOLE_BACKBONE` where the scores are of no single layer
    pooling: str  # the vector, ``grid``, or the tokens that an analysis looks at or from
    outcome: Outcome
    other: Layer | None = None  # the second one, where the scores are of two layers of one backbone


@dataclass(frozen=True, slots=True)
class Findings:
    """All results of a task for a backbone: scores, and named arrays that are stored next to the records."""

    outcomes: tuple[LayerOutcome, ...]
    arrays: Mapping[str, NDArray[np.generic]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PairFindings:
    """Result of a comparison of two backbones, which may be the same."""

    first: int  # index of the backbone of the rows
    second: int  # index of the backbone of the columns
    metric: str
    layers: tuple[Layer, ...]  # of the rows
    others: tuple[Layer, ...]  # of the columns; `zoo.spec.WHOLE_BACKBONE` for values of no single layer
    value: NDArray[np.float64]  # [layers others]; NaN if undefined
    error: NDArray[np.float64]  # standard errors, the same shape; NaN if undefined
    reason: str  # why there is no number where there is none
    arrays: Mapping[str, NDArray[np.generic]] = field(default_factory=dict)  # stored next to the records


def ceiling_metric(metric: str) -> str:
    """Name of the metric that is the upper bound of another one on the layer's grid."""
    return f"{metric} ceiling"


def area_ceiling_metric(metric: str) -> str:
    """Name of the upper bound for cells that know exactly which share of them each object covers."""
    return f"{ceiling_metric(metric)} by area"


def open_metrics(metric: str) -> tuple[str, str]:
    """Names of the lowest and the highest score over the answers to what a protocol's source does not say."""
    return f"{metric} lowest", f"{metric} highest"


def digest(*parts: object) -> str:
    """Hexadecimal digest of arrays (bytes, dtype, shape) and of the repr of anything else."""
    state = hashlib.blake2b(digest_size=16)
    for part in parts:
        if isinstance(part, np.ndarray):
            state.update(f"{part.dtype}{part.shape}".encode())
            state.update(np.ascontiguousarray(part).tobytes())
        else:
            state.update(repr(part).encode())
        state.update(b"\0")
    return state.hexdigest()


Portion_co = TypeVar("Portion_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Feed(ABC, Generic[Portion_co]):
    """Input of a measurer (`tasks.feeds`); if it is ``whole``, all images of a group come at once."""

    whole: bool = False

    def layers(self, scored: Sequence[Layer], spec: BackboneSpec) -> tuple[Layer, ...]:
        """Layers of a backbone that must be measured to score these layers, in order."""
        return tuple(scored)

    def shown(self, layer: Layer) -> tuple[Layer, ...]:
        """Layers and taps that a backbone must return to measure a layer, in the order of a forward pass."""
        return (layer,)

    @abstractmethod
    def portion(self, shown: "Sequence[Shown]", part: BatchPart) -> Portion_co:
        """Input of a measurer from a batch: the features named by `shown`, for the images of one group."""
