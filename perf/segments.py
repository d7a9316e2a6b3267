"""Segmentation in context of all layers: time beside products and pass, memory beside what is stated."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from perf.measuring import Row, Setting, take_turns
from perf.memory import BUDGET, not_here, peak
from perf.networks import noise, random_vit, show
from tasks.base import Measurements
from tasks.datasets.base import FileSample
from tasks.datasets.scenes import Scene
from tasks.metrics.label_vote import ROWS_CPU, SIMILARITIES_CPU
from tasks.protocols import STANDARD
from tasks.registry import config_of
from tasks.segmentation.in_context import Memories, QueryMeasurer, SetsQueryMeasurer
from zoo.spec import Layer

CLASSES = 21
PHOTO = (500, 375)
LAYERS = tuple(Layer(number) for number in range(1, 14))
WIDTH = 384
DRAWN = 4096  # rows that are drawn at a time


def segment_rows(setting: Setting) -> Iterator[Row]:
    """An image at the view of `segment`, 13 layers of ViT-S/16, by 100,000 remembered cells each."""
    cells, rows = (14, 2_000) if setting.quick else (28, 100_000)
    backbone = random_vit("ViT-S/16", setting)
    pixels = noise(1, setting, cells * backbone.spec.patch_size)
    memories, grid = Memories(Remembered(rows, WIDTH), {}), grids(1, cells, WIDTH).to(setting.device)
    queries = grid.flatten(0, 2)
    bank = torch.randn(rows, WIDTH, generator=torch.Generator().manual_seed(0)).to(setting.device)

    def products() -> None:
        for _ in LAYERS:
            for some in torch.split(bank, ROWS_CPU):
                queries @ some.T

    rounds = take_turns(
        {
            "products": products,
            "pass": lambda: show(backbone, pixels, [], backbone.spec.layers),
            "segment": lambda: labelled(memories, grid),
        },
        max(1, setting.rounds // 2),
        setting.device,
    )
    what = f"segment, an image of {cells} x {cells} cells, {len(LAYERS)} layers, by {rows:,} x {WIDTH} cells"
    yield Row(
        f"{what}, over the products alone", rounds.ratio("segment", "products"), figures=rounds.figures()
    )
    yield Row("the same over the pass alone (ViT-S/16)", rounds.ratio("segment", "pass"))


def segment_memory_rows(setting: Setting) -> Iterator[Row]:
    """Its peak memory, of fresh processes, beside what is stated and beside that of more images."""
    cells, rows = (14, 2_000) if setting.quick else (28, 100_000)
    extra = "memory of segment, over what is stated: rows and labels, a layer that is read, one search"
    images = "peak memory of the same over four images, over one"
    if absent := not_here(setting, extra, images):
        yield from absent
        return
    work = "perf.segments:labelling"
    bare, single, four = (peak(work, cells, *numbers) for numbers in ((0, 1), (rows, 1), (rows, 4)))
    stated = stated_bytes(rows, WIDTH) / (1 << 20)
    note = f"{single:,.0f} MiB less {bare:,.0f} MiB without a memory; stated {stated:,.0f} MiB"
    yield Row(extra, (single - bare) / stated, budget=BUDGET, note=note)
    yield Row(images, four / single, budget=BUDGET, note=f"{four:,.0f} MiB over {single:,.0f} MiB")


def stated_bytes(rows: int, width: int) -> int:
    """What all layers remember, float16, and their labels; one layer more, as it is read; and one search."""
    remembered = (len(LAYERS) + 1) * rows * (2 * width + 4 * CLASSES)
    return remembered + 4 * (min(rows, ROWS_CPU) * width + SIMILARITIES_CPU)


class Remembered(Mapping[Layer, Sequence[Measurements]]):
    """Random cells that layers remember, drawn whenever a layer is asked for, as they are read from disk."""

    def __init__(self, rows: int, width: int) -> None:
        self._rows = rows
        self._width = width

    def __getitem__(self, layer: Layer) -> list[Measurements]:
        random = np.random.default_rng(layer.index)
        rows = np.empty((self._rows, self._width), np.float16)
        for start in range(0, self._rows, DRAWN):  # what is drawn takes more memory than what is kept
            part = random.standard_normal((len(rows[start : start + DRAWN]), self._width), np.float32)
            rows[start : start + DRAWN] = part / np.linalg.norm(part, axis=1, keepdims=True)
        pixels = random.integers(0, 256, (self._rows, CLASSES), dtype=np.int32)
        return [{"rows": rows, "pixels": pixels}]

    def __iter__(self) -> Iterator[Layer]:
        return iter(LAYERS)

    def __len__(self) -> int:
        return len(LAYERS)


def grids(images: int, cells: int, width: int) -> Tensor:
    """Random grids of so many images."""
    return torch.randn(images, cells, cells, width, generator=torch.Generator().manual_seed(1))


def labelled(
    memories: Memories, grid: Tensor, layers: Sequence[Layer] = LAYERS, sets: Sequence[Layer] = ()
) -> object:
    """What is kept of images of which every layer has the same grids [images height width dim].

    Args:
        memories: What layers remember.
        grid: The grids.
        layers: Layers that are shown.
        sets: Sets of them that label in their place.
    """
    random = np.random.default_rng(0)
    truth: NDArray[np.uint8] = random.integers(0, CLASSES, PHOTO[::-1]).astype(np.uint8)
    scenes = [Scene(FileSample("", ""), PHOTO, Path())] * len(grid)
    numbers = (lambda _: truth), CLASSES, scenes, config_of(STANDARD, "segment").vote, memories
    measurer = SetsQueryMeasurer(*numbers, sets) if sets else QueryMeasurer(*numbers)
    for layer in layers:
        measurer.update(layer, range(len(grid)), grid)
    finished = {layer: measurer.finish(layer) for layer in sets or layers}
    return measurer.settle(
        {layer: {name: array.cpu() for name, array in arrays.items()} for layer, arrays in finished.items()}
    )


def labelling(cells: str, rows: str, images: str) -> Callable[[], None]:
    """The labelling of images one after the other, by so many remembered cells of each layer."""
    grid, memories = grids(1, int(cells), WIDTH), Memories(Remembered(max(int(rows), 64), WIDTH), {})

    def work() -> None:
        for _ in range(int(images)):
            labelled(memories, grid)

    return work
