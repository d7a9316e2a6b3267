"""Memory cells of labelled images, and their vote on the cells of other images."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from layerboard.tasks.datasets.scenes import Scene
from layerboard.tasks.framework.base import Measurements
from layerboard.tasks.framework.examples import small_mask
from layerboard.tasks.framework.measurers import ComparingMeasurer, Grid, Grids
from layerboard.tasks.metrics import cell_labels
from layerboard.tasks.metrics.arrays import Integers, Labels
from layerboard.tasks.metrics.memory_search import MemoryNeighbours, most_similar_of_layers
from layerboard.tasks.segmentation.overlaps import confusion
from layerboard.zoo.spec import Layer

NO_MEMORY = "no cell of the images to learn from has a class in half of its pixels"

LABELS = 1 << 24  # numbers of labels gathered at a time

Read = Callable[[Scene], Labels]  # the class of each pixel of an image, uint8 [height width]; 255 for none
Made = TypeVar("Made")
MemoryOf = Callable[[Layer, torch.device], Made]  # memory of a layer on a device
Cells = tuple[Tensor, Tensor]  # unit vectors [cells dim] and label vectors [cells classes] of a memory


@dataclass(frozen=True, slots=True)
class Vote:
    """Settings of the vote of a memory's cells."""

    k: int
    other: int  # a further k, from the same search
    temperature: float  # divisor of the cosine in the weight of a vote, exp(cosine / temperature)


def remembered_cells(
    counts: Integers, key: str, most: int, least: float, seed: int
) -> tuple[Integers, NDArray[np.int32]]:
    """Ascending indices of the remembered cells of an image, and their pixel counts [cells classes].

    ``counts`` [height width classes + 1] are those of `cell_counts`. At most ``most`` cells are drawn, by the
    image's name and a seed, from those with at least a share ``least`` of labelled pixels.
    """
    flat = counts.reshape(-1, counts.shape[-1])
    draws = cell_labels.cell_draws(key, (counts.shape[0], counts.shape[1]), seed)
    cells = cell_labels.chosen_cells(flat, cell_labels.usable_cells(flat, least), draws, most)
    return cells, flat[cells, :-1].astype(np.int32)


def label_vectors(pixels: NDArray[np.int32]) -> Tensor:
    """Share of each class, float32 [cells classes], from the pixel counts of `remembered_cells`."""
    return torch.from_numpy(cell_labels.shares(np.pad(pixels, ((0, 0), (0, 1)))).astype(np.float32))


def memory_of_layers(
    measured: Mapping[Layer, Sequence[Measurements]],
    failures: Mapping[Layer, str],
    make: Callable[[Sequence[Measurements], torch.device], Made],
) -> MemoryOf[Made]:
    """The memory of each layer, made of its measurements of the training images at its first use.

    ``failures`` are the reasons why other layers could not be measured.
    """

    @cache
    def memory(layer: Layer, device: torch.device) -> Made:
        """Memory of a layer; raises ValueError if it was not measured, or the memory is empty."""
        if layer in failures:
            raise ValueError(failures[layer])
        return make(measured[layer], device)

    return memory


def labelled_cells(groups: Sequence[Measurements], device: torch.device) -> Cells:
    """All memory cells of a layer; raises ValueError if there are none."""
    rows = np.concatenate([np.asarray(group["rows"], np.float16) for group in groups])
    pixels = np.concatenate([np.asarray(group["pixels"], np.int32) for group in groups])
    if not len(rows):
        raise ValueError(NO_MEMORY)
    return torch.from_numpy(rows).to(device), label_vectors(pixels).to(device)


def vote_labels(neighbours: MemoryNeighbours, labels: Tensor, temperature: float) -> Tensor:
    """Mean label vector of each query's neighbours, weighted by softmax(similarity / temperature).

    ``labels`` are those of the memory, [rows classes].
    """
    weight = (neighbours.similarity / temperature).softmax(-1)
    step = max(1, LABELS // max(1, weight.shape[1] * labels.shape[1]))
    parts = zip(torch.split(weight, step), torch.split(neighbours.index, step), strict=True)
    return torch.cat([torch.einsum("qk,qkc->qc", some.to(labels), labels[index]) for some, index in parts])


class QueryMeasurer(ComparingMeasurer[Cells]):
    """Labels the cells of a few images on the device, and their pixels on the host after all images.

    ``examples`` are the indices of images whose labels are kept at a small size.
    """

    examples: Sequence[int] = ()

    def __init__(
        self, read: Read, classes: int, scenes: Sequence[Scene], config: Vote, memories: MemoryOf[Cells]
    ) -> None:
        super().__init__(memories)
        self._read, self._classes, self._scenes = read, classes, scenes
        self._temperature = config.temperature
        self._ks = {"pixels": config.k, f"pixels k={config.other}": config.other}  # k by name

    def search(
        self, layers: Sequence[Layer], positions: Sequence[int], grids: Grids, memory: Mapping[Layer, Cells]
    ) -> None:
        queries = {
            member: functional.normalize(tokens.float().flatten(0, 2), dim=-1)
            for member, tokens in grids.items()
        }
        rows = {member: memory[member][0] for member in grids}
        members, most = {layer: layer.members for layer in layers}, max(self._ks.values())
        for layer, neighbours in most_similar_of_layers(queries, rows, members, most).items():
            first = layer.members[0]
            for name, k in self._ks.items():
                votes = vote_labels(neighbours.first(k), memory[first][1], self._temperature)
                by_image = votes.view(*grids[first].shape[:3], -1)
                names = [f"{name} {position}" for position in positions]
                self.keep(layer, dict(zip(names, by_image, strict=True)))

    def settle(self, finished: Mapping[Layer, Mapping[str, Tensor]], /) -> dict[Layer, dict[str, Tensor]]:
        """Confusion matrices of all images, as in `confusion_entries`."""
        with ThreadPoolExecutor(torch.get_num_threads(), "label", torch.set_num_threads, (1,)) as pool:
            images = list(pool.map(partial(self._tables, finished), range(len(self._scenes))))
        settled: dict[Layer, dict[str, Tensor]] = {}
        for layer, arrays in finished.items():
            tables = {name: [image[layer][name] for image in images] for name in images[0][layer]}
            settled[layer] = {name: confusion_entries(each) for name, each in tables.items()}
            settled[layer] |= {**self._masks(arrays), "varies": arrays["varies"]}
        return settled

    def _masks(self, arrays: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Labels of the examples [images side side], as in `small_mask`; empty without examples."""
        masks = []
        for position in self.examples:
            size = self._read(self._scenes[position]).shape[::-1]
            masks.append(small_mask(cell_labels.label_map(arrays[f"pixels {position}"], size)))
        return {"mask": torch.from_numpy(np.stack(masks))} if masks else {}

    def _tables(
        self, finished: Mapping[Layer, Mapping[str, Tensor]], place: int
    ) -> dict[Layer, dict[str, Integers]]:
        """Confusion matrices of one image, for each layer."""
        truth = self._read(self._scenes[place])
        ceilings: dict[Grid, Integers] = {}
        by_layer = {}
        for layer, arrays in finished.items():
            tables = {name: self._table(truth, arrays[f"{name} {place}"]) for name in self._ks}
            height, width = arrays[f"pixels {place}"].shape[:2]
            if (height, width) not in ceilings:
                exact = cell_labels.shares(cell_labels.cell_counts(truth, (height, width), self._classes))
                ceilings[height, width] = self._table(truth, torch.from_numpy(exact).float())
            by_layer[layer] = {**tables, "pixels ceiling": ceilings[height, width]}
        return by_layer

    def _table(self, truth: Labels, vectors: Tensor) -> Integers:
        return confusion(truth, cell_labels.label_map(vectors, truth.shape[::-1]), self._classes)


def confusion_entries(tables: Sequence[Integers]) -> Tensor:
    """Nonzero entries of confusion matrices [entries 4]: image index, true class, predicted class, pixels."""
    every = np.stack(tables)
    places = np.nonzero(every)
    return torch.from_numpy(np.stack([*places, every[places]], axis=1).astype(np.int32))
