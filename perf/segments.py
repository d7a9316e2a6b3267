"""Segmentation in context of all layers: time beside products and pass, memory beside what is stated.

``python -m perf.segments CELLS ROWS IMAGES`` prints the peak of its own process, in MiB.
"""

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from perf.memory import STATUS
from perf.networks import noise, random_vit, show
from perf.rounds import Setting, take_turns
from perf.rows import Budget, Row
from tasks.base import Measurements
from tasks.datasets.base import FileSample
from tasks.datasets.scenes import Scene
from tasks.metrics.label_vote import ROWS_CPU, SIMILARITIES_CPU
from tasks.protocols import STANDARD
from tasks.registry import config_of
from tasks.segmentation.in_context import Memories, QueryMeasurer
from zoo.spec import Layer

CLASSES = 21
PHOTO = (500, 375)
LAYERS = tuple(Layer(number) for number in range(1, 14))
WIDTH = 384
DRAWN = 4096
"""Rows that are drawn at a time."""


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
    if not STATUS.is_file() or setting.device.type != "cpu":
        for what in (extra, images):
            yield Row(what, None, budget=Budget(1.1), note="peaks are those of a Linux process on a CPU")
        return
    bare, one, four = (_peak(cells, *numbers) for numbers in ((0, 1), (rows, 1), (rows, 4)))
    stated = stated_bytes(rows, WIDTH) / (1 << 20)
    said = f"{one:,.0f} MiB less {bare:,.0f} MiB without a memory; stated {stated:,.0f} MiB"
    yield Row(extra, (one - bare) / stated, budget=Budget(1.1), note=said)
    yield Row(images, four / one, budget=Budget(1.1), note=f"{four:,.0f} MiB over {one:,.0f} MiB")


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


def labelled(memories: Memories, grid: Tensor) -> object:
    """What is kept of images of which every layer has the same grids [images height width dim]."""
    random = np.random.default_rng(0)
    truth: NDArray[np.uint8] = random.integers(0, CLASSES, PHOTO[::-1]).astype(np.uint8)
    scenes = [Scene(FileSample("", ""), PHOTO, Path())] * len(grid)
    measurer = QueryMeasurer(lambda _: truth, CLASSES, scenes, config_of(STANDARD, "segment").vote, memories)
    for layer in LAYERS:
        measurer.update(layer, range(len(grid)), grid)
    finished = {layer: measurer.finish(layer) for layer in LAYERS}
    return measurer.settle(
        {layer: {name: one.cpu() for name, one in arrays.items()} for layer, arrays in finished.items()}
    )


def _peak(cells: int, rows: int, images: int) -> float:
    words = ["perf.segments", str(cells), str(rows), str(images)]
    run = subprocess.run([sys.executable, "-m", *words], check=True, capture_output=True, text=True)
    return float(run.stdout)


def _measure(cells: int, rows: int, images: int) -> float:
    grid = grids(1, cells, WIDTH)
    memories = Memories(Remembered(max(rows, 64), WIDTH), {})
    Path("/proc/self/clear_refs").write_text("5")
    for _ in range(images):
        labelled(memories, grid)
    return int(STATUS.read_text().split("VmHWM:")[1].split()[0]) / 1024


def main() -> None:
    """Print the peak of this process."""
    cells, rows, images = map(int, sys.argv[1:])
    print(_measure(cells, rows, images))


if __name__ == "__main__":
    main()
