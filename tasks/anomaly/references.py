"""What is remembered of the images of good products, and the patches of other images that differ from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from layerboard.tasks.base import FINITE, Measurements
from layerboard.tasks.checks import LayerFlags
from layerboard.tasks.metrics import anomaly
from layerboard.tasks.metrics.cell_labels import cell_draws
from layerboard.tasks.stored import LayerMeasurements
from layerboard.zoo.spec import Layer


@dataclass(frozen=True, slots=True)
class Draws:
    """Which reference images are also remembered alone: several draws of each of some numbers of them."""

    shots: tuple[int, ...]
    draws: int

    def of(self, count: int) -> dict[str, range]:
        """Places of the reference images of each draw that there are, by what it is called."""
        return {
            f"{shots}-shot {draw}": anomaly.shown_references(count, shots, draw)
            for shots in self.shots
            for draw in range(self.draws)
            if draw * shots < count
        }

    @property
    def names(self) -> list[str]:
        """What all draws are called, whether there are images for them or not."""
        return [f"{shots}-shot {draw}" for shots in self.shots for draw in range(self.draws)]

    @property
    def images(self) -> int:
        """How many reference images are in any draw, at most."""
        return max(self.shots, default=0) * self.draws


def drawn_cells(key: str, grid: tuple[int, int], most: int, seed: int) -> NDArray[np.bool_]:
    """Which cells of an image are remembered, [cells]: at most so many, by its name, the grid and a seed."""
    drawn = np.zeros(grid[0] * grid[1], np.bool_)
    drawn[np.argsort(cell_draws(key, grid, seed), kind="stable")[:most]] = True
    return drawn


class ReferenceMeasurer:
    """Keeps unit vectors of cells of a few reference images of one product.

    ``numbers`` are the places of the images among those of the product; of each at most ``most`` cells are
    kept, and all of the first ``whole`` images of the product.
    """

    def __init__(self, keys: Sequence[str], numbers: Sequence[int], most: int, whole: int, seed: int) -> None:
        self._keys, self._numbers, self._most, self._whole, self._seed = keys, numbers, most, whole, seed
        self._kept: dict[Layer, list[dict[str, Tensor]]] = {}

    def update(self, layer: Layer, positions: Sequence[int], grids: Tensor) -> None:
        size = (grids.shape[1], grids.shape[2])
        for position, grid in zip(positions, grids, strict=True):
            number = self._numbers[position]
            drawn = drawn_cells(self._keys[position], size, self._most, self._seed)
            cells = np.flatnonzero(drawn | (number < self._whole))
            some = grid.flatten(0, 1)[torch.from_numpy(cells).to(grid.device, non_blocking=True)]
            rows = functional.normalize(some.float(), dim=-1).half()
            kept = {
                "rows": rows,
                "image": torch.full((len(cells),), number, dtype=torch.int32),
                "drawn": torch.from_numpy(drawn[cells]),
                FINITE: rows.isfinite().all()[None],
            }
            self._kept.setdefault(layer, []).append(kept)

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        every = self._kept.pop(layer)
        return {name: torch.cat([part[name] for part in every]) for name in every[0]}


@dataclass(frozen=True, slots=True)
class Memory:
    """What a layer remembers of a product: unit vectors [rows dim] of all images, and of single ones."""

    every: Tensor
    images: tuple[Tensor, ...]

    @classmethod
    def of(cls, groups: Sequence[Measurements], whole: int, device: torch.device) -> "Memory":
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
    """What layers remember of products, of which some are in memory: as many as ``most`` patches allow.

    They are read from what the reference images left behind; ``groups`` are the places of the groups of each
    product there, and ``failures`` say why other layers could not be measured.
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
        """What a layer remembers of a product; raises ValueError where it was not measured."""
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
        return {layer: Memory.of(every, self._whole, device) for layer, every in parts.items()}


def _size(layers: Mapping[Layer, Memory]) -> int:
    """Patches of a product that one layer remembers."""
    return max((len(memory.every) for memory in layers.values()), default=0)


class DistanceMeasurer:
    """Distances of all patches of a few images of one product from the nearest good ones, on the device.

    It keeps ``distances`` [images height width] from all reference images, and ``scores`` [images draws] of
    the images by all of them, then by each draw, NaN for draws without a reference image.
    """

    def __init__(
        self, product: str, draws: Mapping[str, range | None], k: int, memories: ProductMemories
    ) -> None:
        self._product, self._draws, self._k, self._memories = product, draws, k, memories
        self._kept: dict[Layer, list[dict[str, Tensor]]] = {}
        self._flags = LayerFlags()
        self._reasons: dict[Layer, str] = {}

    def update(self, layer: Layer, positions: Sequence[int], grids: Tensor) -> None:
        self._flags.see(layer, grids)
        try:
            memory = self._memories.of(self._product, layer, grids.device)
        except ValueError as error:
            self._reasons[layer] = str(error)
            return
        patches = grids.flatten(0, 2)
        distances = anomaly.patch_distances(patches, memory.every, self._k).view(grids.shape[:3])
        scores = [anomaly.image_scores(distances.flatten(1))]
        scores += [self._score(patches, memory, images, len(grids)) for images in self._draws.values()]
        kept = {"distances": distances, "scores": torch.stack(scores, dim=1)}
        self._kept.setdefault(layer, []).append(kept)

    def _score(self, patches: Tensor, memory: Memory, images: range | None, count: int) -> Tensor:
        """Scores of images by the reference images of a draw, [images]."""
        if images is None:
            return torch.full((count,), torch.nan, device=patches.device)
        rows = torch.cat([memory.images[number] for number in images])
        return anomaly.image_scores(anomaly.patch_distances(patches, rows, self._k).view(count, -1))

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        if layer in self._reasons:
            raise ValueError(self._reasons[layer])
        every = self._kept.pop(layer)
        return {name: torch.cat([part[name] for part in every]) for name in every[0]} | self._flags.arrays(
            layer
        )
