"""Segmentation by a vote of pixels: each memory cell stores the label of each of its pixels.

Source: the k-NN segmentation of CAPI (Darcet et al., 2025; facebookresearch/capi, commit 98b4fa1). With all
cells in the memory it is that evaluation, except for the choice of held-out images; with fewer cells the
scores differ.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from layerboard.tasks.datasets.scenes import Scene, every_value
from layerboard.tasks.framework.base import FINITE, Group, Measurements, Over, digest
from layerboard.tasks.framework.measurers import ComparingMeasurer, Grid, Grids, Measurer, MemoryMeasurer
from layerboard.tasks.metrics.arrays import VOID, Floats, Integers, Labels, Mask
from layerboard.tasks.metrics.cell_labels import cell_counts, cell_draws, chosen_cells
from layerboard.tasks.metrics.memory_search import MemoryNeighbours, most_similar
from layerboard.tasks.segmentation.in_context import MemoryOf, Read, confusion_entries, memory_of_layers
from layerboard.tasks.segmentation.overlaps import confusion, mean_iou_of_labels
from layerboard.tasks.segmentation.shown import (
    MEMORY_FIRST,
    LabelledImages,
    LearntImages,
    shown_labels,
    signatures,
)
from layerboard.zoo.spec import Layer
from layerboard.zoo.view.views import Stretch, View

NO_MEMORY = "no cell of the images to learn from shows mostly a class"
TOO_FEW = "the number of neighbours is chosen on a part of the images to learn from, and there is one alone"

VOTES = 1 << 24  # labels of neighbours in memory at a time

Distance = Literal["cosine", "L2"]


@dataclass(frozen=True, slots=True)
class CapiConfig:
    """Settings of the vote of pixels."""

    view: View  # view of whole images
    # candidates for the vote, which is chosen for each layer on held-out training images
    ks: tuple[int, ...]  # numbers of neighbours
    distances: tuple[Distance, ...]
    held_out: int  # one in this many training images is held out; at least one
    seed: int  # of the draws of these images and of the remembered cells


@dataclass(frozen=True, slots=True)
class Pixels:
    """Rule for the cells of an image that are remembered with their pixel labels."""

    classes: int  # number of labels, from 0, without 255 for none
    ignored: frozenset[int]  # ignored labels
    held_out: Collection[str]  # names of the images on which the vote is chosen
    most: int  # largest number of cells of an image
    seed: int  # of the draw of cells

    def of(self, mask: Labels, grid: Grid, key: str) -> tuple[Tensor, Tensor]:
        """Ascending indices of the kept cells, and the labels of their pixels [cells pixels].

        A cell can be kept if its most frequent label is not ignored; in held-out images, if any label is not.
        """
        labels = pixel_labels(mask, grid).reshape(grid[0] * grid[1], -1)
        counts = cell_counts(self.judged(mask), grid, self.classes).reshape(len(labels), -1)
        shows = counts[:, :-1].any(axis=1)
        usable = np.asarray(shows if key in self.held_out else shows & judged_cells(labels, self.ignored))
        cells = chosen_cells(counts, usable, cell_draws(key, grid, self.seed), self.most)
        return torch.from_numpy(cells), torch.from_numpy(labels[cells])

    def judged(self, labels: Labels) -> Labels:
        """Labels with 255 for ignored ones."""
        return np.where(np.isin(labels, sorted(self.ignored)), np.uint8(VOID), labels)


@dataclass(frozen=True, slots=True)
class Scale:
    """Mean and standard deviation [dim] for standardisation; 1 as the deviation of a constant feature."""

    mean: Floats
    deviation: Floats

    @classmethod
    def of(cls, count: int, total: Floats, squares: Floats) -> "Scale":
        """Scale of ``count`` vectors, from their sum and sum of squares, float64 [dim]."""
        mean = total / count
        variance = np.maximum(squares / count - mean * mean, 0.0)
        constant = variance <= 10 * np.finfo(np.float64).eps * np.maximum(mean * mean, variance)
        return cls(mean, np.where(constant, 1.0, np.sqrt(variance)))

    def apply(self, vectors: Tensor) -> Tensor:
        """Standardised vectors [... dim], in their dtype."""
        mean, deviation = (torch.from_numpy(values).to(vectors) for values in (self.mean, self.deviation))
        return (vectors - mean) / deviation


@dataclass(frozen=True, slots=True)
class PixelMemory:
    """Memory of one layer, with the vote that was chosen for it."""

    scale: Scale  # standardisation of vectors
    rows: Tensor  # [rows ...] standardised, in the form that is compared with queries
    labels: Tensor  # [rows pixels] uint8
    k: int
    distance: Distance

    def vote(self, queries: Tensor) -> Tensor:
        """Pixel labels [queries pixels] for vectors [queries dim]."""
        asked = comparable_queries(self.scale.apply(queries), self.distance)
        return pixel_vote(most_similar(asked, self.rows, self.k), self.labels)


def voting_memory(
    groups: Sequence[Measurements], device: torch.device, pixels: Pixels, config: CapiConfig
) -> PixelMemory:
    """All memory cells of a layer, with the vote that labels held-out images best from the others.

    Raises ValueError if there is nothing to remember, or no held-out image.
    """
    arrays = {name: np.concatenate([np.asarray(group[name]) for group in groups]) for name in groups[0]}
    apart = np.asarray(arrays["held out"], bool)
    if apart.all():
        raise ValueError(TOO_FEW)
    cells = np.asarray(arrays["cells"], np.float64)[~apart, None]
    mean, spread = (np.asarray(arrays[name], np.float64)[~apart] for name in ("mean", "spread"))
    scale = Scale.of(int(cells.sum()), (cells * mean).sum(0), (spread + cells * mean * mean).sum(0))
    held = torch.from_numpy(np.repeat(apart, arrays["kept"]))
    rows, labels = scale.apply(torch.from_numpy(arrays["rows"])), torch.from_numpy(arrays["labels"])
    learnt = rows[~held].to(device), labels[~held].to(device)
    if not len(learnt[0]):
        raise ValueError(NO_MEMORY)
    asked = rows[held].to(device), labels[held]
    # a part of the memory may have no held-out image: then the first candidates are used
    choice = _chosen(learnt, asked, config, pixels.ignored) if apart.any() else None
    k, distance = choice or (config.ks[0], config.distances[0])
    judged = torch.from_numpy(judged_cells(asked[1].numpy(), pixels.ignored))
    every = torch.cat([learnt[0], asked[0][judged.to(device)]])
    names = torch.cat([learnt[1], asked[1][judged].to(device)])
    return PixelMemory(scale, remembered(every, distance), names, k, distance)


def _chosen(
    learnt: tuple[Tensor, Tensor], asked: tuple[Tensor, Tensor], config: CapiConfig, ignored: frozenset[int]
) -> tuple[int, Distance]:
    """Number of neighbours and distance with the highest mean IoU on held-out cells; ties go to the first."""
    truth = asked[1].numpy()
    scores: dict[tuple[int, Distance], float] = {}
    for distance in config.distances:
        memory = remembered(learnt[0], distance)
        nearest = most_similar(comparable_queries(asked[0], distance), memory, max(config.ks))
        for k in config.ks:
            given = pixel_vote(nearest.first(k), learnt[1]).cpu().numpy()
            scores[k, distance] = mean_iou_of_labels(truth, given, ignored)
    every = product(config.ks, config.distances)
    return max(every, key=lambda choice: np.nan_to_num(scores[choice], nan=-1.0))


def arrays_of_image(grid: Tensor, cells: Tensor, labels: Tensor, *, held_out: bool) -> dict[str, Tensor]:
    """Arrays kept of one image: some unchanged cells, and the sums for the scale of all cells.

    ``grid`` is [height width dim], ``labels`` are those of the cells' pixels [cells pixels]. The vote is
    chosen on held-out images.
    """
    flat = grid.flatten(0, 1).float()
    mean = flat.mean(0)
    spread = (flat - mean).square().sum(0)
    return {
        "rows": flat[cells.to(grid.device, non_blocking=True)],
        "labels": labels,
        "mean": mean[None],
        "spread": spread[None],
        "cells": torch.tensor([len(flat)]),
        "kept": torch.tensor([len(cells)]),
        "held out": torch.tensor([held_out]),
        FINITE: (mean.isfinite().all() & spread.isfinite().all())[None],
    }


class PixelQueryMeasurer(ComparingMeasurer[PixelMemory]):
    """Labels the pixels of a few images on the device, and counts them on the host after all images."""

    def __init__(
        self, read: Read, scenes: Sequence[Scene], pixels: Pixels, memories: MemoryOf[PixelMemory]
    ) -> None:
        super().__init__(memories)
        self._read, self._scenes, self._pixels = read, scenes, pixels

    def search(
        self,
        layers: Sequence[Layer],
        positions: Sequence[int],
        grids: Grids,
        memory: Mapping[Layer, PixelMemory],
    ) -> None:
        for layer in layers:
            labels = memory[layer].vote(grids[layer].flatten(0, 2).float())
            by_image = labels.view(*grids[layer].shape[:3], -1)
            self.keep(layer, dict(zip(map(str, positions), by_image, strict=True)))

    def settle(self, finished: Mapping[Layer, Mapping[str, Tensor]], /) -> dict[Layer, dict[str, Tensor]]:
        """Confusion matrices as in `confusion_entries`; the last class: no class was predicted."""
        masks = [self._read(scene) for scene in self._scenes]
        by_layer = {}
        for layer, arrays in finished.items():
            tables = [confusion_of(mask, arrays[str(i)], self._pixels) for i, mask in enumerate(masks)]
            by_layer[layer] = {"pixels": confusion_entries(tables), "varies": arrays["varies"]}
        return by_layer


def confusion_of(mask: Labels, given: Tensor, pixels: Pixels) -> Integers:
    """Confusion matrix of one image; the last class stands for pixels predicted to have no class.

    ``mask`` has its labels [image height, image width], ``given`` the predicted labels of the pixels of its
    cells [height width pixels].
    """
    truth = pixel_labels(mask, (given.shape[0], given.shape[1])).ravel()
    predicted = given.numpy().ravel()
    known = np.where(predicted == VOID, np.uint8(pixels.classes), predicted)
    return confusion(pixels.judged(truth), known, pixels.classes + 1)


def pixel_labels(mask: Labels, grid: tuple[int, int]) -> Labels:
    """The labels of a mask's pixels under each cell of a grid, in row-major order: [height width pixels].

    Raises ValueError if a side of the mask is not a multiple of the number of cells.
    """
    (height, width), (rows, columns) = mask.shape, grid
    if min(grid) < 1 or height % rows or width % columns:
        raise ValueError(f"expected a mask with whole pixels per cell, found {mask.shape} for {grid} cells")
    cells = mask.reshape(rows, height // rows, columns, width // columns).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(cells.reshape(rows, columns, -1))


def judged_cells(labels: Labels, ignored: frozenset[int]) -> Mask:
    """Whether the most frequent label of each cell [... pixels] (ties: smallest) is not ignored: [...]."""
    return np.asarray(~np.isin(most_frequent(torch.from_numpy(labels)).numpy(), sorted(ignored)))


def most_frequent(labels: Tensor) -> Tensor:
    """Most frequent label along the last dimension [... n], ties to the smallest label: [...]."""
    ordered = labels.sort(-1).values
    count = ordered.shape[-1]
    position = torch.arange(count, device=labels.device)
    begins = torch.ones_like(ordered, dtype=torch.bool)
    begins[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    length = position - torch.where(begins, position, 0).cummax(-1).values  # of the run so far, minus 1
    # the first of the longest runs has the smallest label
    return ordered.gather(-1, (length * count + (count - 1 - position)).argmax(-1, keepdim=True))[..., 0]


def comparable_queries(queries: Tensor, distance: Distance) -> Tensor:
    """Queries [queries ...] whose inner products with rows of `remembered` sort these by the distance."""
    if distance == "cosine":
        return functional.normalize(queries, dim=-1)
    return torch.cat([queries, queries.new_ones((len(queries), 1))], 1)


def remembered(memory: Tensor, distance: Distance) -> Tensor:
    """Rows [rows ...] of a memory [rows dim], to be multiplied with queries from `comparable_queries`."""
    if distance == "cosine":
        return functional.normalize(memory, dim=-1)
    # the ranking of rows by |q - r|^2 depends only on 2 q r - |r|^2
    return torch.cat([memory, memory.square().sum(-1, keepdim=True) / -2], 1)


def pixel_vote(neighbours: MemoryNeighbours, labels: Tensor) -> Tensor:
    """Pixel labels under each query [queries pixels], by a majority vote of neighbours' [rows pixels]."""
    step = max(1, VOTES // max(1, neighbours.index.shape[1] * labels.shape[1]))
    parts = torch.split(neighbours.index, step)
    return torch.cat([most_frequent(labels[index].transpose(1, 2)) for index in parts])


def pixels_of(
    keys: Sequence[str], config: CapiConfig, classes: int, ignored: frozenset[int], memory: int
) -> Pixels:
    """Rule for the remembered cells, and the held-out images among ``keys`` on which the vote is chosen.

    ``classes`` and ``ignored`` are those of `Pixels`; ``memory`` is the target number of cells of all images.
    """
    order = np.random.Generator(np.random.PCG64(config.seed)).permutation(len(keys))
    held_out = frozenset(keys[row] for row in order[: max(1, len(keys) // config.held_out)])
    return Pixels(classes, ignored, held_out, max(1, memory // len(keys)), config.seed)


@dataclass(frozen=True)
class CapiMemory(LearntImages):
    """Memory of the training images: some cells of each, with the labels of their pixels."""

    config: CapiConfig

    @cached_property
    def pixels(self) -> Pixels:
        keys, classes = [scene.sample.key for scene in self.scenes], len(every_value(self.data).classes)
        ignored = frozenset((*range(self.data.offset), VOID))
        return pixels_of(keys, self.config, classes, ignored, self.data.memory)

    @cached_property
    def fingerprint(self) -> str:
        pixels, held_out = self.pixels, sorted(self.pixels.held_out)
        facts = pixels.classes, sorted(pixels.ignored), held_out, pixels.most, pixels.seed
        return digest("capi-memory", *facts, signatures(self.scenes))

    def measure(self, group: Group, view: View) -> Measurer[Tensor]:
        scenes = self.scenes_of(group)

        def choose(position: int, grid: Grid) -> tuple[Tensor, Tensor]:
            labels = shown_labels(self.data, view, scenes[position], centres=True)
            return self.pixels.of(labels, grid, scenes[position].sample.key)

        def keep(position: int, grid: Tensor, cells: Tensor, labels: Tensor) -> dict[str, Tensor]:
            held_out = scenes[position].sample.key in self.pixels.held_out
            return arrays_of_image(grid, cells, labels, held_out=held_out)

        return MemoryMeasurer(choose, keep)


class CapiTask(LabelledImages):
    """Labels of the pixels of validation images as they are shown, by a memory of training images."""

    config: CapiConfig
    over: ClassVar[Over] = "seen classes"
    configs: ClassVar[Mapping[str, CapiConfig]] = {
        "capi": CapiConfig(
            view=Stretch(side=224), ks=(1, 3, 10, 30), distances=("cosine", "L2"), held_out=10, seed=0
        )
    }

    @cached_property
    def memory(self) -> CapiMemory:
        return CapiMemory(self.data, self.config)

    def remembering(
        self, measured: Mapping[Layer, Sequence[Measurements]], failures: Mapping[Layer, str]
    ) -> "CapiTask":
        make = partial(voting_memory, pixels=self.memory.pixels, config=self.config)
        return replace(self, memories=memory_of_layers(measured, failures, make))

    @cached_property
    def fingerprint(self) -> str:
        return digest("capi", self.config, self.memory.fingerprint, signatures(self.data.val))

    def measure(self, group: Group, view: View) -> Measurer[Tensor]:
        if self.memories is None:
            raise ValueError(MEMORY_FIRST)
        read = partial(shown_labels, self.data, view, centres=True)
        return PixelQueryMeasurer(read, self.scenes_of(group), self.memory.pixels, self.memories)

    @property
    def classes(self) -> int:
        return self.memory.pixels.classes + 1  # a pixel can be predicted to be none
