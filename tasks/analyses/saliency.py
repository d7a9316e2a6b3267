"""Saliency: whether attention heads, and attention through all layers, mark the annotated objects.

Sources: Walmer et al., CVPR 2023, section 4.4 and appendix C.3 (heads); Abnar and Zuidema, ACL 2020, and
Dosovitskiy et al., ICLR 2021, appendix D.7 (rollout), which do not score it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tasks.analyses.saliency_findings import find
from tasks.base import Findings, Group, Measurements, Measurer, Source, digest
from tasks.datasets.coco import RegionImage, Regions
from tasks.feeds import ATTENTION_IN_TURN, AttentionFeed
from tasks.metrics.attention import Cells
from tasks.metrics.attention_maps import patch_query_map
from tasks.metrics.rollout import Fusion, discard, fuse_heads, output_map, roll
from tasks.metrics.saliency import (
    Threshold,
    cell_shares,
    centre_square,
    half_covered,
    saliency_iou,
    touched,
)
from tasks.sources import chunks
from zoo.features import AttentionMaps
from zoo.spec import Layer
from zoo.view.views import View

IMAGES_PER_GROUP = 32
"""Images whose rollouts may be in memory together; they are stored together, too."""

FUSIONS: tuple[Fusion, ...] = ("mean", "max", "min")


@dataclass(frozen=True, slots=True)
class SaliencyRule:
    """The numbers of saliency.

    Attributes:
        view: How images with masks are shown.
        threshold: Which cells a map marks.
        separate_masks: Whether each mask of an image is shrunk to the grid on its own, bicubic, and counts
            where it leaves a trace (`touched`); otherwise cells count of which at least half is covered by
            the masks together (`half_covered`).
        splits: Random halves of the images on which a head is chosen and scored on the other half.
        seed: Of these.
        discard: Share of the smallest entries that a variant of rollout discards.
        images_per_supercategory: How many images of the part dataset are sampled.
    """

    view: View
    threshold: Threshold
    separate_masks: bool
    splits: int
    seed: int
    discard: float
    images_per_supercategory: int

    @property
    def rollouts(self) -> dict[str, tuple[Fusion, float]]:
        """Variants of rollout by their metric: how heads are fused, and what share is discarded."""
        return {
            f"rollout-iou{'' if fusion == 'mean' else '-' + fusion}{ending}": (fusion, share)
            for ending, share in (("", 0.0), ("-discard", self.discard))
            for fusion in FUSIONS
        }


@dataclass(frozen=True)
class SaliencyProblem:
    """Overlap of attention maps with annotated objects or parts.

    Attributes:
        data: Images with masks.
        rule: The numbers.
    """

    data: Regions
    rule: SaliencyRule

    @cached_property
    def source(self) -> Source:
        """The images with masks, some together."""
        groups = chunks([image.sample for image in self.data.images], IMAGES_PER_GROUP)
        return Source(f"{self.data.name}/masks", groups, self.rule.view)

    @cached_property
    def fingerprint(self) -> str:
        """Digest of the rule and of the regions, whose repr tells their labels and shapes."""
        regions = [region for image in self.data.images for region in image.regions]
        return digest("saliency", 1, self.rule, regions)

    @property
    def feed(self) -> AttentionFeed:
        """Measurers are fed attention probabilities of all blocks, from the first on."""
        return ATTENTION_IN_TURN

    @cached_property
    def images(self) -> dict[str, RegionImage]:
        """The images with masks, by their key."""
        return {image.sample.key: image for image in self.data.images}

    def measure(self, group: Group, view: View) -> Measurer[AttentionMaps]:
        """What scores the maps of some images."""
        images = tuple(self.images[sample.key] for sample in group.samples)
        return _SaliencyMeasurer(_Objects(images, view, self.rule.separate_masks), self.rule)

    def findings(self, measured: Mapping[Layer, Sequence[Measurements]]) -> Findings:
        """Overlaps of the maps of each block, each head and all (`tasks.analyses.saliency_findings.find`)."""
        return find(self.source, self.rule.rollouts, (self.rule.splits, self.rule.seed), measured)


def object_cells(image: RegionImage, view: View, cells: Cells, separate: bool) -> NDArray[np.bool_]:
    """Cells of a grid over an image's view that belong to an object, [rows columns]; all False if none does.

    Args:
        image: The image and its masks.
        view: How it is shown.
        cells: Rows and columns of the grid.
        separate: The rule, as in `SaliencyRule.separate_masks`.
    """
    masks = [region.mask() for region in image.regions]
    if separate:
        return touched([centre_square(mask) for mask in masks], cells)
    geometry = view.geometry(image.size, image.sample.box)
    edges = [np.linspace(0, side, count + 1) for side, count in zip(geometry.size, cells[::-1], strict=True)]
    columns = geometry.to_image(np.stack([edges[0], np.zeros_like(edges[0])], axis=1))[:, 0]
    rows = geometry.to_image(np.stack([np.zeros_like(edges[1]), edges[1]], axis=1))[:, 1]
    return half_covered(cell_shares(np.maximum.reduce(masks), rows, columns))


@dataclass(frozen=True)
class _Objects:
    """The masks of some images."""

    images: tuple[RegionImage, ...]
    view: View
    separate: bool

    def cells(self, cells: Cells) -> Tensor:
        """Where the objects are, [images cells] bool."""
        grids = [object_cells(image, self.view, cells, self.separate).ravel() for image in self.images]
        return torch.from_numpy(np.stack(grids))


class _SaliencyMeasurer:
    """Keeps the overlap of each map; the maps are dropped, and rollouts go on from block to block."""

    def __init__(self, objects: _Objects, rule: SaliencyRule) -> None:
        self._objects = objects
        self._rule = rule
        self._truth: Tensor | None = None
        self._on_device: dict[tuple[int, ...], Tensor] = {}
        self._rolled: _Rolled = _Rolled([], torch.empty(0))
        self._kept: dict[Layer, list[dict[str, Tensor]]] = {}

    def update(self, layer: Layer, positions: Sequence[int], maps: AttentionMaps) -> None:
        prefix, attention = maps.prefix_tokens, maps.probabilities
        patch = patch_query_map(attention, prefix)[..., prefix:]
        modes = torch.stack([attention[:, :, 0, prefix:].float(), patch] if prefix else [patch], dim=2)
        heads, kinds = modes.shape[1:3]
        rolled = self._roll(layer, positions, maps)
        # all maps in one tensor: sorting many short rows costs little more than sorting a few
        every = torch.cat([modes.flatten(1, 2), modes.mean(dim=1), rolled], dim=1)
        objects = self._objects_of(tuple(positions), maps)
        iou = saliency_iou(every, objects, self._rule.threshold)
        of_heads, merged, of_rollout = torch.split(iou, [heads * kinds, kinds, rolled.shape[1]], dim=1)
        found = {
            "position": torch.tensor(positions),
            "iou": of_heads.view(len(positions), heads, kinds, *of_heads.shape[2:]),
            "merged": merged,
            "rollout": of_rollout,
            "objects": objects.sum(dim=-1),
            "rollout_map": rolled[:, 0].double().sum(dim=0)[None],
            "cells": torch.tensor(maps.cells)[None],
        }
        self._kept.setdefault(layer, []).append(found)

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        parts = self._kept.pop(layer, [])
        return {name: torch.cat([one[name] for one in parts]) for name in parts[0]} if parts else {}

    def _roll(self, layer: Layer, positions: Sequence[int], maps: AttentionMaps) -> Tensor:
        """Rollout maps up to this block, [images variants patches]; each goes on from the block before."""
        fused = {fusion: fuse_heads(maps.probabilities, fusion) for fusion in FUSIONS}
        first = layer.index == 1
        if first:
            self._rolled = _Rolled.room(positions, len(self._rule.rollouts), fused["mean"])
        found = []
        for state, (fusion, share) in zip(
            self._rolled.of(positions), self._rule.rollouts.values(), strict=True
        ):
            rolled = roll(discard(fused[fusion], share), None if first else state, identity=True, out=state)
            found.append(output_map(rolled, maps.prefix_tokens))
        return torch.stack(found, dim=1)

    def _objects_of(self, positions: tuple[int, ...], maps: AttentionMaps) -> Tensor:
        """Where the objects of some images are, [images cells] bool, on the device of the maps."""
        if self._truth is None:
            self._truth = self._objects.cells(maps.cells)
        if positions not in self._on_device:
            self._on_device[positions] = self._truth[list(positions)].to(maps.probabilities.device)
        return self._on_device[positions]


@dataclass(frozen=True, slots=True)
class _Rolled:
    """Rollouts of the images of one batch up to a block, which the next block replaces in place.

    Images of the batch before are through when a first block is shown. Where memory runs out, later blocks
    see the batch in pieces, one after the other: consecutive images of it.

    Attributes:
        positions: Places of the images in their group.
        states: [variants images T T].
    """

    positions: Sequence[int]
    states: Tensor

    @classmethod
    def room(cls, positions: Sequence[int], variants: int, fused: Tensor) -> "_Rolled":
        """Room for the rollouts of some images, of the shape of their attention [images T T]."""
        return cls(list(positions), fused.new_empty(variants, *fused.shape))

    def of(self, positions: Sequence[int]) -> Tensor:
        """Those of consecutive images, [variants images T T]; a view."""
        start = self.positions.index(positions[0])
        assert self.positions[start : start + len(positions)] == list(positions)
        return self.states[:, start : start + len(positions)]
