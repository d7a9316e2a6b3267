"""What remembers cells with the labels of their pixels, and what labels the pixels of others by them."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tasks.base import FINITE
from tasks.checks import varies
from tasks.datasets.scenes import Scene
from tasks.metrics.arrays import VOID, Integers, Labels
from tasks.metrics.overlaps import confusion
from tasks.metrics.pixel_vote import pixel_labels
from tasks.segmentation.in_context import Grid, Read, sparse
from tasks.segmentation.pixel_memory import PixelMemories, Pixels
from zoo.spec import Layer


class PixelMemoryMeasurer:
    """Keeps cells of a few images as they are, float32, the labels of their pixels, and what scales them."""

    def __init__(self, read: Read, scenes: Sequence[Scene], pixels: Pixels) -> None:
        self._read = read
        self._scenes = scenes
        self._pixels = pixels
        self._chosen: dict[tuple[int, Grid], tuple[Tensor, Tensor]] = {}
        self._kept: dict[Layer, list[dict[str, Tensor]]] = {}

    def update(self, layer: Layer, positions: Sequence[int], grids: Tensor) -> None:
        """Remember cells of the images at those positions, and the mean and spread of all of their cells."""
        for position, grid in zip(positions, grids, strict=True):
            cells, labels = self._cells(position, (grid.shape[0], grid.shape[1]))
            held_out = self._scenes[position].sample.key in self._pixels.held_out
            self._kept.setdefault(layer, []).append(kept_of(grid, cells, labels, held_out=held_out))

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        """Their rows [cells dim] and labels [cells pixels]; of each image what the scale is made of."""
        every = self._kept.pop(layer)
        arrays = {name: torch.cat([one[name] for one in every]) for name in every[0]}
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
        """Let the memory vote on the pixels of the images at those positions."""
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
        entries = [self._entries(place, mask, arrays[str(place)]) for place, mask in enumerate(masks)]
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
