"""Cells that remember the label of each of their pixels, and how they vote on the pixels of others.

Source: the k-NN segmentation of CAPI (Darcet et al., 2025; facebookresearch/capi, commit 98b4fa1).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tasks.base import FINITE, Measurements
from tasks.checks import varies
from tasks.datasets.scenes import Scene
from tasks.metrics.arrays import VOID, Integers, Labels
from tasks.metrics.cell_labels import cell_counts, cell_draws, chosen_cells
from tasks.metrics.label_vote import (
    Distance,
    Scale,
    compared,
    judged_cells,
    most_similar,
    pixel_labels,
    pixel_vote,
    remembered,
)
from tasks.metrics.overlaps import confusion, mean_iou_of_labels
from tasks.segmentation.in_context import Grid, Read, sparse
from zoo.spec import Layer

NO_MEMORY = "no cell of the images to learn from shows mostly a class"
TOO_FEW = "the number of voters is chosen on a part of the images to learn from, and there is one alone"


@dataclass(frozen=True, slots=True)
class Electorate:
    """How many cells vote, and by which distance they are found: what is chosen on held-out images.

    Attributes:
        ks: Numbers of voters.
        distances: Ways to find them.
    """

    ks: tuple[int, ...]
    distances: tuple[Distance, ...]

    @property
    def all(self) -> list[tuple[int, Distance]]:
        """What is chosen among, in order."""
        return [(k, distance) for k in self.ks for distance in self.distances]


@dataclass(frozen=True, slots=True)
class Pixels:
    """Which cells of an image are remembered with the labels of their pixels.

    Attributes:
        classes: How many labels there are from 0, but 255 for none.
        ignored: Labels that are not judged.
        held_out: Names of the images on which the vote is chosen.
        most: Cells of an image at most.
        seed: Of the draw of cells.
    """

    classes: int
    ignored: frozenset[int]
    held_out: Collection[str]
    most: int
    seed: int

    def of(self, mask: Labels, grid: Grid, key: str) -> tuple[Tensor, Tensor]:
        """Places of the cells that are kept, rising, and the labels of their pixels [cells pixels].

        A cell can be kept that shows mostly a class; of a held-out image, one that shows any.
        """
        labels = pixel_labels(mask, grid).reshape(grid[0] * grid[1], -1)
        valid = np.where(np.isin(mask, sorted(self.ignored)), np.uint8(VOID), mask)
        counts = cell_counts(valid, grid, self.classes).reshape(len(labels), -1)
        shows = counts[:, :-1].any(axis=1)
        judged = judged_cells(labels, self.ignored)
        usable = np.asarray(shows if key in self.held_out else shows & judged)
        cells = chosen_cells(counts, usable, cell_draws(key, grid, self.seed), self.most)
        return torch.from_numpy(cells), torch.from_numpy(labels[cells])


@dataclass(frozen=True, slots=True)
class PixelMemory:
    """What one layer remembers, and the vote that was chosen for it.

    Attributes:
        scale: What vectors are standardised by.
        rows: [rows ...] standardised, as they are compared with queries.
        labels: [rows pixels] uint8.
        k: How many vote.
        distance: By which they are found.
    """

    scale: Scale
    rows: Tensor
    labels: Tensor
    k: int
    distance: Distance

    def vote(self, queries: Tensor) -> Tensor:
        """Labels of the pixels [queries pixels] of vectors [queries dim]."""
        asked = compared(self.scale.apply(queries), self.distance)
        return pixel_vote(most_similar(asked, self.rows, self.k), self.labels)


class PixelMemories:
    """The memories of layers, made when a layer is first asked for and kept from then on.

    Args:
        measured: For each layer, what the groups of the training images left behind.
        failures: Why other layers could not be measured.
        pixels: How cells were chosen.
        electorate: What is chosen among on the held-out images.
    """

    def __init__(
        self,
        measured: Mapping[Layer, Sequence[Measurements]],
        failures: Mapping[Layer, str],
        pixels: Pixels,
        electorate: Electorate,
    ) -> None:
        self._measured = measured
        self._failures = failures
        self._pixels = pixels
        self._electorate = electorate
        self._kept: dict[Layer, PixelMemory] = {}

    def of(self, layer: Layer, device: torch.device) -> PixelMemory:
        """The memory of a layer.

        Raises:
            ValueError: It could not be measured, or there is nothing to remember or to choose on.
        """
        if layer not in self._kept:
            if layer in self._failures:
                raise ValueError(self._failures[layer])
            self._kept[layer] = self._made(self._measured[layer], device)
        return self._kept[layer]

    def _made(self, groups: Sequence[Measurements], device: torch.device) -> PixelMemory:
        """The vote that names held-out images best by the other ones, and the memory of both."""
        arrays = {name: np.concatenate([np.asarray(group[name]) for group in groups]) for name in groups[0]}
        apart = np.asarray(arrays["held out"], bool)
        if apart.all():
            raise ValueError(TOO_FEW)
        scale = _scale(arrays, ~apart)
        held = torch.from_numpy(np.repeat(apart, arrays["kept"]))
        rows, labels = scale.apply(torch.from_numpy(arrays["rows"])), torch.from_numpy(arrays["labels"])
        learnt = rows[~held].to(device), labels[~held].to(device)
        if not len(learnt[0]):
            raise ValueError(NO_MEMORY)
        asked = rows[held].to(device), labels[held]
        # of a part of the memory, of which nothing is held out, nothing is said
        k, distance = self._chosen(learnt, asked) if apart.any() else self._electorate.all[0]
        judged = torch.from_numpy(judged_cells(asked[1].numpy(), self._pixels.ignored))
        every = torch.cat([learnt[0], asked[0][judged.to(device)]])
        names = torch.cat([learnt[1], asked[1][judged].to(device)])
        return PixelMemory(scale, remembered(every, distance), names, k, distance)

    def _chosen(self, learnt: tuple[Tensor, Tensor], asked: tuple[Tensor, Tensor]) -> tuple[int, Distance]:
        """Number of voters and distance of the highest mean IoU of held-out cells, the first of equals."""
        choice, truth = self._electorate, asked[1].numpy()
        scores: dict[tuple[int, Distance], float] = {}
        for distance in choice.distances:
            queries, memory = compared(asked[0], distance), remembered(learnt[0], distance)
            voters = most_similar(queries, memory, max(choice.ks))
            for k in choice.ks:
                given = pixel_vote(voters.first(k), learnt[1]).cpu().numpy()
                scores[k, distance] = mean_iou_of_labels(truth, given, self._pixels.ignored)
        return max(choice.all, key=lambda one: np.nan_to_num(scores[one], nan=-1.0))


def _scale(found: Mapping[str, NDArray[np.generic]], images: NDArray[np.bool_]) -> Scale:
    """The scale of all cells of some images, of their means and sums of squared deviations."""
    cells = np.asarray(found["cells"], np.float64)[images, None]
    mean, spread = (np.asarray(found[name], np.float64)[images] for name in ("mean", "spread"))
    squares = spread + cells * mean * mean
    return Scale.of(int(cells.sum()), (cells * mean).sum(0), squares.sum(0))


class PixelMemoryMeasurer:
    """Keeps cells of a few images as they are, float32, the labels of their pixels, and what scales them."""

    def __init__(self, read: Read, scenes: Sequence[Scene], pixels: Pixels) -> None:
        self._read = read
        self._scenes = scenes
        self._pixels = pixels
        self._chosen: dict[tuple[int, Grid], tuple[Tensor, Tensor]] = {}
        self._kept: dict[Layer, list[dict[str, Tensor]]] = {}

    def update(self, layer: Layer, positions: Sequence[int], grids: Tensor) -> None:
        for position, grid in zip(positions, grids, strict=True):
            cells, labels = self._cells(position, (grid.shape[0], grid.shape[1]))
            held_out = self._scenes[position].sample.key in self._pixels.held_out
            self._kept.setdefault(layer, []).append(kept_of(grid, cells, labels, held_out=held_out))

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        """Their rows [cells dim] and labels [cells pixels]; of each image what the scale is made of."""
        every = self._kept.pop(layer)
        arrays = {name: torch.cat([part[name] for part in every]) for name in every[0]}
        return {**arrays, FINITE: arrays["mean"].isfinite().all() & arrays["spread"].isfinite().all()}

    def _cells(self, position: int, grid: Grid) -> tuple[Tensor, Tensor]:
        if (position, grid) not in self._chosen:
            scene = self._scenes[position]
            self._chosen[position, grid] = self._pixels.of(self._read(scene), grid, scene.sample.key)
        return self._chosen[position, grid]


def kept_of(grid: Tensor, cells: Tensor, labels: Tensor, *, held_out: bool) -> dict[str, Tensor]:
    """What is kept of one image: some cells, and what the scale of all of its cells is made of.

    Args:
        grid: [height width dim].
        cells: Places of the cells that are kept.
        labels: Labels of their pixels, [cells pixels].
        held_out: Whether the vote is chosen on it.
    """
    flat = grid.flatten(0, 1).float()
    mean = flat.mean(0)
    return {
        "rows": flat[cells.to(grid.device, non_blocking=True)],
        "labels": labels,
        "mean": mean[None],
        "spread": (flat - mean).square().sum(0)[None],
        "cells": torch.tensor([len(flat)]),
        "kept": torch.tensor([len(cells)]),
        "held out": torch.tensor([held_out]),
    }


class PixelQueryMeasurer:
    """Labels the pixels of a few images on the device, and counts them on the host when all were seen."""

    def __init__(self, read: Read, scenes: Sequence[Scene], pixels: Pixels, memories: PixelMemories) -> None:
        self._read = read
        self._scenes = scenes
        self._pixels = pixels
        self._memories = memories
        self._given: dict[Layer, dict[int, Tensor]] = {}
        self._flags: dict[Layer, list[tuple[Tensor, Tensor]]] = {}

    def update(self, layer: Layer, positions: Sequence[int], grids: Tensor) -> None:
        memory = self._memories.of(layer, grids.device)
        given = memory.vote(grids.flatten(0, 2).float())
        if given.shape[1] != memory.labels.shape[1]:
            raise ValueError("cells have another number of pixels than those that are remembered")
        every = given.view(*grids.shape[:3], -1)
        self._given.setdefault(layer, {}).update(zip(positions, every, strict=True))
        self._flags.setdefault(layer, []).append((varies(grids), grids.isfinite().all()))

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        """Labels of the pixels of every image's cells, [height width pixels]."""
        changing, finite = zip(*self._flags.pop(layer), strict=True)
        given = {str(position): grid for position, grid in self._given.pop(layer).items()}
        return {**given, "varies": torch.stack(changing).any()[None], FINITE: torch.stack(finite)}

    def settle(self, finished: Mapping[Layer, Mapping[str, Tensor]]) -> dict[Layer, dict[str, Tensor]]:
        """Sparse confusion matrices, as of `QueryMeasurer`; the last class is no class that is predicted."""
        masks = [self._read(scene) for scene in self._scenes]
        return {layer: self._settled(masks, arrays) for layer, arrays in finished.items()}

    def _settled(self, masks: Sequence[Labels], arrays: Mapping[str, Tensor]) -> dict[str, Tensor]:
        entries = [self._entries(image, mask, arrays[str(image)]) for image, mask in enumerate(masks)]
        return {"pixels": torch.from_numpy(np.concatenate(entries)), "varies": arrays["varies"]}

    def _entries(self, place: int, mask: Labels, given: Tensor) -> NDArray[np.int32]:
        return sparse(place, confusion_of(mask, given, self._pixels))


def confusion_of(mask: Labels, given: Tensor, pixels: Pixels) -> Integers:
    """Confusion matrix of one image; the last class is no class that is predicted.

    Args:
        mask: Its labels, [image height, image width].
        given: Labels that are predicted of the pixels of its cells, [height width pixels].
        pixels: Which labels are classes, and which are judged.
    """
    truth = pixel_labels(mask, (given.shape[0], given.shape[1])).ravel()
    judged = np.where(np.isin(truth, sorted(pixels.ignored)), np.uint8(VOID), truth)
    predicted = given.numpy().ravel()
    known = np.where(predicted == VOID, np.uint8(pixels.classes), predicted)
    return confusion(judged, known, pixels.classes + 1)
