"""Datasets with a folder of images and a table of numbers or labels."""

from dataclasses import dataclass, replace
from pathlib import Path

from layerboard.tasks.datasets.base import Count, DatasetEntry
from layerboard.tasks.datasets.folder import read_folder
from layerboard.tasks.datasets.integrity import mismatch
from layerboard.tasks.datasets.reading.labels import Labelling
from layerboard.tasks.datasets.targets import Targets


@dataclass(frozen=True, slots=True)
class TabledEntry(DatasetEntry[Targets]):
    """A folder of images, and a table of the values to predict."""

    form = "{0.folder}/images/* and {0.folder}/{0.table}"

    name: str
    table: str  # file in the folder
    images: int  # official number
    roles: tuple[str, ...]  # ``numbers``, or ``labels`` if the table has several an image
    folder: str = "targets"

    def read(self, data: Path) -> Targets:
        root = self.root(data)
        read = read_folder(root / "images", Labelling(root / self.table))
        if not isinstance(read, Targets):
            raise mismatch(f"columns of numbers or labels in {root / self.table}", "classes")
        counts = (Count("images", len(read.samples), self.images),)
        return replace(read.named(self.name), coverage=replace(read.coverage, counts=counts))
