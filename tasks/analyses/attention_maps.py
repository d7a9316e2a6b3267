"""Average attention maps, and attention by offset from the query.

Source: Walmer et al., CVPR 2023, sections 4.1 and 4.2, and its released code. That code sums over images in
the precision of the network; here sums are in double precision. The classes of heads are this package's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from layerboard.tasks.analyses import base
from layerboard.tasks.analyses.metrics import attention
from layerboard.tasks.analyses.metrics.attention import Cells
from layerboard.tasks.framework.base import Findings, Group, LayerOutcome, Outcome
from layerboard.tasks.framework.feeds import Pictured, PicturedFeed
from layerboard.tasks.framework.measurers import BatchMeasurer, Measurer
from layerboard.tasks.metrics.arrays import Floats
from layerboard.zoo.features import AttentionMaps
from layerboard.zoo.spec import Layer
from layerboard.zoo.view.views import View

SAMPLED = ("sample_cls", "sample_rollout", "sample_image")  # arrays kept of single images
LARGEST_SIDE = 14 * 16  # images up to this side are kept whole; larger ones are subsampled


HeadClass = Literal["strict", "offset", "axial", "soft", "global"]


@dataclass(frozen=True, slots=True)
class MapConfig:
    """Settings of the average maps."""

    normalised: bool  # whether aligned maps are first divided by their sum
    samples: int  # number of images with single maps, evenly spaced in dataset order


@dataclass(frozen=True, slots=True)
class HeadOffset:
    """Where a head attends, relative to the query.

    The peak is the offset (down, right) in cells with the most attention among the near ones; ties go to the
    nearest, then the upper, then the left one. The name is the first that applies. ``strict``: half of the
    attention stays at the query. ``offset``: half is in the window around a peak elsewhere, and a query that
    can reach both the peak and the opposite offset attends to the peak at least twice as much. ``axial``:
    half is in the row or the column of the query, and at least twice as much as in the other. ``soft``: half
    is in the window. ``global``: none of these.
    """

    peak: tuple[int, int]
    local_mass: float  # share of the attention in a window around the peak
    name: HeadClass


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
    version = 2

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
        return BatchMeasurer(_Maps(frozenset(sampled)).reduce, joins)

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
            arrays["sample_heads"] = sampled.first["sample_heads"][0]
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

    def _tally_patches(self, tally: base.Tally, images: base.KeptImages, aligned: Floats) -> list[HeadOffset]:
        """Spread over queries and heads, and offsets of average maps [heads down right], which it gives."""
        of_heads = [head_offset(head) for head in aligned]
        queries, heads = images.each("std-over-queries"), images.each("std-over-heads")
        if np.isfinite(queries).all():
            tally.heads("std-over-queries", queries)
        if np.isfinite(heads).all():
            tally.images("std-over-heads", heads)
        offset = average_offset(aligned, normalised=self.config.normalised)
        tally.whole("offset", np.linalg.norm(offset, axis=-1))
        extent = np.maximum(np.asarray(images.first["cells"], np.int64) - 1, 1)
        tally.whole("offset-unit", np.linalg.norm(offset / extent, axis=-1))
        tally.whole("local-mass", np.array([head.local_mass for head in of_heads]))
        tally.whole("peak-offset", np.hypot(*np.transpose([head.peak for head in of_heads])))
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
        heads = layers.stacked("sample_heads")  # [blocks heads patches]
        arrays["sample_heads"] = heads.reshape(*heads.shape[:2], *layers.first["cells"].tolist())
        for name in ("sample_cls", "sample_rollout"):
            single = layers.stacked(name, axis=1)
            arrays[name] = single.reshape(*single.shape[:2], *layers.first["cells"].tolist())
        return arrays | {"sample_of": np.array("cls" if "cls_map" in names else "patch")}


class _Maps:
    """Reduces the maps of a group to sums over its images, and keeps single maps of some images."""

    def __init__(self, sampled: frozenset[int]) -> None:
        self._sampled = sampled
        self._offset_index = cache(offset_index)
        self._rolled: dict[int, Tensor] = {}

    def reduce(self, layer: Layer, positions: Sequence[int], portion: Pictured) -> dict[str, Tensor]:
        maps = portion[0]
        probabilities, prefix = maps.probabilities, maps.prefix_tokens
        index = self._offset_index(maps.cells, probabilities.device)
        arrays = {"cls_map": probabilities[:, :, 0].double().sum(dim=0)} if prefix else {}
        arrays |= {
            "cells": torch.tensor(maps.cells),
            "patch_map": attention.patch_query_map(probabilities, prefix).double().sum(dim=0),
            "aaam": aligned_map(maps.patches.sum(dim=0), index, maps.cells),
            "std-over-queries": attention.patch_deviation(probabilities, prefix, "queries"),
            "std-over-heads": attention.patch_deviation(probabilities, prefix, "heads"),
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
        each = [maps.probabilities[row : row + 1] for row in rows]  # views: indices would copy all queries
        heads = [image[:, :, 0, prefix:] if prefix else attention.patch_query_map(image, 0) for image in each]
        # a view would keep the maps of all queries in memory until the group ends
        single = {
            "sample": torch.tensor(chosen),
            "sample_cls": asked.clone(),
            "sample_heads": torch.cat(heads).float(),
            "sample_rollout": attention.output_map(rolled, prefix).clone(),
        }
        if layer.index == 1:
            step = -(-max(pixels.shape[-2:]) // LARGEST_SIDE)
            pictures = torch.stack([pixels[row, :, ::step, ::step] for row in rows])
            single["sample_image"] = pictures.permute(0, 2, 3, 1)
        return single


ROUNDING = 1e-6  # numbers with a smaller relative difference count as equal: they are sums in float32
LOCAL_CELLS = 7  # a local window extends to each side by the grid's shorter side divided by this


def offset_index(cells: Cells, device: torch.device | None = None) -> Tensor:
    """Index in a flattened aligned map of each (query, key) pair of cells, int64 [cells * cells]."""
    (height, width) = cells
    rows = torch.arange(height, device=device).repeat_interleave(width)
    columns = torch.arange(width, device=device).repeat(height)
    down = rows[None] - rows[:, None] + height - 1
    right = columns[None] - columns[:, None] + width - 1
    return (down * (2 * width - 1) + right).flatten()


def aligned_map(attention: Tensor, index: Tensor, cells: Cells) -> Tensor:
    """Attention [heads patches patches] by offset from the query, averaged over the queries, float64.

    Each row of the attention sums to 1 or 0, or is a sum of such rows over images; ``index`` is that of
    `offset_index`. The map is [heads, 2 * rows - 1, 2 * columns - 1]; the offset ``dy`` down and ``dx`` to
    the right is at ``[dy + rows - 1, dx + columns - 1]``. It sums to 1, or less if some queries do not attend
    to patches.
    """
    shape = (2 * cells[0] - 1, 2 * cells[1] - 1)
    flat = attention.flatten(1).double()
    sums = flat.new_zeros(len(flat), shape[0] * shape[1]).index_add_(1, index, flat)
    return (sums / (cells[0] * cells[1])).view(-1, *shape)


def average_offset(aligned: Floats, *, normalised: bool) -> Floats:
    """Mean offset in cells (down, right), [... 2], of aligned maps [... rows columns].

    It equals the centre of mass of the attention that patches receive, minus the grid's centre, whatever
    single queries do: for a head that attends one step to the right with wrapping it is 0. With
    ``normalised``, maps are first divided by their sums, as in the released code; this matters if some
    queries do not attend to patches. NaN for an empty map.
    """
    down, right = _offsets(aligned.shape[-2:])
    mean = np.stack([(aligned * down).sum(axis=(-2, -1)), (aligned * right).sum(axis=(-2, -1))], axis=-1)
    total = aligned.sum(axis=(-2, -1))[..., None]
    if not normalised:
        return np.asarray(mean)
    return np.asarray(np.divide(mean, total, out=np.full_like(mean, np.nan), where=total > 0))


def head_offset(aligned: Floats) -> HeadOffset:
    """Where a head attends, from its aligned map [2 * rows - 1, 2 * columns - 1] averaged over images.

    The window extends from the peak to each side by a seventh of the grid's shorter side (rounded, at least
    one cell); the peak is searched up to twice that far from the query. Uniform attention has a local mass of
    0.107 on a 14 x 14 grid.
    """
    rows, columns = ((side + 1) // 2 for side in aligned.shape)
    reach = max(1, round(min(rows, columns) / LOCAL_CELLS))
    down, right = _offsets(aligned.shape)
    peak = _peak(aligned, np.maximum(abs(down), abs(right)) <= 2 * reach)
    window = np.maximum(abs(down - peak[0]), abs(right - peak[1])) <= reach
    local = float(aligned[window].sum())
    return HeadOffset(peak, local, _name(aligned, peak, local))


def _peak(aligned: Floats, near: NDArray[np.bool_]) -> tuple[int, int]:
    best = aligned[near].max()
    places = np.argwhere(near & (aligned >= best - ROUNDING * abs(best)))
    offsets = ((int(down), int(right)) for down, right in places - np.array(aligned.shape) // 2)
    return min(offsets, key=lambda offset: (offset[0] ** 2 + offset[1] ** 2, *offset))


def _name(aligned: Floats, peak: tuple[int, int], local: float) -> HeadClass:
    middle = (aligned.shape[0] // 2, aligned.shape[1] // 2)
    row, column = float(aligned[middle[0]].sum()), float(aligned[:, middle[1]].sum())
    rows, columns = ((side + 1) // 2 for side in aligned.shape)
    down, right = _offsets(aligned.shape)
    # averaged only over the queries for which an offset is inside the grid
    fair = aligned * (rows * columns) / ((rows - abs(down)) * (columns - abs(right)))
    here, opposite = (fair[middle[0] + sign * peak[0], middle[1] + sign * peak[1]] for sign in (1, -1))
    if _reaches(aligned[middle], 0.5):
        return "strict"
    if peak != (0, 0) and _reaches(local, 0.5) and _reaches(here, 2 * opposite):
        return "offset"
    lines = ((row, column), (column, row))
    if any(_reaches(line, 0.5) and _reaches(line, 2 * other) for line, other in lines):
        return "axial"
    return "soft" if _reaches(local, 0.5) else "global"


def _reaches(value: float, least: float) -> bool:
    return bool(value >= least - ROUNDING * abs(least))


def _offsets(shape: tuple[int, ...]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Offsets down [rows 1] and to the right [1 columns] of an aligned map."""
    down, right = (np.arange(side, dtype=np.int64) - side // 2 for side in shape)
    return down[:, None], right[None]
