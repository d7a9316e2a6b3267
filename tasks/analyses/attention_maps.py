"""Average attention maps, and attention by offset from the query.

Source: Walmer et al., CVPR 2023, sections 4.1 and 4.2, and its released code. That sums in the
precision of the network; sums over images are in double precision here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from tasks.analyses.map_findings import find
from tasks.base import Findings, Group, Measurements, Measurer, Source, digest
from tasks.feeds import PICTURED, Pictured, PicturedFeed
from tasks.metrics.attention_maps import (
    deviation_over_heads,
    deviation_over_queries,
    patch_query_map,
)
from tasks.metrics.offsets import aligned_map, offset_index
from tasks.metrics.rollout import fuse_heads, output_map, roll
from tasks.sources import ProbeSources
from zoo.features import AttentionMaps
from zoo.spec import Layer
from zoo.view.views import View

LARGEST_SIDE = 14 * 16
"""Rows and columns of an image up to which it is kept whole as a picture; of a larger one every second is."""


@dataclass(frozen=True, slots=True)
class MapRule:
    """The numbers of the average maps.

    Attributes:
        normalised: Whether an aligned map is divided by its sum before its mean offset is taken, which
            matters where patches give nothing to patches.
        samples: Images of which maps are kept one by one, spread evenly over the dataset's order.
    """

    normalised: bool
    samples: int


@dataclass(frozen=True)
class AttentionMapsProblem:
    """Where the class token and the patches of the probe images look on average, and to which side.

    Attributes:
        where: The images.
        rule: The numbers.
    """

    where: ProbeSources
    rule: MapRule

    @property
    def source(self) -> Source:
        """The source that is looked at: the probe subset."""
        return self.where.probe

    @property
    def feed(self) -> PicturedFeed:
        """Measurers are fed attention probabilities and pixels."""
        return PICTURED

    @cached_property
    def fingerprint(self) -> str:
        """Digest of its numbers: it has no ground truth."""
        return digest("attention-maps", 1, self.rule)

    @cached_property
    def sampled(self) -> frozenset[str]:
        """Keys of the images of which single maps are kept."""
        order = np.argsort(self.where.probe_order) if len(self.where.probe_order) else None
        samples = self.source.samples
        places = np.arange(len(samples)) if order is None else order
        count = min(self.rule.samples, len(samples))
        # the middles of equal stretches of the dataset's order, in which classes follow each other
        middles = (2 * np.arange(count) + 1) * len(samples) // (2 * max(count, 1))
        return frozenset(samples[place].key for place in places[middles].tolist())

    def measure(self, group: Group, view: View) -> Measurer[Pictured]:
        """A measurer of some images."""
        kept = (place for place, sample in enumerate(group.samples) if sample.key in self.sampled)
        return _MapMeasurer(frozenset(kept))

    def findings(self, measured: Mapping[Layer, Sequence[Measurements]]) -> Findings:
        """What the average maps of each block say (`tasks.analyses.map_findings.find`)."""
        return find(self.source, self.rule.normalised, measured)


@dataclass
class _Sums:
    """What is kept of one block: sums over the images, numbers of each, and the maps of some."""

    positions: list[int] = field(default_factory=list)
    total: dict[str, Tensor] = field(default_factory=dict)
    each: dict[str, list[Tensor]] = field(default_factory=dict)
    sampled: list[int] = field(default_factory=list)
    cells: tuple[int, int] = (0, 0)

    def add(self, name: str, value: Tensor) -> None:
        self.total[name] = self.total[name] + value if name in self.total else value

    def append(self, name: str, value: Tensor) -> None:
        self.each.setdefault(name, []).append(value)


class _MapMeasurer:
    """Keeps sums over the images of each block, and the maps of some images; the maps are dropped."""

    def __init__(self, sampled: frozenset[int]) -> None:
        self._sampled = sampled
        self._kept: dict[Layer, _Sums] = {}
        self._index: dict[torch.device, Tensor] = {}
        self._rolled: dict[int, Tensor] = {}

    def update(self, layer: Layer, positions: Sequence[int], portion: Pictured) -> None:
        maps = portion.maps
        sums = self._kept.setdefault(layer, _Sums())
        sums.positions += positions
        sums.cells = maps.cells
        prefix, attention = maps.prefix_tokens, maps.probabilities
        if prefix:
            sums.add("cls_map", attention[:, :, 0].double().sum(dim=0))
        sums.add("patch_map", patch_query_map(attention, prefix).double().sum(dim=0))
        index = self._places(maps)
        sums.add("aaam", aligned_map(maps.patches.sum(dim=0), index, maps.cells))
        sums.append("std-over-queries", deviation_over_queries(attention, prefix))
        sums.append("std-over-heads", deviation_over_heads(attention, prefix))
        rows = [row for row, position in enumerate(positions) if position in self._sampled]
        if rows:
            sums.sampled += [positions[row] for row in rows]
            self._sample(layer, sums, [positions[row] for row in rows], rows, portion)

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        sums = self._kept.pop(layer, None)
        if sums is None:
            return {}
        kept = {"position": torch.tensor(sums.positions), "cells": torch.tensor(sums.cells), **sums.total}
        if sums.sampled:
            kept["sample"] = torch.tensor(sums.sampled)
        return kept | {name: torch.cat(parts) for name, parts in sums.each.items()}

    def _sample(
        self, layer: Layer, sums: _Sums, positions: Sequence[int], rows: list[int], portion: Pictured
    ) -> None:
        """Maps of single images; their rollout goes on from block to block."""
        prefix = portion.maps.prefix_tokens
        fused = torch.stack([fuse_heads(portion.maps.probabilities[row], "mean") for row in rows])
        before = None
        if layer.index > 1:
            before = torch.stack([self._rolled[position] for position in positions])
        rolled = roll(fused, before, identity=True)
        self._rolled |= dict(zip(positions, rolled, strict=True))
        asked = fused[:, 0, prefix:] if prefix else fused.mean(dim=-2)
        # a view would keep maps of all queries until the group ends
        sums.append("sample_cls", asked.clone())
        sums.append("sample_rollout", output_map(rolled, prefix).clone())
        if layer.index == 1:
            step = -(-max(portion.pixels.shape[-2:]) // LARGEST_SIDE)
            pictures = torch.stack([portion.pixels[row, :, ::step, ::step] for row in rows])
            sums.append("sample_image", pictures.permute(0, 2, 3, 1))

    def _places(self, maps: AttentionMaps) -> Tensor:
        device = maps.probabilities.device
        if device not in self._index:
            self._index[device] = offset_index(maps.cells, device)
        return self._index[device]
