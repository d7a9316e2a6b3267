"""Segmentation in context of all layers: time beside products and pass, memory beside what is stated."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from perf.grids import normal
from perf.measuring import Row, Setting, take_turns
from perf.memory import BUDGET, not_here, peak
from perf.networks import noise, random_network, show
from tasks.base import Measurements
from tasks.datasets.base import FileSample
from tasks.datasets.scenes import Scene
from tasks.metrics.label_vote import ROWS_CPU, SIMILARITIES_CPU
from tasks.protocols import STANDARD
from tasks.registry import config_of
from tasks.segmentation.in_context import Memories, QueryMeasurer, labelled_cells
from tasks.sets import sets_of
from zoo.spec import Layer

CLASSES = 21
PHOTO = (500, 375)
LAYERS = tuple(Layer(number) for number in range(1, 14))
BLOCKS = LAYERS[:12]
# members by set
NAMED, PAIRS = (
    {layers: layers.members for layers in sets_of(names, 12, BLOCKS)}
    for names in (("last4", "quarters", "all"), ("pairs",))
)
WIDTH = 384
DRAWN = 4096  # rows that are drawn at a time


def segment_rows(setting: Setting) -> Iterator[Row]:
    """An image at the view of `segment`, 13 layers of ViT-S/16, by 100,000 remembered cells each."""
    cells, rows = cells_and_rows(setting)
    backbone = random_network("ViT-S/16", setting)
    pixels = noise(1, setting, cells * backbone.spec.patch_size)
    memories, grid = remembered(rows), grids(cells).to(setting.device)
    queries = grid.flatten(0, 2)
    bank = normal((rows, WIDTH), setting)

    def products() -> None:
        for _ in LAYERS:
            for some in torch.split(bank, ROWS_CPU):
                queries @ some.T

    candidates = {
        "products": products,
        "pass": lambda: show(backbone, pixels, layers=backbone.spec.layers),
        "segment": lambda: labelled(memories, grid),
    }
    rounds = take_turns(setting, candidates, 0.5)
    what = f"segment, an image of {cells} x {cells} cells, {len(LAYERS)} layers, by {rows:,} x {WIDTH} cells"
    yield rounds.row(f"{what}, over the products alone", ("segment", "products"))
    yield Row("the same over the pass alone (ViT-S/16)", rounds.ratio("segment", "pass"))


def segment_memory_rows(setting: Setting) -> Iterator[Row]:
    """The peak memory of `segment`, of fresh processes, beside what is stated and that of more images."""
    cells, rows = cells_and_rows(setting)
    extra = "memory of segment, over what is stated: rows and labels, a layer that is read, one search"
    images = "peak memory of the same over four images, over one"
    if absent := not_here(setting, extra, images):
        yield from absent
        return
    work = "perf.segments:labelling"
    bare, single, four = (peak(work, cells, *numbers) for numbers in ((0, 1), (rows, 1), (rows, 4)))
    # what all layers remember, float16, and their labels; one layer more, as it is read; and one search
    stated = (len(LAYERS) + 1) * rows * (2 * WIDTH + 4 * CLASSES)
    stated += 4 * (min(rows, ROWS_CPU) * WIDTH + SIMILARITIES_CPU)
    mebibytes = stated / (1 << 20)
    note = f"{single:,.0f} MiB less {bare:,.0f} MiB without a memory; stated {mebibytes:,.0f} MiB"
    yield Row(extra, (single - bare) / mebibytes, budget=BUDGET, note=note)
    yield Row(images, four / single, budget=BUDGET, note=f"{four:,.0f} MiB over {single:,.0f} MiB")


def cells_and_rows(setting: Setting) -> tuple[int, int]:
    """Cells of a side of the image, and how many cells each layer remembers."""
    return (14, 2_000) if setting.quick else (28, 100_000)


class Remembered(dict[Layer, Sequence[Measurements]]):
    """Random cells that layers remember, drawn whenever a layer is asked for, as they are read from disk."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self._rows = rows

    def __missing__(self, layer: Layer) -> list[Measurements]:
        random = np.random.default_rng(layer.index)
        rows = np.empty((self._rows, WIDTH), np.float16)
        for start in range(0, self._rows, DRAWN):  # what is drawn takes more memory than what is kept
            part = random.standard_normal((len(rows[start : start + DRAWN]), WIDTH), np.float32)
            rows[start : start + DRAWN] = part / np.linalg.norm(part, axis=1, keepdims=True)
        pixels = random.integers(0, 256, (self._rows, CLASSES), dtype=np.int32)
        return [{"rows": rows, "pixels": pixels}]


def remembered(rows: int) -> Memories[tuple[Tensor, Tensor]]:
    """What all layers remember: so many random cells each."""
    return Memories(Remembered(rows), {}, labelled_cells)


def grids(cells: int) -> Tensor:
    """The random grid of an image, [1 cells cells WIDTH]."""
    return torch.randn(1, cells, cells, WIDTH, generator=torch.Generator().manual_seed(1))


def labelled(
    memories: Memories[tuple[Tensor, Tensor]],
    grid: Tensor,
    layers: Sequence[Layer] = LAYERS,
    sets: Sequence[Layer] = (),
) -> object:
    """What is kept of images of which every layer has the same grids [images height width dim].

    The layers are shown, and sets of them, if there are any, label in their place.
    """
    truth: NDArray[np.uint8] = np.random.default_rng(0).integers(0, CLASSES, PHOTO[::-1]).astype(np.uint8)
    scenes = [Scene(FileSample("", ""), PHOTO, Path())] * len(grid)
    config = config_of(STANDARD, "segment").vote
    measurer = QueryMeasurer(lambda _: truth, CLASSES, scenes, config, memories, sets)
    for layer in layers:
        measurer.update(layer, range(len(grid)), grid)
    finished = {}
    for layer in sets or layers:
        finished[layer] = {name: array.cpu() for name, array in measurer.finish(layer).items()}
    return measurer.settle(finished)


def labelling(cells: str, rows: str, images: str, sets: str = "") -> Callable[[], None]:
    """The labelling of images one after the other by all layers, and of one by the named sets of them.

    Each layer remembers so many cells. Any word for ``sets`` asks for them.
    """
    grid, memories = grids(int(cells)), remembered(max(int(rows), 64))

    def work() -> None:
        for _ in range(int(images)):
            labelled(memories, grid)
        if sets:
            labelled(memories, grid, BLOCKS, [*NAMED])

    return work
