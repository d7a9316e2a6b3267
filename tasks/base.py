"""What a task is: sources to look at, measurements to keep, and scores to compute from them."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from layerboard.tasks.datasets.base import Sample
from layerboard.zoo.features import Shown
from layerboard.zoo.spec import BackboneSpec, Layer
from layerboard.zoo.view.views import View

Device = torch.device | None  # where large products may run; None for the CPU
Measurements = Mapping[str, NDArray[np.generic]]  # what one group of images leaves behind for one layer

# array that a measurer may add to what it keeps: bool, all true where all that it saw was finite; it is read
# when the group is over, and not kept; a layer where it does not hold is not measured
FINITE = "finite"


@dataclass(frozen=True, slots=True)
class Group:
    """Images that are measured together: a video, a category's pairs, one image, a batch."""

    key: str
    samples: tuple[Sample, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """Images that one pass looks at, in a fixed order."""

    name: str  # unique, such as ``imagenet/val``
    groups: tuple[Group, ...]
    view: View  # in sizes of a 224 px backbone
    groups_per_shard: int = 1  # written together: an interrupted pass redoes at most these
    joint: bool = False  # whether a group goes through the backbone as one batch, whatever the batch size
    skip_unreadable: bool = False  # whether what cannot be decoded is left out, counted and named, or fails

    @property
    def key(self) -> tuple[str, View]:
        """What tells it from others: one name in two views is two sources."""
        return self.name, self.view

    @property
    def samples(self) -> tuple[Sample, ...]:
        """All images of all groups, in order."""
        return tuple(sample for group in self.groups for sample in group.samples)

    @property
    def shards(self) -> int:
        """Number of shards that the source's results are stored in."""
        return -(-len(self.groups) // self.groups_per_shard)

    def shard_groups(self, shard: int) -> range:
        """Places in `groups` of the groups of a shard."""
        start = shard * self.groups_per_shard
        return range(start, min(start + self.groups_per_shard, len(self.groups)))

    def shard_images(self, shard: int) -> int:
        """Number of images of a shard."""
        return sum(len(self.groups[group].samples) for group in self.shard_groups(shard))

    def first(self, count: int) -> "Source":
        """So many images from the beginning, as one shard; the last group may be cut."""
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
    head: int = -1  # attention head, from 0; -1 for all heads, or where there are none
    error: float = float("nan")  # standard error of a score that follows from no items; NaN for unknown

    @property
    def statistic(self) -> str:
        """Name of its statistic in `Items.statistics`."""
        return self.metric if self.head < 0 else f"{self.metric} of head {self.head}"


Over = Literal[
    "items",
    "draws",
    "clusters",
    "strata",
    "ranks",
    "shares",
    "partition",
    "classes",
    "seen classes",
    "all classes",
    "pixels",
]
"""What a score is taken over: all items alike; all items by each of several random draws (of the images that
a probe learns from); clusters, each the mean of its items; strata, each the mean of its items; ranks, as
strata, where the mean of each is the percent of pairs that are ranked right (AUROC: items of one stratum are
paired with those of another); shares, as ranks, where an item stands for many trials (its pixels or pairs); a
partition of the items, of which it is no mean; classes of pixels, each the ratio of two sums over the items,
be they those that the truth shows, those that it or the prediction shows, or all; or all pixels, as one such
ratio."""

OF_PIXELS: tuple[Over, ...] = ("classes", "seen classes", "all classes", "pixels")  # ratios of sums of these

# classes that are averaged, where these are not those that the truth shows
AVERAGED: Mapping[Over, Literal["shown", "seen", "all"]] = {"seen classes": "seen", "all classes": "all"}


@dataclass(frozen=True, slots=True)
class Statistic:
    """How a score follows from the items that were measured; those without a value are left out.

    It is the mean of a ``column`` of `Items.values`; for draws, that of ``COLUMN draw 1``, ``COLUMN draw 2``,
    ..., too. For a partition it names the index (purity, NMI or ARI) of the columns ``label`` and ``start
    1``, ``start 2``, ...: the partitions by k-means from several starts, best first. For classes and pixels
    it is two names, such as ``inter/union``: the columns ``inter 0``, ``inter 1``, ... hold what is summed
    for each class, and ``union 0``, ... what its sum is divided by. ``truth 0``, ... say which classes an
    item shows.
    """

    column: str
    over: Over = "items"

    def measured(self, columns: Collection[str]) -> bool:
        """Whether columns of those names are what it needs."""
        if self.over == "partition":
            return "label" in columns
        if self.over in OF_PIXELS:
            return any(name.startswith(f"{self.column.partition('/')[2]} ") for name in columns)
        return self.column in columns


@dataclass(frozen=True, slots=True)
class Items:
    """Per-item measurements behind the scores, for intervals and paired tests."""

    unit: str  # what an item is
    keys: tuple[str, ...]  # unique names of the items
    clusters: tuple[str, ...]  # what each is sampled with: its video, pair, image, or itself
    strata: tuple[str, ...]  # what each cluster is sampled within (a category); "" where nothing
    values: Mapping[str, NDArray[np.float64]]  # columns of a value an item; NaN where the item has none
    statistics: Mapping[str, Statistic]  # for each metric, how it follows from the columns

    def only(self, rows: Iterable[int]) -> "Items":
        """The items at some places."""
        places = np.asarray([*rows], np.int64)
        names = (self.keys, self.clusters, self.strata)
        keys, clusters, strata = (tuple(column[row] for row in places) for column in names)
        values = {name: column[places] for name, column in self.values.items()}
        return replace(self, keys=keys, clusters=clusters, strata=strata, values=values)


@dataclass(frozen=True, slots=True)
class BatchPart:
    """The images of one group in a batch."""

    rows: slice  # where they are in the batch; the tiles of an image lie side by side
    view: View  # scaled to the backbone
    size: tuple[int, int]  # width and height in pixels of the view of the first, of which tiles are parts
    pixels: Tensor  # what the backbone is shown, uint8 RGB [rows 3 height width], on any device
    patch_size: int = 0  # pixels a side of one cell of its coarsest grid; 0 where that is not told


@dataclass(frozen=True, slots=True)
class Outcome:
    """Scores of one layer; none, and a reason, where its features cannot be scored."""

    scores: tuple[Score, ...]
    items: Items | None = None  # behind the scores; None where they are of no items
    empty: str = ""  # why there are no scores, or none of the primary metric
    missing: Mapping[str, str] = field(default_factory=dict)  # why further metrics have no value
    # what it said of the task's few examples (`tasks.examples`): arrays of the same names and shapes for all
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
    """All that a task says of a backbone: scores, and by name arrays that are kept beside the records."""

    outcomes: tuple[LayerOutcome, ...]
    arrays: Mapping[str, NDArray[np.generic]] = field(default_factory=dict)


def ceiling_metric(metric: str) -> str:
    """Name of the metric that says how high another one can be on the layer's grid."""
    return f"{metric} ceiling"


def area_ceiling_metric(metric: str) -> str:
    """Name of a second such metric, where a cell may know exactly how much of it each object covers."""
    return f"{ceiling_metric(metric)} by area"


def digest(*parts: object) -> str:
    """Hexadecimal digest of arrays (bytes, dtype, shape) and of the repr of anything else."""
    state = hashlib.blake2b(digest_size=16)
    for part in parts:
        if isinstance(part, np.ndarray):
            state.update(f"{part.dtype}{part.shape}".encode())
            state.update(np.ascontiguousarray(part).tobytes())
        else:
            # columns of committed tables were made when the classes of numbers had another name
            state.update(repr(part).replace("Config(", "Rule(").encode())
        state.update(b"\0")
    return state.hexdigest()


Portion = TypeVar("Portion")
Portion_contra = TypeVar("Portion_contra", contravariant=True)
Portion_co = TypeVar("Portion_co", covariant=True)


class Measurer(Protocol[Portion_contra]):
    """Measures one group while what it is fed is in memory; layers come in turn and do not see each other."""

    def update(self, layer: Layer, positions: Sequence[int], portion: Portion_contra, /) -> None:
        """Take what a layer shows of the group's images at those positions, in order.

        Tensors of the portion, which the task's feed makes of them (`tasks.feeds`), may be views of live
        activations: copy what outlives the call.
        """

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        """What is kept of the group for one layer; called once, after all of its images were seen.

        Neither this nor `update` may ask for a value of a tensor on the device: the host would wait for the
        device each time. What decides whether the layer can be measured is returned as `FINITE`.
        """


@runtime_checkable
class Settling(Protocol):
    """What a measurer may offer beside `Measurer`: work for the host on what `finish` returned."""

    def settle(self, finished: Mapping[Layer, Mapping[str, Tensor]], /) -> Mapping[Layer, dict[str, Tensor]]:
        """What is kept in place of what `finish` returned, `FINITE` aside, of layers that could be measured.

        It is called once a group, after all layers finished and their arrays left the device together.
        """


@dataclass(frozen=True, slots=True)
class Feed(ABC, Generic[Portion_co]):
    """What a measurer is fed (`tasks.feeds`); if it is ``whole``, all images of a group at once."""

    whole: bool = False

    def layers(self, scored: Sequence[Layer], spec: BackboneSpec) -> tuple[Layer, ...]:
        """Layers of a backbone that are measured where those layers are scored, in order."""
        return tuple(scored)

    def shown(self, layer: Layer) -> tuple[Layer, ...]:
        """What a backbone must show so that a layer can be measured, in the order of a forward."""
        return (layer,)

    @abstractmethod
    def portion(self, shown: Sequence[Shown], part: BatchPart) -> Portion_co:
        """What a measurer is given of a batch: of all that `shown` names, the images of one group."""
