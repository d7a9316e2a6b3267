"""Clustering of images, objects and parts: do the features group what belongs together?

Source: Walmer et al., CVPR 2023 (k-means purity of images, COCO objects and PartImageNet parts).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from tasks.base import (
    Device,
    Group,
    Items,
    Measurements,
    Measurer,
    Outcome,
    Score,
    Source,
    Statistic,
    ceiling_metric,
    digest,
)
from tasks.checks import unusable
from tasks.datasets.coco import RegionImage, Regions
from tasks.examples.clustering import ClusterExamples
from tasks.metrics.clustering import AGREEMENTS, kmeans_starts
from tasks.metrics.region_classes import shown_purity
from tasks.region_means import RegionMeasurer
from tasks.sources import ClusteredRegions, ProbedClasses
from tasks.task import SINGLE_LAYERS, MeasuredTask, VectorTask
from zoo.view.views import Tiles, View

IMAGES_PER_SHARD = 32


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    """The numbers of the clusterings: k-means with ``n_init`` starts from ``seed``, on raw features.

    Attributes:
        n_init: Starts, of which the best by inertia counts.
        seed: Of all starts.
        view: How images with regions are shown.
    """

    n_init: int
    seed: int
    view: View


CONFIGS = {"standard": ClusterConfig(n_init=10, seed=0, view=Tiles(short=448, tile=224))}


@dataclass(frozen=True, slots=True)
class RegionsConfig:
    """Which annotated regions are clustered, and into how many clusters.

    Attributes:
        left_out: How many of the first images of the object dataset are left out at their end.
        parts_as_objects: Whether parts fall into as many clusters as there are object categories.
        parts_by_partition: Whether classes of the part dataset are taken partition by partition and stay
            together (`PartImageNetEntry`), instead of in sorted order and in turns.
    """

    left_out: int
    parts_as_objects: bool
    parts_by_partition: bool


REGIONS = {
    "standard": RegionsConfig(left_out=0, parts_as_objects=False, parts_by_partition=False),
    "paper": RegionsConfig(left_out=1, parts_as_objects=True, parts_by_partition=True),
}


@dataclass(frozen=True, slots=True)
class Labelled:
    """Items with a label, which k-means groups without it.

    Attributes:
        unit: What an item is: images, objects or parts.
        keys: Name of each item, unique.
        images: The image that each item is of.
        labels: [items] class of each.
    """

    unit: str
    keys: tuple[str, ...]
    images: tuple[str, ...]
    labels: NDArray[np.int64]

    def only(self, kept: NDArray[np.bool_]) -> "Labelled":
        """The same of the items that are kept: a mask [items]."""
        rows = np.flatnonzero(kept)
        keys, images = (tuple(names[row] for row in rows) for names in (self.keys, self.images))
        return Labelled(self.unit, keys, images, self.labels[rows])


def cluster_scores(features: NDArray[np.float32], items: Labelled, k: int, rule: ClusterConfig) -> Outcome:
    """Purity, NMI and ARI in percent of a partition of the items by k-means of their features [items dim]."""
    count = f"{len(features)} {items.unit}"
    if reason := unusable(features):
        return Outcome((), empty=reason)
    if len(features) < k:
        return Outcome((), empty=f"{count} are fewer than {k} clusters")
    if k == 1 or k == len(features):
        return Outcome((), empty=f"{count} in {k} clusters say nothing about the features")
    starts = kmeans_starts(features, k, seed=rule.seed, n_init=rule.n_init)
    scores = tuple(
        Score(name, 100.0 * metric(items.labels, starts[0]), len(features), items.unit)
        for name, metric in AGREEMENTS.items()
    )
    values = {"label": items.labels.astype(np.float64)}
    values |= {f"start {rank}": found.astype(np.float64) for rank, found in enumerate(starts, start=1)}
    statistics = {name: Statistic(name, "partition") for name in AGREEMENTS}
    strata = ("",) * len(items.keys)
    return Outcome(scores, Items(items.unit, items.keys, items.images, strata, values, statistics))


@dataclass(frozen=True, eq=False)
class ImageClusterTask(VectorTask):
    """Clustering of the probe subset into as many clusters as it has classes."""

    data: ProbedClasses
    config: ClusterConfig
    configs = CONFIGS
    scorer = "clustering"
    sets_refusal = SINGLE_LAYERS

    @property
    def vector_sources(self) -> tuple[Source, ...]:
        """The one source: the probe subset."""
        return (self.data.probe,)

    @property
    def fitted_on(self) -> tuple[Source, ...]:
        """What a transform of vectors is fitted on: the images that are clustered, of which it knows all."""
        return self.vector_sources

    @cached_property
    def fingerprint(self) -> str:
        """Digest of k-means' rule and of the labels."""
        return digest("cluster-image", self.config, self.data.labels)

    @cached_property
    def kept_examples(self) -> ClusterExamples:
        """What of its partitions is kept."""
        return ClusterExamples(self.data.probe.samples, self.data.labels, self.data.images.train.classes)

    def score(self, vectors: Mapping[str, NDArray[np.float32]], device: Device = None) -> Outcome:
        """Purity, NMI and ARI in percent of k-means clusters of one layer's vectors."""
        # k-means depends on the order of its rows: use the dataset's, not that of the batches
        order = np.argsort(self.data.probe_order)
        features = vectors[self.data.probe.name][order]
        samples = self.data.probe.samples  # a property that walks through all groups
        keys = tuple(samples[index].key for index in order)
        images = Labelled("images", keys, keys, self.data.labels[order])
        read = ~np.isnan(features[:, 0])
        k = len(np.unique(self.data.labels))
        outcome = cluster_scores(features[read], images.only(read), k, self.config)
        return replace(outcome, predicted=self.kept_examples.predicted(outcome.items))

    def exported(self, vectors: Mapping[str, NDArray[np.float32]]) -> dict[str, NDArray[np.generic]]:
        """Images of the probe subset in the dataset's order, with their labels and names."""
        order = np.argsort(self.data.probe_order)
        features = vectors[self.data.probe.name][order]
        read = ~np.isnan(features[:, 0])
        keys = np.array([sample.key for sample in self.data.probe.samples])[order]
        return {"features": features[read], "labels": self.data.labels[order][read], "keys": keys[read]}


@dataclass(frozen=True, eq=False)
class RegionClusterTask(MeasuredTask):
    """Clustering of annotated regions, each the mask-weighted mean of a dense grid."""

    data: ClusteredRegions
    config: ClusterConfig
    configs = CONFIGS
    unit: ClassVar[str]
    """What a region is: objects or parts."""

    @cached_property
    def source(self) -> Source:
        """The images with regions, each a group."""
        groups = tuple(Group(image.sample.key, (image.sample,)) for image in self.regions.images)
        name = f"{self.data.name}{self.regions.edition}"
        return Source(name, groups, self.config.view, groups_per_shard=IMAGES_PER_SHARD)

    @cached_property
    def images(self) -> dict[str, RegionImage]:
        """The images with regions, by their key."""
        return {image.sample.key: image for image in self.regions.images}

    @cached_property
    def fingerprint(self) -> str:
        """Digest of the rule and of the regions, whose repr tells their labels and shapes."""
        regions = [region for image in self.regions.images for region in image.regions]
        return digest("cluster-regions", self.config, self.data.k, regions)

    @property
    def regions(self) -> Regions:
        """Images with masks."""
        return self.data.regions

    def measure(self, group: Group, view: View) -> Measurer[Tensor]:
        """What takes the means of one image's regions."""
        return RegionMeasurer(self.images[group.key])

    def score(self, measurements: Sequence[Measurements]) -> Outcome:
        """Purity, NMI and ARI over the regions that cover any of the grid, and the purity that it allows."""
        features = np.concatenate([np.asarray(m["mean"], np.float32) for m in measurements])
        covered = np.concatenate([np.asarray(m["covered"], bool) for m in measurements])
        if not covered.any():
            return Outcome((), empty=f"none of the {len(covered)} {self.unit} covers a cell of the grid")
        items = self._labelled.only(covered)
        outcome = cluster_scores(features[covered], items, self.data.k, self.config)
        if not outcome.scores or not all("shown" in m for m in measurements):
            return outcome
        shown = np.concatenate([np.asarray(m["shown"], np.int64) for m in measurements])[covered]
        ceiling = 100.0 * shown_purity(items.labels, shown, self.data.k)
        score = Score(ceiling_metric("purity"), ceiling, len(shown), self.unit)
        return replace(outcome, scores=(*outcome.scores, score))

    @cached_property
    def _labelled(self) -> Labelled:
        """The regions of all images, in order, with their labels."""
        pairs = [(image.sample.key, region) for image in self.regions.images for region in image.regions]
        return Labelled(
            unit=self.unit,
            keys=tuple(region.key for _, region in pairs),
            images=tuple(image for image, _ in pairs),
            labels=np.array([region.label for _, region in pairs], np.int64),
        )


class ObjectClusterTask(RegionClusterTask):
    """Clustering of annotated objects."""

    unit = "objects"
    split = "val"


class PartClusterTask(RegionClusterTask):
    """Clustering of annotated parts of objects."""

    unit = "parts"
    split = "train, val, test"
