"""Average attention maps, and attention by offset from the query.

Source: Walmer et al., CVPR 2023, sections 4.1 and 4.2, and its released code. That code sums over images in
the precision of the network; here sums are in double precision.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from layerboard.tasks.analyses import base
from layerboard.tasks.analyses.metrics import attention, offsets
from layerboard.tasks.framework.base import Findings, Group, LayerOutcome, Measurer, Outcome
from layerboard.tasks.framework.feeds import Pictured, PicturedFeed
from layerboard.tasks.metrics.arrays import Floats
from layerboard.zoo.features import AttentionMaps
from layerboard.zoo.spec import Layer
from layerboard.zoo.view.views import View

SAMPLED = ("sample_cls", "sample_rollout", "sample_image")  # arrays kept of single images
LARGEST_SIDE = 14 * 16  # images up to this side are kept whole; larger ones are subsampled


@dataclass(frozen=True, slots=True)
class MapConfig:
    """Settings of the average maps."""

    normalised: bool  # whether aligned maps are first divided by their sum
    samples: int  # number of images with single maps, evenly spaced in dataset order


class AttentionMapsTask(base.ImageAnalysis[Pictured]):
    """Average attention maps of the class token and the patches of the probe images, and offsets of heads.

    Scores for the poolings ``cls`` (if there is a class token) and ``patch``: ``map-centre-distance`` of the
    average map, on the unit square. For ``patch`` also: ``std-over-queries`` and ``std-over-heads``
    (undefined for one head). From the average map by offset: ``offset``, the length of the mean offset in
    cells; ``offset-unit``, the same with the grid scaled so that offsets span [-1, 1], as in the released
    code; ``local-mass`` and ``peak-offset`` in cells (`HeadOffset`); and, for a layer, ``offset-heads``, the
    share of its heads of the class ``offset``.
    """

    config: MapConfig
    configs: ClassVar = {
        "standard": MapConfig(normalised=False, samples=6),
        "paper": MapConfig(normalised=True, samples=6),
    }
    feed = PicturedFeed(from_first=True)

    @cached_property
    def sampled(self) -> frozenset[str]:
        """Keys of the images with single maps."""
        samples = self.source.samples
        order = np.argsort(self.data.probe_order) if len(self.data.probe_order) else np.arange(len(samples))
        count = min(self.config.samples, len(samples))
        # the middles of equal parts of the dataset order, which is sorted by class
        middles = (2 * np.arange(count) + 1) * len(samples) // (2 * max(count, 1))
        return frozenset(samples[index].key for index in order[middles].tolist())

    def measure(self, group: Group, view: View) -> Measurer[Pictured]:
        sampled = (position for position, sample in enumerate(group.samples) if sample.key in self.sampled)
        joins = dict.fromkeys(("cls_map", "patch_map", "aaam"), torch.add) | {"cells": base.first}
        return base.BatchMeasurer(_Maps(frozenset(sampled)).reduce, joins)

    def summarise(self, layer: Layer, images: base.KeptImages) -> Findings:
        poolings = [name for name in ("cls", "patch") if f"{name}_map" in images.first]
        names = [*(f"{pooling}_map" for pooling in poolings), "aaam"]
        maps, cells = {name: images.total(name) / len(images.keys) for name in names}, images.first["cells"]
        arrays = {"cells": cells, "images": np.array(len(images.keys)), **maps}
        sampled = images.having("sample")
        if sampled.groups:
            arrays["sample"] = np.array(sampled.keys_at("sample"))
            kept = [name for name in SAMPLED if name in sampled.first]
            arrays |= {name: np.concatenate(sampled.every(name)) for name in kept}
        if not all(np.isfinite(average).all() for average in maps.values()):
            heads = len(maps["aaam"])
            outcomes = dict.fromkeys(poolings, Outcome((), empty=base.NOT_FINITE))
            arrays |= {"peak": np.zeros((heads, 2), np.int64), "class": np.array([""] * heads)}
        else:
            tallies = {pooling: base.Tally(images.keys) for pooling in poolings}
            rows, columns = cells.tolist()
            for pooling, tally in tallies.items():
                patches = maps[f"{pooling}_map"][:, -rows * columns :]
                tally.whole("map-centre-distance", attention.centre_distance(patches, (rows, columns)))
            of_heads = self._tally_patches(tallies["patch"], images, maps["aaam"])
            outcomes = {pooling: tally.outcome() for pooling, tally in tallies.items()}
            arrays["peak"] = np.array([head.peak for head in of_heads], np.int64)
            arrays["class"] = np.array([str(head.name) for head in of_heads])
        return Findings(tuple(LayerOutcome(layer, *outcome) for outcome in outcomes.items()), arrays)

    def _tally_patches(
        self, tally: base.Tally, images: base.KeptImages, aligned: Floats
    ) -> list[offsets.HeadOffset]:
        """Spread over queries and heads, and offsets of average maps [heads down right], which it gives."""
        of_heads = [offsets.head_offset(head) for head in aligned]
        queries, heads = images.each("std-over-queries"), images.each("std-over-heads")
        if np.isfinite(queries).all():
            tally.heads("std-over-queries", queries)
        if np.isfinite(heads).all():
            tally.images("std-over-heads", heads)
        offset = offsets.average_offset(aligned, normalised=self.config.normalised)
        tally.whole("offset", np.linalg.norm(offset, axis=-1))
        extent = np.maximum(np.asarray(images.first["cells"], np.int64) - 1, 1)
        tally.whole("offset-unit", np.linalg.norm(offset / extent, axis=-1))
        tally.whole("local-mass", np.array([head.local_mass for head in of_heads]))
        tally.whole("peak-offset", np.array([head.peak_offset for head in of_heads]))
        sideways = [head.name == "offset" for head in of_heads]
        tally.number("offset-heads", float(np.mean(sideways)), len(sideways), "heads")
        return of_heads

    def arrays(self, layers: base.LayerArrays) -> dict[str, base.Array]:
        names = [name for name in ("cls_map", "patch_map", "aaam") if name in layers.first]
        arrays: dict[str, base.Array] = {name: layers.stacked(name) for name in names}
        arrays |= {name: np.stack(layers.every(name)) for name in ("peak", "class")}
        arrays |= {"block": layers.blocks, "images": layers.first["images"]}
        if "sample_image" not in layers.first:
            return arrays
        arrays |= {name: layers.first[name] for name in ("sample", "sample_image")}
        for name in ("sample_cls", "sample_rollout"):
            single = layers.stacked(name, axis=1)
            arrays[name] = single.reshape(*single.shape[:2], *layers.first["cells"].tolist())
        return arrays | {"sample_of": np.array("cls" if "cls_map" in names else "patch")}


class _Maps:
    """Reduces the maps of a group to sums over its images, and keeps single maps of some images."""

    def __init__(self, sampled: frozenset[int]) -> None:
        self._sampled = sampled
        self._offset_index = cache(offsets.offset_index)
        self._rolled: dict[int, Tensor] = {}

    def reduce(self, layer: Layer, positions: Sequence[int], portion: Pictured) -> dict[str, Tensor]:
        maps = portion[0]
        probabilities, prefix = maps.probabilities, maps.prefix_tokens
        index = self._offset_index(maps.cells, probabilities.device)
        arrays = {"cls_map": probabilities[:, :, 0].double().sum(dim=0)} if prefix else {}
        arrays |= {
            "cells": torch.tensor(maps.cells),
            "patch_map": attention.patch_query_map(probabilities, prefix).double().sum(dim=0),
            "aaam": offsets.aligned_map(maps.patches.sum(dim=0), index, maps.cells),
            "std-over-queries": attention.deviation_over_queries(probabilities, prefix),
            "std-over-heads": attention.deviation_over_heads(probabilities, prefix),
        }
        rows = [row for row, position in enumerate(positions) if position in self._sampled]
        return arrays | (self._single(layer, positions, rows, *portion) if rows else {})

    def _single(
        self, layer: Layer, positions: Sequence[int], rows: list[int], maps: AttentionMaps, pixels: Tensor
    ) -> dict[str, Tensor]:
        """Maps of the images in these rows, with their rollout up to this block."""
        prefix, chosen = maps.prefix_tokens, [positions[row] for row in rows]
        fused = torch.stack([attention.fuse_heads(maps.probabilities[row], "mean") for row in rows])
        before = torch.stack([self._rolled[position] for position in chosen]) if layer.index > 1 else None
        rolled = attention.roll(fused, before)
        self._rolled |= dict(zip(chosen, rolled, strict=True))
        asked = fused[:, 0, prefix:] if prefix else fused.mean(dim=-2)
        # a view would keep the maps of all queries in memory until the group ends
        single = {
            "sample": torch.tensor(chosen),
            "sample_cls": asked.clone(),
            "sample_rollout": attention.output_map(rolled, prefix).clone(),
        }
        if layer.index == 1:
            step = -(-max(pixels.shape[-2:]) // LARGEST_SIDE)
            pictures = torch.stack([pixels[row, :, ::step, ::step] for row in rows])
            single["sample_image"] = pictures.permute(0, 2, 3, 1)
        return single
