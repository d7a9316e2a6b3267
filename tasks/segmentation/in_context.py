"""What cells of labelled images are remembered, and how they vote on the cells of others."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from tasks.base import FINITE, Measurements
from tasks.checks import varies
from tasks.datasets.scenes import Scene
from tasks.metrics.arrays import Integers, Labels
from tasks.metrics.cell_labels import (
    cell_counts,
    cell_draws,
    chosen_cells,
    label_map,
    shares,
    usable_cells,
)
from tasks.metrics.label_vote import Voters, most_similar, most_similar_of_sets, vote
from tasks.metrics.overlaps import confusion
from tasks.sets import MIXED, Gathered, members_of, of_one_grid
from zoo.spec import Layer

NO_MEMORY = "no cell of the images to learn from has a class in half of its pixels"

Grid = tuple[int, int]

Read = Callable[[Scene], Labels]
"""The class of each pixel of an image, uint8 [height width]; 255 for none."""


@dataclass(frozen=True, slots=True)
class Vote:
    """How the cells of a memory vote.

    Attributes:
        k: Cells that vote.
        other: A further number of voters, of the same search.
        temperature: Divisor of the cosine in the weight of a vote, exp(cosine / temperature).
    """

    k: int
    other: int
    temperature: float


@dataclass(frozen=True, slots=True)
class CellChoice:
    """Which cells of an image are remembered.

    Attributes:
        most: How many at most.
        least: Share of a cell's pixels that must have a class.
        seed: Of the draw.
    """

    most: int
    least: float
    seed: int

    def of(self, counts: Integers, key: str) -> tuple[Integers, NDArray[np.int32]]:
        """Places of the cells of an image, rising, and their pixels of each class [cells classes].

        Args:
            counts: [height width classes + 1] as of ``cell_counts``.
            key: Name of the image.
        """
        flat = counts.reshape(-1, counts.shape[-1])
        draws = cell_draws(key, (counts.shape[0], counts.shape[1]), self.seed)
        cells = chosen_cells(flat, usable_cells(flat, self.least), draws, self.most)
        return cells, flat[cells, :-1].astype(np.int32)


def label_vectors(pixels: NDArray[np.int32]) -> Tensor:
    """Share of each class, float32 [cells classes], of pixels as of ``CellChoice.of``."""
    return torch.from_numpy(shares(np.pad(pixels, ((0, 0), (0, 1)))).astype(np.float32))


class Memories:
    """The cells that layers remember, read when a layer is first asked for and kept from then on.

    Args:
        measured: For each layer, what the groups of a `SegmentationMemory` left behind.
        failures: Why other layers could not be measured.
    """

    def __init__(
        self, measured: Mapping[Layer, Sequence[Measurements]], failures: Mapping[Layer, str]
    ) -> None:
        self._measured = measured
        self._failures = failures
        self._kept: dict[Layer, tuple[Tensor, Tensor]] = {}

    def of(self, layer: Layer, device: torch.device) -> tuple[Tensor, Tensor]:
        """Unit vectors [cells dim] and label vectors [cells classes] of a layer.

        Raises:
            ValueError: It could not be measured, or there is no cell to remember.
        """
        if layer not in self._kept:
            if layer in self._failures:
                raise ValueError(self._failures[layer])
            groups = self._measured[layer]
            rows = np.concatenate([np.asarray(group["rows"], np.float16) for group in groups])
            pixels = np.concatenate([np.asarray(group["pixels"], np.int32) for group in groups])
            if not len(rows):
                raise ValueError(NO_MEMORY)
            self._kept[layer] = torch.from_numpy(rows).to(device), label_vectors(pixels).to(device)
        return self._kept[layer]


class MemoryMeasurer:
    """Keeps cells of a few images: float16 unit vectors, and how many pixels of each class they hold.

    Which cells depends on the image and the grid alone, so that layers of one grid remember the same ones.
    """

    def __init__(self, read: Read, classes: int, scenes: Sequence[Scene], choice: CellChoice) -> None:
        self._read = read
        self._classes = classes
        self._scenes = scenes
        self._choice = choice
        self._chosen: dict[tuple[int, Grid], tuple[Tensor, Tensor]] = {}
        self._rows: dict[Layer, list[Tensor]] = {}
        self._pixels: dict[Layer, list[Tensor]] = {}

    def update(self, layer: Layer, positions: Sequence[int], grids: Tensor) -> None:
        for position, grid in zip(positions, grids, strict=True):
            cells, pixels = self._cells(position, (grid.shape[0], grid.shape[1]))
            rows = grid.flatten(0, 1)[cells.to(grid.device, non_blocking=True)]
            self._rows.setdefault(layer, []).append(functional.normalize(rows.float(), dim=-1).half())
            self._pixels.setdefault(layer, []).append(pixels)

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        """Their rows [cells dim], float16, and their pixels [cells classes], int32."""
        rows = torch.cat(self._rows.pop(layer))
        pixels = torch.cat(self._pixels.pop(layer))
        return {"rows": rows, "pixels": pixels, FINITE: rows.isfinite().all()}

    def _cells(self, position: int, grid: Grid) -> tuple[Tensor, Tensor]:
        """Places of the cells of an image that are kept, and their pixels [cells classes]."""
        if (position, grid) not in self._chosen:
            scene = self._scenes[position]
            counts = cell_counts(self._read(scene), grid, self._classes)
            cells, pixels = self._choice.of(counts, scene.sample.key)
            self._chosen[position, grid] = torch.from_numpy(cells), torch.from_numpy(pixels)
        return self._chosen[position, grid]


@dataclass(slots=True)
class Voted:
    """Label vectors of the images of a group in one layer, by position: [height width classes] each."""

    by_k: dict[int, Tensor] = field(default_factory=dict)
    by_other: dict[int, Tensor] = field(default_factory=dict)
    varies: list[Tensor] = field(default_factory=list)
    finite: list[Tensor] = field(default_factory=list)


class QueryMeasurer:
    """Labels the cells of a few images on the device, and their pixels on the host when all were seen."""

    def __init__(
        self, read: Read, classes: int, scenes: Sequence[Scene], config: Vote, memories: Memories
    ) -> None:
        self._read = read
        self._classes = classes
        self._scenes = scenes
        self._config = config
        self._memories = memories
        self._voted: dict[Layer, Voted] = {}

    def update(self, layer: Layer, positions: Sequence[int], grids: Tensor) -> None:
        memory, labels = self._memories.of(layer, grids.device)
        queries = functional.normalize(grids.float().flatten(0, 2), dim=-1)
        voters = most_similar(queries, memory, self.most)
        voted = self.take(layer, positions, voters, labels, grids)
        voted.varies.append(varies(grids))
        voted.finite.append(grids.isfinite().all())

    @property
    def most(self) -> int:
        """How many voters are looked for."""
        return max(self._config.k, self._config.other)

    def has(self, layer: Layer) -> bool:
        """Whether something was taken for a layer."""
        return layer in self._voted

    def take(
        self, layer: Layer, positions: Sequence[int], voters: Voters, labels: Tensor, like: Tensor
    ) -> Voted:
        """Let voters vote on the cells of images.

        Args:
            layer: By which layer they were found.
            positions: Places of the images in the group.
            voters: Those of all cells, image by image.
            labels: Label vectors of the memory, [cells classes].
            like: Grids of the images' size, [images height width dim].
        """
        config, shape = self._config, (*like.shape[:3], labels.shape[1])
        by_k, by_other = (
            vote(voters.first(k), labels, config.temperature).view(shape) for k in (config.k, config.other)
        )
        voted = self._voted.setdefault(layer, Voted())
        voted.by_k |= zip(positions, by_k, strict=True)
        voted.by_other |= zip(positions, by_other, strict=True)
        return voted

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        """Label vectors [height width classes] of every image, by both numbers of voters."""
        voted = self._voted.pop(layer)
        flags = {"varies": torch.stack(voted.varies).any()[None], FINITE: torch.stack(voted.finite)}
        vectors = {f"k {position}": grid for position, grid in voted.by_k.items()}
        return vectors | {f"other {position}": grid for position, grid in voted.by_other.items()} | flags

    def settle(self, finished: Mapping[Layer, Mapping[str, Tensor]]) -> dict[Layer, dict[str, Tensor]]:
        """Sparse confusion matrices: [entries 4], place of the image, true class, given class, pixels."""
        layers = list(finished)
        threads = torch.get_num_threads()
        with ThreadPoolExecutor(threads, "label", torch.set_num_threads, (1,)) as pool:
            images = list(pool.map(lambda place: self._tables(finished, place), range(len(self._scenes))))
        names = {"k": "", "other": f" k={self._config.other}", "ceiling": " ceiling"}
        by_layer = {}
        for number, layer in enumerate(layers):
            entries = {
                f"pixels{ending}": torch.from_numpy(
                    np.concatenate(
                        [sparse(image, tables[number][name]) for image, tables in enumerate(images)]
                    )
                )
                for name, ending in names.items()
            }
            by_layer[layer] = {**entries, "varies": finished[layer]["varies"]}
        return by_layer

    def _tables(
        self, finished: Mapping[Layer, Mapping[str, Tensor]], place: int
    ) -> list[dict[str, Integers]]:
        """Confusion matrices of one image, for each layer."""
        truth = self._read(self._scenes[place])
        ceilings: dict[Grid, Integers] = {}
        by_layer = []
        for arrays in finished.values():
            tables = {name: self._table(truth, arrays[f"{name} {place}"]) for name in ("k", "other")}
            height, width = arrays[f"k {place}"].shape[:2]
            if (height, width) not in ceilings:
                exact = shares(cell_counts(truth, (height, width), self._classes))
                ceilings[height, width] = self._table(truth, torch.from_numpy(exact).float())
            by_layer.append({**tables, "ceiling": ceilings[height, width]})
        return by_layer

    def _table(self, truth: Labels, vectors: Tensor) -> Integers:
        given = label_map(vectors, (truth.shape[1], truth.shape[0]))
        return confusion(truth, given, self._classes)


def sparse(place: int, table: Integers) -> NDArray[np.int32]:
    """The entries of a confusion matrix that are not 0, after the place of their image: [entries 4]."""
    truth, given = np.nonzero(table)
    image = np.full(len(truth), place)
    return np.stack([image, truth, given, table[truth, given]], axis=1).astype(np.int32)


class SetsQueryMeasurer:
    """Labels the cells of a few images by sets of layers, of which it is fed each layer.

    The images of a batch wait until all layers have shown them. Layers of one grid remember the same cells,
    so rows of their memories stand for the same places.
    """

    def __init__(self, labels: QueryMeasurer, memories: Memories, sets: Sequence[Layer]) -> None:
        """Start a group.

        Args:
            labels: What the votes of each set are given to.
            memories: What the layers remember.
            sets: The sets.
        """
        self._labels = labels
        self._memories = memories
        self._sets = sets
        self._gathered = Gathered(members_of(sets))
        self._reasons: dict[Layer, str] = {}

    def update(self, layer: Layer, positions: Sequence[int], grids: Tensor) -> None:
        done = self._gathered.add(layer, positions, grids)
        if not done:
            return
        grids_of = {
            layer_of: torch.stack([images[layer_of] for images in done.values()])
            for layer_of in done[min(done)]
        }
        memory = self._remembered(grids_of)
        shapes = {layer_of: (grids.shape[1], grids.shape[2]) for layer_of, grids in grids_of.items()}
        usable = [each for each in self._sets if {*each.members} <= {*memory}]
        for sets in of_one_grid(usable, shapes).values():
            members = members_of(sets)
            queries = {
                member: functional.normalize(grids_of[member].float().flatten(0, 2), dim=-1)
                for member in members
            }
            rows, named = (
                {member: memory[member][0] for member in members},
                {each: each.members for each in sets},
            )
            voters = most_similar_of_sets(queries, rows, named, self._labels.most)
            for each, neighbours in voters.items():
                members_grids = [grids_of[member] for member in each.members]
                voted = self._labels.take(
                    each, list(done), neighbours, memory[each.members[0]][1], members_grids[0]
                )
                voted.varies += map(varies, members_grids)
                voted.finite += [grid.isfinite().all() for grid in members_grids]

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        """Label vectors of every image, as of `QueryMeasurer`."""
        for member in layer.members:
            if member in self._reasons:
                raise ValueError(self._reasons[member])
        if not self._labels.has(layer):
            raise ValueError(MIXED)
        return self._labels.finish(layer)

    def settle(self, finished: Mapping[Layer, Mapping[str, Tensor]]) -> dict[Layer, dict[str, Tensor]]:
        """Confusion matrices, as of `QueryMeasurer`."""
        return self._labels.settle(finished)

    def _remembered(self, shown: Mapping[Layer, Tensor]) -> dict[Layer, tuple[Tensor, Tensor]]:
        """Unit vectors and label vectors of the layers that remember something."""
        memory = {}
        for layer, grids in shown.items():
            try:
                memory[layer] = self._memories.of(layer, grids.device)
            except ValueError as error:
                self._reasons[layer] = str(error)
        return memory
