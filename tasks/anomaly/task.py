"""Anomaly detection: are the patches of a test image close to those of good images? Nothing is trained.

Source: AnomalyDINO (Damm et al., WACV 2025; dammsi/AnomalyDINO, commit b3435f0). Differences are listed in
docs/explanation/anomaly.md: whole images at one size, and no foreground mask.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from layerboard.tasks.anomaly import scores
from layerboard.tasks.anomaly.references import DistanceMeasurer, Draws, ProductMemories
from layerboard.tasks.datasets.base import Sample
from layerboard.tasks.datasets.defects import Defects, Product, read_defect
from layerboard.tasks.framework.base import Group, Measurements, Outcome, Score, Source, digest
from layerboard.tasks.framework.checks import ALIKE
from layerboard.tasks.framework.examples import Predicted, drawn_indices, small_mask
from layerboard.tasks.framework.measurers import Grid, Measurer, MemoryMeasurer, unit_rows
from layerboard.tasks.framework.sources import consecutive_groups
from layerboard.tasks.framework.stored import LayerMeasurements
from layerboard.tasks.framework.task import Measurable, MeasuredTask
from layerboard.tasks.metrics.cell_labels import cell_draws
from layerboard.tasks.statistics import linearised
from layerboard.zoo.spec import Layer
from layerboard.zoo.view.views import Stretch, View

TOGETHER = 8  # images that are measured together
GROUPS_PER_SHARD = 16
SHOWN = 12  # number of images in the examples
MEMORY_FIRST = "the reference images must be measured first"


@dataclass(frozen=True, slots=True)
class AnomalyConfig:
    """Settings of anomaly detection."""

    view: View  # view of whole images
    k: int  # number of nearest patches whose mean distance counts
    draws: Draws  # few-shot draws of reference images
    limits: tuple[float, ...]  # false-positive rates up to which the per-region overlap is integrated
    seed: int  # of the draw of remembered patches, if there are too many


def _source(name: str, part: str, samples: Mapping[str, Sequence[Sample]], view: View, shard: int) -> Source:
    """Images of products, in groups of one product each."""
    groups = tuple(
        replace(group, key=f"{product}/{group.key}")
        for product, images in samples.items()
        for group in consecutive_groups(images, TOGETHER)
    )
    return Source(f"{name}/{part}", groups, view, groups_per_shard=shard)


@dataclass(frozen=True)
class References(Measurable):
    """The images of good products, some patches of which are remembered."""

    data: Defects
    config: AnomalyConfig

    @cached_property
    def source(self) -> Source:
        samples = {product.name: product.references for product in self.data.products}
        # one group per shard: products are read one by one
        return _source(self.data.name, "references", samples, self.config.view, 1)

    @cached_property
    def fingerprint(self) -> str:
        counts = [(product.name, len(product.references)) for product in self.data.products]
        return digest("anomaly-references", self.config, self.data.memory, counts)

    @cached_property
    def groups(self) -> dict[str, list[int]]:
        """Indices of the groups of each product."""
        groups: dict[str, list[int]] = {}
        for number, group in enumerate(self.source.groups):
            groups.setdefault(_product_of(group), []).append(number)
        return groups

    def patches(self, product: Product) -> int:
        """Largest number of remembered patches per image of a product."""
        return max(1, self.data.memory // len(product.references))

    def share(self, product: Product, cells: int) -> float:
        """Share of the patches of a product's references that are remembered, with ``cells`` per image."""
        return min(1.0, self.patches(product) / cells)

    def measure(self, group: Group, view: View) -> Measurer[Tensor]:
        product = next(each for each in self.data.products if each.name == _product_of(group))
        places = {sample.key: number for number, sample in enumerate(product.references)}
        numbers = [places[sample.key] for sample in group.samples]

        def choose(position: int, grid: Grid) -> tuple[Tensor, Tensor]:
            """Remembered patches, and whether each is drawn: all are kept of the images of few-shot draws."""
            draws = cell_draws(group.samples[position].key, grid, self.config.seed)
            drawn = np.zeros(len(draws), np.bool_)
            drawn[np.argsort(draws, kind="stable")[: self.patches(product)]] = True
            cells = np.flatnonzero(drawn | (numbers[position] < self.config.draws.images))
            return torch.from_numpy(cells), torch.from_numpy(drawn[cells])

        def keep(position: int, grid: Tensor, cells: Tensor, drawn: Tensor) -> dict[str, Tensor]:
            image = torch.full((len(cells),), numbers[position], dtype=torch.int32)
            return unit_rows(grid, cells) | {"image": image, "drawn": drawn}

        return MemoryMeasurer(choose, keep)


def _product_of(group: Group) -> str:
    return group.key.rpartition("/")[0]


@dataclass(frozen=True, eq=False)
class AnomalyTask(MeasuredTask):
    """Detection of defective test images, and of their defective pixels, with a memory of good images.

    ``memories`` are None until the references are measured.
    """

    data: Defects
    config: AnomalyConfig
    memories: ProductMemories | None = None
    split = "train, test"
    sets_refusal = ""
    keeps_examples = True
    takes_shots = True
    configs: ClassVar[Mapping[str, AnomalyConfig]] = {
        "standard": AnomalyConfig(
            Stretch(side=448), k=1, draws=Draws(shots=(1, 4), draws=3), limits=(0.3, 0.05), seed=0
        )
    }

    @classmethod
    def with_shots(cls, config: AnomalyConfig, shots: tuple[int, ...]) -> AnomalyConfig:
        return replace(config, draws=replace(config.draws, shots=shots))

    @cached_property
    def memory(self) -> References:
        return References(self.data, self.config)

    @property
    def remembered(self) -> int:
        return self.data.memory

    @cached_property
    def source(self) -> Source:
        samples = {product.name: [image.sample for image in product.images] for product in self.data.products}
        return _source(self.data.name, "test", samples, self.config.view, GROUPS_PER_SHARD)

    @cached_property
    def fingerprint(self) -> str:
        return digest("anomaly", self.config, self.memory.fingerprint, self.ground_truth)

    @cached_property
    def ground_truth(self) -> object:
        return digest(*self.data.truth)

    def remembering(self, measured: LayerMeasurements, failures: Mapping[Layer, str]) -> Self:
        groups, whole, most = self.memory.groups, self.config.draws.images, self.data.memory
        return replace(self, memories=ProductMemories(measured, failures, groups, whole, most))

    def measure(self, group: Group, view: View) -> Measurer[Tensor]:
        if self.memories is None:
            raise ValueError(MEMORY_FIRST)
        name = _product_of(group)
        count = next(len(each.references) for each in self.data.products if each.name == name)
        return DistanceMeasurer(name, self.config.draws.of(count), self.config.k, self.memories)

    def score(self, measurements: Sequence[Measurements]) -> Outcome:
        """AUROC, AP and F1 of images; AUROC, per-region overlap and F1 of pixels if there are masks."""
        if not any(np.any(measured["varies"]) for measured in measurements):
            return Outcome((), empty=ALIKE)
        draws = [*self.config.draws.of(0)]
        products = list(self._products(measurements))
        result = scores.outcome(products, draws, self.config.limits)
        if not result.scores:
            return result
        _, height, width = np.asarray(measurements[0]["distances"]).shape
        share = np.mean([self.memory.share(each, height * width) for each in self.data.products])
        count = sum(len(each.images) for each in self.data.products)
        remembered = Score("memory", 100 * float(share), count, "images")
        every = (*result.scores, remembered)
        predicted = self._predicted(products) if self.examples else {}
        return replace(result, scores=every, predicted=predicted)

    def _products(self, measurements: Sequence[Measurements]) -> Iterator[scores.ScoredProduct]:
        """Results of each product from the measurements of its groups."""
        groups: dict[str, list[Measurements]] = {}
        for group, measured in zip(self.source.groups, measurements, strict=True):
            groups.setdefault(_product_of(group), []).append(measured)
        for product in self.data.products:
            distances, of_images = (
                np.concatenate([np.asarray(group[name], np.float32) for group in groups[product.name]])
                for name in ("distances", "scores")
            )
            yield scores.ScoredProduct(product, np.array(product.defect), distances, of_images)

    @cached_property
    def shown(self) -> list[tuple[Product, int]]:
        """The example images: product, and index among its images."""
        every = [(each, number) for each in self.data.products for number in range(len(each.images))]
        images = [product.images[number] for product, number in every]
        strata = [(product.name, image.kind) for (product, _), image in zip(every, images, strict=True)]
        return [every[row] for row in drawn_indices([image.sample.key for image in images], SHOWN, strata)]

    def _predicted(self, products: Sequence[scores.ScoredProduct]) -> Predicted:
        """Maps of the examples, and the percent of other-kind images each is ranked correctly against."""
        by_name = {each.product.name: each for each in products}
        heat, placed = [], []
        for product, number in self.shown:
            scored = by_name[product.name]
            placement = linearised.placements(scored.scores[:, 0].astype(np.float64), scored.defect).value
            heat.append(scored.heat(number))
            placed.append(100 * placement[number] if placement.size else np.nan)
        return {"heat": np.stack(heat), "score": np.asarray(placed, np.float32)}

    def facts(self) -> Predicted:
        images = [product.images[number] for product, number in self.shown]
        return {
            "image": np.asarray([image.sample.key for image in images], str),
            "product": np.asarray([product.name for product, _ in self.shown], str),
            "kind": np.asarray([image.kind for image in images], str),
            "truth": np.stack([small_mask(read_defect(image).astype(np.uint8)) for image in images]),
        }

    def pictures(self, predicted: Sequence[Predicted]) -> Mapping[str, Sample]:
        images = (product.images[number] for product, number in self.shown)
        return {image.sample.key: image.sample for image in images}
