"""Clustering of images, objects and parts: do clusters of the features agree with the classes?

Source: Walmer et al., CVPR 2023 (k-means purity of images, objects and parts; weights of cells).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from layerboard.tasks.clustering.kmeans import kmeans_starts, shown_classes, shown_purity
from layerboard.tasks.datasets.base import DatasetEntry, Sample, with_choices
from layerboard.tasks.datasets.coco import RegionImage, Regions
from layerboard.tasks.framework.base import (
    Device,
    Group,
    Items,
    Measurements,
    Outcome,
    Score,
    Source,
    Statistic,
    ceiling_metric,
    digest,
)
from layerboard.tasks.framework.checks import unusable
from layerboard.tasks.framework.examples import Predicted, drawn_indices
from layerboard.tasks.framework.measurers import Measurer
from layerboard.tasks.framework.protocols import EvaluationProtocol
from layerboard.tasks.framework.sources import ProbedClasses
from layerboard.tasks.framework.task import SINGLE_LAYERS, MeasuredTask, VectorTask
from layerboard.tasks.framework.transformed import Vectors
from layerboard.tasks.metrics.arrays import Integers
from layerboard.tasks.metrics.cell_labels import cell_shares
from layerboard.tasks.metrics.partitions import AGREEMENTS
from layerboard.zoo.errors import ensure
from layerboard.zoo.spec import Layer
from layerboard.zoo.view.views import Tiles, View

CLASSES, OF_EACH = 6, 8  # number of classes in the examples, and images of each
IMAGES_PER_SHARD = 32


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    """Settings of the clusterings: k-means with ``n_init`` starts from ``seed``, on unnormalised features."""

    n_init: int  # number of starts; the one with the lowest inertia counts
    seed: int  # of all starts
    view: View  # view of images with regions

    def __post_init__(self) -> None:
        ensure(self.n_init >= 1, f"k-means takes at least 1 start, not {self.n_init}")


@dataclass(frozen=True, slots=True)
class RegionsConfig:
    """Choices among annotated regions and of the number of clusters: fields of the datasets' entries."""

    left_out: int  # number of images left out at the end of the object dataset's first images
    parts_as_objects: bool  # whether the number of part clusters is the number of object categories
    # whether part images come partition by partition and class by class (`PartImageNetEntry`), instead of in
    # sorted order with classes taking turns
    by_partition: bool


REGIONS = {
    "standard": RegionsConfig(left_out=0, parts_as_objects=False, by_partition=False),
    "paper": RegionsConfig(left_out=1, parts_as_objects=True, by_partition=True),
}


def labelled(unit: str, keys: Sequence[str], images: Sequence[str], labels: Sequence[int]) -> Items:
    """Items with their images and their labels, which k-means does not use."""
    values = {"label": np.asarray(labels, np.float64)}
    return Items(unit, tuple(keys), tuple(images), ("",) * len(keys), values, {})


def cluster_scores(features: NDArray[np.float32], items: Items, k: int, config: ClusterConfig) -> Outcome:
    """Purity, NMI and ARI, in percent, of k-means on features [items dim] of labelled items."""
    count = f"{len(features)} {items.unit}"
    if reason := unusable(features):
        return Outcome((), empty=reason)
    if len(features) < k:
        return Outcome((), empty=f"{count} are fewer than {k} clusters")
    if k == 1 or k == len(features):
        return Outcome((), empty=f"{count} in {k} clusters say nothing about the features")
    return score_partitions(kmeans_starts(features, k, seed=config.seed, n_init=config.n_init), items)


def score_partitions(starts: Integers, items: Items) -> Outcome:
    """Purity, NMI and ARI, in percent, of partitions of labelled items [starts items], the best first."""
    labels = items.values["label"].astype(np.int64)
    scores = tuple(
        Score(name, 100.0 * metric(labels, starts[0]), len(labels), items.unit)
        for name, metric in AGREEMENTS.items()
    )
    ranked = {f"start {rank}": each.astype(np.float64) for rank, each in enumerate(starts, start=1)}
    statistics = {name: Statistic(name, "partition") for name in AGREEMENTS}
    return Outcome(scores, replace(items, values={**items.values, **ranked}, statistics=statistics))


@dataclass(frozen=True, eq=False)
class ImageClusterTask(VectorTask):
    """Clustering of the probe subset, by default into as many clusters as it has classes."""

    data: ProbedClasses
    config: ClusterConfig
    clusters: int | None = None  # number of clusters; None for that of the classes
    configs: ClassVar = {"standard": ClusterConfig(n_init=10, seed=0, view=Tiles(short=448, tile=224))}
    keeps_examples = True
    scorer = "clustering"
    sets_refusal = SINGLE_LAYERS

    @property
    def vector_sources(self) -> tuple[Source, ...]:
        return (self.data.probe,)

    @property
    def fitted_on(self) -> tuple[Source, ...]:
        """Sources that a transform is fitted on: the images that are clustered, all of which are known."""
        return self.vector_sources

    @cached_property
    def fingerprint(self) -> str:
        other = () if self.clusters is None else (self.clusters,)
        return digest("cluster-image", self.config, self.data.labels, *other)

    def score(self, vectors: Vectors, device: Device = None) -> Outcome:
        """Purity, NMI and ARI, in percent, of k-means clusters of one layer's vectors."""
        features, rows = self._readable(vectors)
        samples = self.data.probe.samples  # a property that iterates over all groups
        keys = [samples[row].key for row in rows]
        items = labelled("images", keys, keys, self.data.labels[rows].tolist())
        clusters = self.clusters or len(np.unique(self.data.labels))
        outcome = cluster_scores(features, items, clusters, self.config)
        return replace(outcome, predicted=self._predicted(outcome.items))

    def exported(self, vectors: Vectors) -> dict[str, NDArray[np.generic]]:
        """Images of the probe subset in the dataset's order, with their labels and names."""
        features, rows = self._readable(vectors)
        keys = np.array([sample.key for sample in self.data.probe.samples])
        return {"features": features, "labels": self.data.labels[rows], "keys": keys[rows]}

    def _readable(self, vectors: Vectors) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Vectors of the readable images, and their indices in the source.

        Since k-means depends on the order of the rows, they are in dataset order, not in batch order.
        """
        order = np.argsort(self.data.probe_order)
        features = vectors[self.data.probe.name][order]
        read = ~np.isnan(features[:, 0])
        return features[read], order[read]

    @cached_property
    def places(self) -> tuple[int, ...]:
        """Indices of the examples among the images."""
        labels, samples = self.data.labels, self.data.probe.samples
        classes = np.unique(labels)
        wanted = classes[drawn_indices([f"class {number}" for number in classes], CLASSES)]
        rows = np.flatnonzero(np.isin(labels, wanted))
        keys = [samples[row].key for row in rows]
        return tuple(int(rows[row]) for row in drawn_indices(keys, CLASSES * OF_EACH, labels[rows].tolist()))

    def _predicted(self, items: Items | None) -> Predicted:
        """Cluster of each example in the best start; -1 for an unreadable image."""
        if items is None:
            return {}
        clusters = dict(zip(items.keys, items.values["start 1"].astype(np.int64), strict=True))
        return {"cluster": np.asarray([clusters.get(key, -1) for key in self.pictures(())], np.int64)}

    def facts(self) -> Predicted:
        names = self.data.images.train.classes
        labels = self.data.labels[list(self.places)].tolist()
        classes = [names[label] if names else str(label) for label in labels]
        return {"image": np.asarray([*self.pictures(())], str), "class": np.asarray(classes, str)}

    def pictures(self, predicted: Sequence[Predicted]) -> Mapping[str, Sample]:
        samples = self.data.probe.samples
        return {samples[row].key: samples[row] for row in self.places}


@dataclass(frozen=True, eq=False)
class RegionClusterTask(MeasuredTask):
    """Clustering of annotated objects or parts; the vector of each is the mask-weighted mean of the grid."""

    data: Regions
    config: ClusterConfig
    configs = ImageClusterTask.configs

    @classmethod
    def reading(cls, entry: DatasetEntry[Any], protocol: EvaluationProtocol) -> DatasetEntry[Any]:
        return with_choices(entry, protocol.config_for(REGIONS))

    @cached_property
    def source(self) -> Source:
        groups = tuple(Group(key, (image.sample,)) for key, image in self.images.items())
        name = f"{self.data.name}{self.data.edition}"
        return Source(name, groups, self.config.view, groups_per_shard=IMAGES_PER_SHARD)

    @cached_property
    def images(self) -> dict[str, RegionImage]:
        """Images with regions, by key."""
        return {image.sample.key: image for image in self.data.images}

    @cached_property
    def fingerprint(self) -> str:
        regions = [region for image in self.data.images for region in image.regions]
        return digest("cluster-regions", self.config, self.data.clusters, regions)

    def measure(self, group: Group, view: View) -> Measurer[Tensor]:
        return RegionMeasurer(self.images[group.key])

    def score(self, measurements: Sequence[Measurements]) -> Outcome:
        """Purity, NMI and ARI over the regions that cover any cell of the grid, and purity's upper bound."""
        unit = self.data.unit
        features = np.concatenate([np.asarray(m["mean"], np.float32) for m in measurements])
        covered = np.concatenate([np.asarray(m["covered"], bool) for m in measurements])
        if not covered.any():
            return Outcome((), empty=f"none of the {len(covered)} {unit} covers a cell of the grid")
        items = self._labelled.only(np.flatnonzero(covered))
        outcome = cluster_scores(features[covered], items, self.data.clusters, self.config)
        if not outcome.scores or not all("shown" in m for m in measurements):
            return outcome
        classes = np.concatenate([np.asarray(m["shown"], np.int64) for m in measurements])[covered]
        ceiling = 100.0 * shown_purity(items.values["label"].astype(np.int64), classes, self.data.clusters)
        score = Score(ceiling_metric("purity"), ceiling, len(classes), unit)
        return replace(outcome, scores=(*outcome.scores, score))

    @cached_property
    def _labelled(self) -> Items:
        """The regions of all images, in order, with their labels."""
        images = self.data.images
        regions = [region for image in images for region in image.regions]
        owners = [image.sample.key for image in images for _ in image.regions]
        keys, labels = [region.key for region in regions], [region.label for region in regions]
        return labelled(self.data.unit, keys, owners, labels)


class RegionMeasurer(Measurer[Tensor]):
    """Weighted mean vectors of one image's regions, and the class that covers most of each region's cells.

    Layers with the same grid share the weights and the covering classes.
    """

    def __init__(self, image: RegionImage) -> None:
        super().__init__()
        self._labels = np.array([region.label for region in image.regions], np.int64)
        self._image = image
        self._masks: NDArray[np.uint8] | None = None
        self._of_grid: dict[tuple[int, int], tuple[Tensor, Tensor]] = {}

    def update(self, layer: Layer, positions: Sequence[int], grids: Tensor, /) -> None:
        grid = grids[0]  # a group is one image
        weights, classes = self._resized((grid.shape[0], grid.shape[1]), grid.device)
        arrays = {
            "mean": weights.flatten(1) @ grid.float().flatten(0, 1),  # of each region, [regions dim]
            "covered": weights.flatten(1).any(dim=1),  # whether a region covers any cell
            "shown": classes.clone(),  # a file of tensors shares no memory among them
        }
        self.keep(layer, arrays)

    def _resized(self, grid: tuple[int, int], device: torch.device) -> tuple[Tensor, Tensor]:
        """Weights of the cells of a grid [regions height width], and the covering classes [regions]."""
        if grid not in self._of_grid:
            if self._masks is None:
                self._masks = np.stack([region.mask() for region in self._image.regions])
            weights = np.stack([region_weights(mask, grid) for mask in self._masks])
            labels = np.unique(self._labels)
            masks = [np.logical_or.reduce(self._masks[self._labels == label]) for label in labels]
            shares = np.stack([cell_shares(mask, grid) for mask in masks])
            classes = labels[shown_classes(weights.astype(np.float64), shares)]
            self._of_grid[grid] = torch.from_numpy(weights).to(device), torch.from_numpy(classes).to(device)
        return self._of_grid[grid]


def region_weights(mask: NDArray[np.uint8], grid: tuple[int, int]) -> NDArray[np.float32]:
    """Share of a region in each cell of a (height, width) grid, summing to 1; all zero if it vanishes.

    The mask (0 and 1) is resized as an 8-bit image, bicubic, as in the code of Walmer et al., CVPR 2023.
    """
    picture = Image.fromarray(mask * np.uint8(255)).resize((grid[1], grid[0]), Image.Resampling.BICUBIC)
    weights = np.asarray(picture, np.float32)
    total = weights.sum()
    return weights / total if total else weights
