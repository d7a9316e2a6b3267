"""Memories of patches of good images, and distances of the patches of other images from them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from layerboard.tasks.anomaly import metric as anomaly
from layerboard.tasks.framework.base import Measurements
from layerboard.tasks.framework.measurers import ComparingMeasurer, Grids
from layerboard.tasks.framework.stored import LayerMeasurements
from layerboard.zoo.spec import Layer


@dataclass(frozen=True, slots=True)
class Draws:
    """Few-shot draws of reference images: several draws for each number of images."""

    shots: tuple[int, ...]
    draws: int

    def of(self, count: int) -> dict[str, range]:
        """Indices of the images among ``count`` references in each draw, by its name.

        Images are taken in sorted file-name order. The last draws may be smaller or empty.
        """
        return {
            f"{shots}-shot {draw}": range(count)[draw * shots : (draw + 1) * shots]
            for shots in self.shots
            for draw in range(self.draws)
        }

    @property
    def images(self) -> int:
        """Largest number of reference images that the draws use."""
        return max(self.shots, default=0) * self.draws


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory of a layer for a product: unit vectors [rows dim] of all images, and of single images."""

    every: Tensor
    images: tuple[Tensor, ...]

    def of(self, images: Sequence[int] | None) -> Tensor:
        """The rows of these images, or of all images if None."""
        return self.every if images is None else torch.cat([self.images[number] for number in images])

    @classmethod
    def read(cls, groups: Sequence[Measurements], whole: int, device: torch.device) -> "Memory":
        rows, image, drawn = (
            np.concatenate([np.asarray(group[name]) for group in groups])
            for name in ("rows", "image", "drawn")
        )
        vectors = torch.from_numpy(rows)
        images = tuple(
            vectors[torch.from_numpy(image == number)].to(device)
            for number in range(min(whole, int(image.max()) + 1))
        )
        return cls(vectors[torch.from_numpy(drawn)].to(device), images)


class ProductMemories:
    """Memories of layers for products; those in RAM have at most ``most`` patches together.

    They are read from the measurements of the reference images. ``groups`` are the indices of each product's
    groups there, and ``failures`` the reasons why other layers could not be measured.
    """

    def __init__(
        self,
        measured: LayerMeasurements,
        failures: Mapping[Layer, str],
        groups: Mapping[str, Sequence[int]],
        whole: int,
        most: int,
    ) -> None:
        self._measured, self._failures, self._groups = measured, failures, groups
        self._whole, self._most = whole, most
        self._kept: dict[str, dict[Layer, Memory]] = {}

    def of(self, product: str, layer: Layer, device: torch.device) -> Memory:
        """Memory of a layer for a product; raises ValueError if the layer was not measured."""
        if layer in self._failures:
            raise ValueError(self._failures[layer])
        if product not in self._kept:
            while sum(map(_size, self._kept.values())) > self._most:
                del self._kept[next(iter(self._kept))]
            self._kept[product] = self._read(product, device)
        return self._kept[product][layer]

    def _read(self, product: str, device: torch.device) -> dict[Layer, Memory]:
        parts: dict[Layer, list[Measurements]] = {}
        for group in self._groups[product]:
            for layer, arrays in self._measured.of_group(group).items():
                parts.setdefault(layer, []).append(arrays)
        return {layer: Memory.read(every, self._whole, device) for layer, every in parts.items()}


def _size(layers: Mapping[Layer, Memory]) -> int:
    """Number of patches of a product in the memory of one layer."""
    return max((len(memory.every) for memory in layers.values()), default=0)


class DistanceMeasurer(ComparingMeasurer[Memory]):
    """Distances of all patches of a few images of one product to the nearest good patches, on the device.

    It keeps ``distances`` [images height width] to all reference images, and ``scores`` [images 1 + draws] of
    the images, from all reference images and then from each draw; NaN for draws without reference images.
    """

    def __init__(self, product: str, draws: Mapping[str, range], k: int, memories: ProductMemories) -> None:
        super().__init__(partial(memories.of, product))
        self._draws, self._k = draws, k

    def search(
        self, layers: Sequence[Layer], positions: Sequence[int], grids: Grids, memory: Mapping[Layer, Memory]
    ) -> None:
        first = next(iter(grids.values()))
        patches = {member: tokens.flatten(0, 2) for member, tokens in grids.items()}
        members = {layer: layer.members for layer in layers}
        groups = [None, *map(tuple, self._draws.values())]
        distances = [self._distances(patches, memory, images, members) for images in groups]
        size, none = first.shape[:3], torch.full(first.shape[:1], torch.nan, device=first.device)
        for layer in layers:
            parts = [part[layer].view(size[0], -1) if part else None for part in distances]
            scores = [none if part is None else anomaly.image_scores(part) for part in parts]
            kept = {"distances": distances[0][layer].view(size), "scores": torch.stack(scores, dim=1)}
            self.keep(layer, kept)

    def _distances(
        self,
        patches: Mapping[Layer, Tensor],
        memory: Mapping[Layer, Memory],
        images: Sequence[int] | None,
        members: Mapping[Layer, Sequence[Layer]],
    ) -> dict[Layer, Tensor]:
        """Distances of patches to those of some reference images, or of all; empty without images."""
        if images == ():
            return {}
        rows = {layer: memory[layer].of(images) for layer in patches}
        return anomaly.patch_distances_of_layers(patches, rows, members, self._k)
