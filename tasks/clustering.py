"""Clustering of images, objects and parts: do the features group what belongs together?

Source: Walmer et al., CVPR 2023 (k-means purity of images, COCO objects and PartImageNet parts; weights of
cells).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
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
from tasks.datasets.base import Sample
from tasks.datasets.coco import RegionImage, Regions
from tasks.examples import Predicted, drawn
from tasks.metrics.cell_labels import cell_shares
from tasks.metrics.clustering import AGREEMENTS, kmeans_starts, shown_classes, shown_purity
from tasks.sources import ClusteredRegions, ProbedClasses
from tasks.task import SINGLE_LAYERS, MeasuredTask, VectorTask
from zoo.spec import Layer
from zoo.view.views import Tiles, View


def region_weights(mask: NDArray[np.uint8], grid: tuple[int, int]) -> NDArray[np.float32]:
    """Share of a region in each cell of a (height, width) grid, summing to 1; all zero where it vanishes.

    The mask (0 and 1) is resized as an 8-bit image, bicubic, as in the code of Walmer et al., CVPR 2023.
    """
    picture = Image.fromarray(mask * np.uint8(255)).resize((grid[1], grid[0]), Image.Resampling.BICUBIC)
    weights = np.asarray(picture, np.float32)
    total = weights.sum()
    return weights / total if total else weights


class RegionMeasurer:
    """Weighted means of one image's regions, and which class the cells of each show most.

    The weights, and what is shown, are shared by layers with the same grid.
    """

    def __init__(self, image: RegionImage) -> None:
        self._image = image
        self._masks: list[NDArray[np.uint8]] | None = None
        self._weights: dict[tuple[int, int], Tensor] = {}
        self._shown: dict[tuple[int, int], Tensor] = {}
        self._means: dict[Layer, dict[str, Tensor]] = {}

    def update(self, layer: Layer, positions: Sequence[int], grids: Tensor) -> None:
        del positions  # a group is one image
        grid = grids[0]
        size = (grid.shape[0], grid.shape[1])
        weights = self._resized(size, grid.device)
        means = weights.flatten(1) @ grid.float().flatten(0, 1)
        covered = weights.flatten(1).any(dim=1)
        classes = self._shown[size].clone()  # a file of tensors shares no memory among them
        self._means[layer] = {"mean": means, "covered": covered, "shown": classes}

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        """The mean of each region [regions dim], whether any cell counts, and the class shown most."""
        return self._means.pop(layer)

    def _resized(self, grid: tuple[int, int], device: torch.device) -> Tensor:
        if grid not in self._weights:
            if self._masks is None:
                self._masks = [region.mask() for region in self._image.regions]
            stack = np.stack([region_weights(mask, grid) for mask in self._masks])
            self._weights[grid] = torch.from_numpy(stack).to(device)
            self._shown[grid] = torch.from_numpy(self._classes(stack, self._masks)).to(device)
        return self._weights[grid]

    def _classes(self, weights: NDArray[np.float32], masks: Sequence[NDArray[np.uint8]]) -> NDArray[np.int64]:
        """The class that the cells of each region show most: [regions]."""
        of_region = np.array([region.label for region in self._image.regions], np.int64)
        classes = np.unique(of_region)
        grid = (weights.shape[1], weights.shape[2])
        covered = (
            np.logical_or.reduce(
                [mask for mask, region in zip(masks, of_region, strict=True) if region == label]
            )
            for label in classes
        )
        shares = np.stack([cell_shares(mask, grid) for mask in covered])
        return np.asarray(classes[shown_classes(weights.astype(np.float64), shares)])


CLASSES, OF_EACH = 6, 8  # classes of which the clusters are kept, and images of each


@dataclass(frozen=True)
class ClusterExamples:
    """Images and the clusters that layers put them into."""

    samples: tuple[Sample, ...]  # all images that are clustered
    labels: NDArray[np.int64]  # the class of each, [images]
    classes: tuple[str, ...] = ()  # names of the classes; their numbers stand for them where there are none

    @cached_property
    def places(self) -> tuple[int, ...]:
        """Places of the examples among the images."""
        classes = np.unique(self.labels)
        wanted = classes[drawn([f"class {number}" for number in classes], CLASSES)]
        rows = np.flatnonzero(np.isin(self.labels, wanted))
        keys = [self.samples[row].key for row in rows]
        return tuple(int(rows[row]) for row in drawn(keys, CLASSES * OF_EACH, self.labels[rows].tolist()))

    def predicted(self, items: Items | None) -> Predicted:
        """The cluster of each example by the best start; -1 for one that could not be read."""
        if items is None:
            return {}
        clusters = dict(zip(items.keys, items.values["start 1"].astype(np.int64), strict=True))
        return {
            "cluster": np.asarray([clusters.get(self.samples[row].key, -1) for row in self.places], np.int64)
        }

    def facts(self) -> Predicted:
        labels = self.labels[list(self.places)].tolist()
        classes = [self.classes[label] if self.classes else str(label) for label in labels]
        keys = [self.samples[row].key for row in self.places]
        return {"image": np.asarray(keys, str), "class": np.asarray(classes, str)}

    def pictures(self, predicted: Sequence[Predicted]) -> Mapping[str, Sample]:
        del predicted
        return {self.samples[row].key: self.samples[row] for row in self.places}


IMAGES_PER_SHARD = 32


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    """The numbers of the clusterings: k-means with ``n_init`` starts from ``seed``, on raw features."""

    n_init: int  # starts, of which the best by inertia counts
    seed: int  # of all starts
    view: View  # how images with regions are shown


CONFIGS = {"standard": ClusterConfig(n_init=10, seed=0, view=Tiles(short=448, tile=224))}


@dataclass(frozen=True, slots=True)
class RegionsConfig:
    """Which annotated regions are clustered, and into how many clusters."""

    left_out: int  # how many of the first images of the object dataset are left out at their end
    parts_as_objects: bool  # whether parts fall into as many clusters as there are object categories
    # whether classes of the part dataset are taken partition by partition and stay together
    # (`PartImageNetEntry`), instead of in sorted order and in turns
    parts_by_partition: bool


REGIONS = {
    "standard": RegionsConfig(left_out=0, parts_as_objects=False, parts_by_partition=False),
    "paper": RegionsConfig(left_out=1, parts_as_objects=True, parts_by_partition=True),
}


@dataclass(frozen=True, slots=True)
class LabelledItems:
    """Items with a label, which k-means groups without it."""

    unit: str  # what an item is: images, objects or parts
    keys: tuple[str, ...]  # name of each item, unique
    images: tuple[str, ...]  # the image that each item is of
    labels: NDArray[np.int64]  # [items] class of each

    def only(self, kept: NDArray[np.bool_]) -> "LabelledItems":
        """The regions of the items that are kept: a mask [items]."""
        rows = np.flatnonzero(kept)
        keys, images = (tuple(names[row] for row in rows) for names in (self.keys, self.images))
        return LabelledItems(self.unit, keys, images, self.labels[rows])


def cluster_scores(
    features: NDArray[np.float32], items: LabelledItems, k: int, config: ClusterConfig
) -> Outcome:
    """Purity, NMI and ARI in percent of a partition of the items by k-means of their features [items dim]."""
    count = f"{len(features)} {items.unit}"
    if reason := unusable(features):
        return Outcome((), empty=reason)
    if len(features) < k:
        return Outcome((), empty=f"{count} are fewer than {k} clusters")
    if k == 1 or k == len(features):
        return Outcome((), empty=f"{count} in {k} clusters say nothing about the features")
    starts = kmeans_starts(features, k, seed=config.seed, n_init=config.n_init)
    scores = tuple(
        Score(name, 100.0 * metric(items.labels, starts[0]), len(features), items.unit)
        for name, metric in AGREEMENTS.items()
    )
    values = {"label": items.labels.astype(np.float64)}
    values |= {
        f"start {rank}": partition.astype(np.float64) for rank, partition in enumerate(starts, start=1)
    }
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
        return (self.data.probe,)

    @property
    def fitted_on(self) -> tuple[Source, ...]:
        """What a transform of vectors is fitted on: the images that are clustered, of which it knows all."""
        return self.vector_sources

    @cached_property
    def fingerprint(self) -> str:
        return digest("cluster-image", self.config, self.data.labels)

    @cached_property
    def kept_examples(self) -> ClusterExamples:
        return ClusterExamples(self.data.probe.samples, self.data.labels, self.data.images.train.classes)

    def score(self, vectors: Mapping[str, NDArray[np.float32]], device: Device = None) -> Outcome:
        """Purity, NMI and ARI in percent of k-means clusters of one layer's vectors."""
        # k-means depends on the order of its rows: use the dataset's, not that of the batches
        order = np.argsort(self.data.probe_order)
        features = vectors[self.data.probe.name][order]
        samples = self.data.probe.samples  # a property that walks through all groups
        keys = tuple(samples[index].key for index in order)
        images = LabelledItems("images", keys, keys, self.data.labels[order])
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
    unit: ClassVar[str]  # what a region is: objects or parts

    @cached_property
    def source(self) -> Source:
        groups = tuple(Group(image.sample.key, (image.sample,)) for image in self.regions.images)
        name = f"{self.data.name}{self.regions.edition}"
        return Source(name, groups, self.config.view, groups_per_shard=IMAGES_PER_SHARD)

    @cached_property
    def images(self) -> dict[str, RegionImage]:
        """The images with regions, by their key."""
        return {image.sample.key: image for image in self.regions.images}

    @cached_property
    def fingerprint(self) -> str:
        regions = [region for image in self.regions.images for region in image.regions]
        return digest("cluster-regions", self.config, self.data.k, regions)

    @property
    def regions(self) -> Regions:
        """Images with masks."""
        return self.data.regions

    def measure(self, group: Group, view: View) -> Measurer[Tensor]:
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
        classes = np.concatenate([np.asarray(m["shown"], np.int64) for m in measurements])[covered]
        ceiling = 100.0 * shown_purity(items.labels, classes, self.data.k)
        score = Score(ceiling_metric("purity"), ceiling, len(classes), self.unit)
        return replace(outcome, scores=(*outcome.scores, score))

    @cached_property
    def _labelled(self) -> LabelledItems:
        """The regions of all images, in order, with their labels."""
        pairs = [(image.sample.key, region) for image in self.regions.images for region in image.regions]
        return LabelledItems(
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
