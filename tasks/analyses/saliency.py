"""Saliency: whether attention heads and attention rollout highlight the annotated objects.

Sources: Walmer et al., CVPR 2023, section 4.4 and appendix C.3 (heads); Abnar and Zuidema, ACL 2020, and
Dosovitskiy et al., ICLR 2021, appendix D.7 (rollout), which do not score it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from layerboard.tasks.analyses.base import NOT_FINITE, ImageAnalysis, KeptImages, LayerArrays, Tally
from layerboard.tasks.analyses.metrics.attention import (
    Cells,
    Fusion,
    discard,
    fuse_heads,
    output_map,
    patch_query_map,
    roll,
)
from layerboard.tasks.clustering.task import REGIONS
from layerboard.tasks.datasets.base import DatasetEntry
from layerboard.tasks.datasets.coco import CocoEntry, RegionImage, Regions
from layerboard.tasks.datasets.partimagenet import PartImageNetEntry
from layerboard.tasks.framework.base import Findings, Group, LayerOutcome, Source, digest
from layerboard.tasks.framework.feeds import AttentionFeed
from layerboard.tasks.framework.measurers import BatchMeasurer, Measurer
from layerboard.tasks.framework.protocols import EvaluationProtocol
from layerboard.tasks.framework.sources import IMAGES, consecutive_groups
from layerboard.tasks.metrics.arrays import Floats, Mask
from layerboard.tasks.metrics.cell_labels import overlaps
from layerboard.zoo.features import AttentionMaps
from layerboard.zoo.spec import WHOLE_BACKBONE, Layer
from layerboard.zoo.view.views import View

IMAGES_PER_GROUP = 32  # images whose rollouts are in memory together; they are also stored together
FUSIONS: tuple[Fusion, ...] = ("mean", "max", "min")
POOLINGS = ("cls", "patch")  # tokens that ask; without a class token the last alone
BEST = "saliency-iou-best"


ROUNDING = 1e-6  # values with a smaller relative difference count as equal: they are sums in float32

Shares = NDArray[np.float64]  # share of each cell that an object covers: [rows columns]


@dataclass(frozen=True, slots=True)
class Threshold:
    """Rule that marks the strongest cells of a map, which together contain a share of its mass.

    Cells are sorted by value, ascending, and their shares of the sum are accumulated. Cells whose cumulative
    share exceeds ``1 - mass + margin`` are marked; the margin absorbs rounding errors at the limit itself.
    With ``ties``, cells as strong as the weakest marked one are marked, too. Otherwise equal cells are in
    row-major order, and the last of them count as the strongest.
    """

    mass: float
    margin: float
    ties: bool


@dataclass(frozen=True, slots=True)
class SaliencyConfig:
    """Settings of saliency.

    With ``separate_masks``, each mask of an image is resized to the grid separately (bicubic), and all its
    nonzero cells count (`touched`). Otherwise, cells count if the masks together cover at least half of them
    (`half_covered`).
    """

    view: View
    threshold: Threshold  # rule for the marked cells of a map
    separate_masks: bool
    splits: int  # random halves of the images on which a head is chosen and scored on the other half
    seed: int  # of these
    discard: float  # share of the smallest entries that a variant of rollout discards
    images_per_supercategory: int  # how many images of the part dataset are sampled

    @property
    def rollouts(self) -> dict[str, tuple[Fusion, float]]:
        """Variants of rollout by their metric: how heads are fused, and what share is discarded."""
        return {
            f"rollout-iou{'' if fusion == 'mean' else '-' + fusion}{ending}": (fusion, share)
            for ending, share in (("", 0.0), ("-discard", self.discard))
            for fusion in FUSIONS
        }


_STANDARD = SaliencyConfig(
    view=IMAGES["standard"].view,
    threshold=Threshold(mass=0.6, margin=1e-6, ties=True),
    separate_masks=False,
    splits=100,
    seed=0,
    discard=0.9,
    images_per_supercategory=500,
)


class SaliencyTask(ImageAnalysis[AttentionMaps]):
    """Overlap of attention maps with annotated objects or parts, over the images that show an object.

    Scores have the poolings ``cls`` (attention from the class token to the patches, if there is one) and
    ``patch`` (attention from all patches). ``saliency-iou``: of each head, and their mean.
    ``saliency-iou-best``: of the head with the best mean, chosen on the same images.
    ``saliency-iou-best-held-out``: of the head chosen on one half of the images, scored on the other half.
    ``saliency-iou-oracle``: of the best head of each image. ``saliency-iou-merged``: of the mean map over
    heads. ``saliency-iou-uniform``: of a map that marks everything. ``rollout-iou`` and variants: of rollout
    up to the block, with pooling ``cls``, or ``patch`` without a class token. The best and the held-out best
    of all heads of all blocks are scores of the whole backbone; ``saliency-iou-best-block`` and
    ``saliency-iou-best-head`` identify the best head.
    """

    data: Regions
    config: SaliencyConfig
    configs: ClassVar = {
        "standard": _STANDARD,
        "paper": replace(
            _STANDARD,
            view=IMAGES["paper"].view,
            threshold=Threshold(mass=0.6, margin=0.0, ties=False),
            separate_masks=True,
        ),
    }
    feed = AttentionFeed(from_first=True)
    split = "masks"

    @classmethod
    def reading(cls, entry: DatasetEntry[Any], protocol: EvaluationProtocol) -> DatasetEntry[Any]:
        """All images of COCO with masks, and more images of PartImageNet than are clustered."""
        if isinstance(entry, CocoEntry):
            return replace(entry, first=entry.images)
        if isinstance(entry, PartImageNetEntry):
            most = protocol.config_for(cls.configs).images_per_supercategory
            by_partition = protocol.config_for(REGIONS).by_partition
            return replace(entry, by_partition=by_partition, per_supercategory=most)
        return entry

    @cached_property
    def source(self) -> Source:
        groups = consecutive_groups([image.sample for image in self.data.images], IMAGES_PER_GROUP)
        return Source(f"{self.data.name}/masks", groups, self.config.view)

    @cached_property
    def fingerprint(self) -> str:
        # the repr of regions tells their labels and shapes
        regions = [region for image in self.data.images for region in image.regions]
        return digest("saliency", 2, self.config, regions)

    def measure(self, group: Group, view: View) -> Measurer[AttentionMaps]:
        images = {image.sample.key: image for image in self.data.images}
        shown = [images[sample.key] for sample in group.samples]
        return BatchMeasurer(_Overlaps(shown, view, self.config).reduce)

    def summarise(self, layer: Layer, images: KeptImages) -> Findings:
        objects = images.each("objects")
        (there,) = np.nonzero(objects)
        keys = tuple(np.array(images.keys, object)[there])
        iou, merged, rollout = (images.each(name)[there] for name in ("iou", "merged", "rollout"))
        uniform = objects[there] / np.prod(np.asarray(images.first["cells"][0], np.int64))
        rolled = sum(np.asarray(part, np.float64).sum(axis=0) for part in images.every("rollout_map"))
        outcomes = []
        for mode, pooling in enumerate(POOLINGS[-iou.shape[2] :]):
            heads = iou[:, :, mode]
            tally, reason = self._best(keys, heads)
            if not reason:
                tally.images("saliency-iou-oracle", heads.max(axis=1))
                tally.images("saliency-iou-merged", merged[:, mode])
                tally.heads("saliency-iou", heads)
                tally.images("saliency-iou-uniform", uniform)
            for variant, name in enumerate(self.config.rollouts):
                # attention that overflowed in a block before is in every rollout from there on
                if not reason and mode == 0 and np.isfinite(rollout[:, variant]).all():
                    tally.images(name, rollout[:, variant])
            outcomes.append(LayerOutcome(layer, pooling, tally.outcome(reason)))
        arrays = {
            "iou": iou,
            "best_head": _best_heads(iou) if len(iou) else np.full(iou.shape[2], -1),
            "rollout_iou": rollout[:, 0],
            "rollout_map": rolled / len(images.keys),
            "image": np.array(keys, np.str_),
        }
        return Findings(tuple(outcomes), arrays)

    def report(self, outcomes: Sequence[LayerOutcome], layers: LayerArrays) -> Findings:
        """Findings of each block, and the best of all heads of all blocks for each kind of query token."""
        iou, whole = np.concatenate(layers.every("iou"), axis=1).astype(np.float64), []
        places = [(layer.index, head) for layer in layers for head in range(layers[layer]["iou"].shape[1])]
        for mode, pooling in enumerate(POOLINGS[-iou.shape[2] :]):
            tally, reason = self._best(layers.first["image"].tolist(), iou[:, :, mode])
            if not reason:
                best = int(_best_heads(iou[:, :, mode]))
                tally.number(f"{BEST}-block", places[best][0], 1, "heads")
                tally.number(f"{BEST}-head", places[best][1], 1, "heads")
            whole.append(LayerOutcome(WHOLE_BACKBONE, pooling, tally.outcome(reason)))
        return super().report((*outcomes, *whole), layers)

    def arrays(self, layers: LayerArrays) -> dict[str, NDArray[np.generic]]:
        iou, best = layers.stacked("iou", axis=1), np.stack(layers.every("best_head"))
        lacking = len(POOLINGS) - iou.shape[3]
        return {
            "iou": np.pad(iou, ((0, 0), (0, 0), (0, 0), (lacking, 0)), constant_values=np.nan),
            "best_head": np.pad(best, ((0, 0), (lacking, 0)), constant_values=-1),
            "rollout_iou": layers.stacked("rollout_iou", axis=1),
            "rollout_map": layers.stacked("rollout_map"),
            "image": layers.first["image"],
            "block": layers.blocks,
        }

    def _best(self, keys: Sequence[str], heads: Floats) -> tuple[Tally, str]:
        """Overlaps [images heads] of the best head, held out, too, where there are several; or why none."""
        tally, (splits, seed) = Tally(keys), (self.config.splits, self.config.seed)
        if not len(heads):
            return tally, "no image has an object in its view"
        if not np.isfinite(heads).all():
            return tally, NOT_FINITE
        tally.images(BEST, heads[:, _best_heads(heads)])
        if len(heads) > 1:
            tally.number(f"{BEST}-held-out", held_out_best(heads, splits, seed))
        return tally, ""


def _best_heads(heads: Floats) -> NDArray[np.int64]:
    """The head with the best mean over images of [images heads ...]; of equal ones the first."""
    return np.asarray(heads.mean(axis=0).round(12).argmax(axis=0))


def object_cells(image: RegionImage, view: View, cells: Cells, separate: bool) -> NDArray[np.bool_]:
    """Cells of a grid over an image's view that belong to an object, [rows columns]; all False if none does.

    ``separate`` is that of `SaliencyConfig.separate_masks`.
    """
    masks = [region.mask() for region in image.regions]
    if separate:
        return touched([centre_square(mask) for mask in masks], cells)
    geometry = view.geometry(image.size, image.sample.box)
    edges = [np.linspace(0, side, count + 1) for side, count in zip(geometry.size, cells[::-1], strict=True)]
    columns = geometry.to_image(np.stack([edges[0], np.zeros_like(edges[0])], axis=1))[:, 0]
    rows = geometry.to_image(np.stack([np.zeros_like(edges[1]), edges[1]], axis=1))[:, 1]
    return half_covered(exact_cell_shares(np.maximum.reduce(masks), rows, columns))


class _Overlaps:
    """Reduces the maps of a group to their overlap with objects, and keeps rollouts from block to block."""

    def __init__(self, images: Sequence[RegionImage], view: View, config: SaliencyConfig) -> None:
        self._images, self._view, self._config = images, view, config
        self._truth: dict[tuple[int, ...], Tensor] = {}
        # rollouts [variants images T T] of the images of one batch up to a block, at those positions
        self._rolled, self._positions = torch.empty(0), list[int]()

    def reduce(self, layer: Layer, positions: Sequence[int], maps: AttentionMaps) -> dict[str, Tensor]:
        prefix, attention = maps.prefix_tokens, maps.probabilities
        patch = patch_query_map(attention, prefix)[..., prefix:]
        modes = torch.stack([attention[:, :, 0, prefix:].float(), patch] if prefix else [patch], dim=2)
        heads, kinds = modes.shape[1:3]
        rolled = self._roll(layer, positions, maps)
        # all maps in one tensor: sorting many short rows costs little more than sorting a few
        every = torch.cat([modes.flatten(1, 2), modes.mean(dim=1), rolled], dim=1)
        objects = self._objects(tuple(positions), maps)
        iou = saliency_iou(every, objects, self._config.threshold)
        of_heads, merged, of_rollout = torch.split(iou, [heads * kinds, kinds, rolled.shape[1]], dim=1)
        return {
            "iou": of_heads.view(len(positions), heads, kinds, *of_heads.shape[2:]),
            "merged": merged,
            "rollout": of_rollout,
            "objects": objects.sum(dim=-1),
            "rollout_map": rolled[:, 0].double().sum(dim=0)[None],
            "cells": torch.tensor(maps.cells)[None],
        }

    def _roll(self, layer: Layer, positions: Sequence[int], maps: AttentionMaps) -> Tensor:
        """Rollout maps up to this block, [images variants patches], continued from the previous block.

        The first block starts a new batch. If memory runs out, later blocks receive the batch in pieces of
        consecutive images.
        """
        fused = {fusion: fuse_heads(maps.probabilities, fusion) for fusion in FUSIONS}
        variants, first = self._config.rollouts.values(), layer.index == 1
        if first:
            self._rolled = fused["mean"].new_empty(len(variants), *fused["mean"].shape)
            self._positions = list(positions)
        start = self._positions.index(positions[0])
        states, rollouts = self._rolled[:, start : start + len(positions)], []
        for state, (fusion, share) in zip(states, variants, strict=True):
            rolled = roll(discard(fused[fusion], share), None if first else state, out=state)
            rollouts.append(output_map(rolled, maps.prefix_tokens))
        return torch.stack(rollouts, dim=1)

    def _objects(self, positions: tuple[int, ...], maps: AttentionMaps) -> Tensor:
        """Object cells of some images, [images cells] bool, on the device of the maps."""
        if positions not in self._truth:
            separate, images = self._config.separate_masks, (self._images[index] for index in positions)
            grids = [object_cells(image, self._view, maps.cells, separate) for image in images]
            truth = torch.from_numpy(np.stack([grid.ravel() for grid in grids]))
            self._truth[positions] = truth.to(maps.probabilities.device)
        return self._truth[positions]


def marked(maps: Tensor, rule: Threshold) -> Tensor:
    """Marked cells of a map [... cells], bool; none for a map that is empty or not finite."""
    values = maps.double()
    total = values.sum(dim=-1, keepdim=True)
    values = values / torch.where(total > 0, total, 1)
    ascending, order = values.sort(dim=-1, stable=True)
    strong = ascending.cumsum(dim=-1) > 1 - rule.mass + rule.margin
    if rule.ties:
        weakest = ascending.masked_fill(~strong, torch.inf).amin(dim=-1, keepdim=True)
        return values >= weakest * (1 - ROUNDING)
    return torch.zeros_like(strong).scatter_(-1, order, strong)


def saliency_iou(maps: Tensor, objects: Tensor, rule: Threshold) -> Tensor:
    """IoU of the marked cells of maps [images ... cells] with the object cells [images cells]: [images ...].

    float64 in [0, 1]; 0 for an empty map, NaN for a map that is not finite. An image without an object has no
    value.
    """
    cells = marked(maps, rule)
    truth = objects.view(len(objects), *[1] * (maps.ndim - 2), -1)
    overlap = (cells & truth).sum(dim=-1) / (cells | truth).sum(dim=-1).double()
    return overlap + 0 * maps.sum(dim=-1)  # keeps NaN


def exact_cell_shares(mask: Mask | NDArray[np.uint8], rows: Floats, columns: Floats) -> Shares:
    """Exact share of each cell's area that a mask covers; the area outside the image is not covered.

    The mask is [height width], 0 outside the object. ``rows`` [rows + 1] and ``columns`` [columns + 1] are
    the edges of the cells from top to bottom and from left to right, ascending, in pixels of the mask.
    """
    down, right = overlaps(rows, mask.shape[0]), overlaps(columns, mask.shape[1])
    area = np.diff(rows)[:, None] * np.diff(columns)[None]
    return np.asarray(down @ (mask != 0).astype(np.float64) @ right.T / area)


def half_covered(shares: Shares) -> NDArray[np.bool_]:
    """Cells [rows columns] that are at least half covered; without any, the first most covered cell."""
    exact = shares.round(9)  # so that rounding errors do not break ties
    covered = exact >= 0.5
    if not covered.any() and exact.any():
        covered.flat[np.argmax(exact)] = True
    return np.asarray(covered)


def touched(masks: Sequence[NDArray[np.uint8]], cells: Cells) -> NDArray[np.bool_]:
    """Cells [rows columns] that are not zero in any of several resized masks [height width].

    Each mask, times 255, is resized as an 8-bit image, as in the released code. The support of the bicubic
    filter makes objects wider.
    """
    traced = np.zeros(cells, bool)
    for mask in masks:
        picture = Image.fromarray((mask != 0).astype(np.uint8) * np.uint8(255))
        traced |= np.asarray(picture.resize((cells[1], cells[0]), Image.Resampling.BICUBIC)) > 0
    return traced


def centre_square(mask: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The central square of a mask [height width]; an odd surplus loses one pixel more at the end."""
    side = min(mask.shape)
    top, left = ((length - side) // 2 for length in mask.shape)
    return mask[top : top + side, left : left + side]


def held_out_best(values: Floats, splits: int, seed: int) -> float:
    """Held-out score of the best candidate: chosen on one half of the images, scored on the other half.

    Values are [images candidates]; ties go to the first candidate. One generator (PCG64) draws all halves, a
    permutation for each. With an odd number of images, the half on which the candidate is chosen is smaller.
    The result is the mean over the splits, NaN for fewer than two images.
    """
    count = len(values)
    half = count // 2
    if half == 0:
        return float("nan")
    generator = np.random.Generator(np.random.PCG64(seed))
    first = np.zeros((splits, count))
    for row in first:
        row[generator.permutation(count)[:half]] = 1
    chosen_on = first @ values
    best = (chosen_on / half).round(12).argmax(axis=1)  # so that rounding errors do not break ties
    scored = (values.sum(axis=0) - chosen_on) / (count - half)
    return float(scored[np.arange(splits), best].mean())
