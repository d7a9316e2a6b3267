"""The saved examples of a backbone, as the gallery reads them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layerboard.leaderboards.board.column import Column, Side
from layerboard.leaderboards.records.files import task_key
from layerboard.leaderboards.records.record import known_arrays
from layerboard.leaderboards.records.thumbnails import FOLDER, NAMES
from layerboard.tasks.framework.examples import VERSION

Array = NDArray[Any]


@dataclass(frozen=True)
class ExampleSet:
    """The examples of one backbone and task."""

    backbone: str
    layer: int  # its best layer
    pooling: str  # the pooling of its best score
    value: float  # the score of that layer
    metric: str
    arrays: Mapping[str, Array]  # the arrays of the file of examples (docs/reference/examples.md)
    folder: Path  # folder of the thumbnails

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """Indices of the layers that are drawn, in forward order: those of the file, and the best one.

        They are in the pooling of the best score, even if the file was drawn in another one.
        """
        numbers = self.arrays["layer"]
        wanted = np.isin(numbers, [*numbers[self.arrays["drawn"]], self.layer])
        pooled = self.arrays["pooling"] == self.pooling
        return np.flatnonzero(wanted & pooled & (self.arrays["tap"] == "block"))

    @property
    def layers(self) -> list[int]:
        """Numbers of the layers that are drawn."""
        return [int(number) for number in self.arrays["layer"][self.places]]

    @property
    def best(self) -> int:
        """Index of the best layer among those that are drawn."""
        return self.layers.index(self.layer)

    def at_layers(self, values: Sequence[str]) -> str:
        """Values of drawn layers in words: of the first, the best and the last, each once."""
        rows = sorted({0, self.best, len(self.layers) - 1})
        return ", ".join(f"{values[row]} at layer {self.layers[row]}" for row in rows)

    def at_best(self, name: str) -> Array:
        """A prediction array at the best layer."""
        return np.asarray(self.arrays[name][self.places[self.best]])

    def drawn(self, name: str) -> Array:
        """A prediction array at the layers that are drawn: [layers ...]."""
        return np.asarray(self.arrays[name][self.places])

    @cached_property
    def files(self) -> dict[str, Path]:
        """Thumbnail files by the name of the image."""
        pairs = zip(self.arrays["picture"].tolist(), self.arrays[NAMES].tolist(), strict=True)
        return {str(name): self.folder / str(file) for name, file in pairs if file}

    @cached_property
    def _names(self) -> dict[str, str]:
        folders = self.arrays.get("class_folder", np.zeros(0, str))
        names = self.arrays.get("class_name", np.zeros(0, str))
        return dict(zip(folders.tolist(), names.tolist(), strict=True))

    def called(self, folder: object) -> str:
        """A class in words: its name, or that of its folder."""
        return self._names.get(str(folder), str(folder))


ExampleSets = Sequence[ExampleSet]  # of several backbones, the best first


def read_examples(output: Path, column: Column, best: Side) -> ExampleSet | None:
    """A backbone's examples in a column; None if the records differ or its best layer has none."""
    key = task_key(column.task, column.dataset, column.protocol)
    arrays = known_arrays(output / "examples", key, [best.backbone])
    if not np.array_equal(arrays.get("version", -1), VERSION):
        return None
    facts = best.backbone, best.layer, best.pooling, best.score
    examples = ExampleSet(*facts, column.metric, arrays, output / FOLDER)
    return examples if best.layer in examples.layers else None
