"""COCO val2017: ``images/val2017/*.jpg`` and ``annotations/instances_val2017.json``."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from tasks.datasets.base import (
    Count,
    Coverage,
    Data,
    DatasetEntry,
    FileSample,
    Part,
    Sample,
)
from tasks.datasets.coco_format import orphan_notes, read_coco_file
from tasks.datasets.files import is_file, is_folder, require_size
from zoo.errors import InputError


class Region(Protocol):
    """An annotated object or part in an image."""

    @property
    def key(self) -> str:
        """A name that no other has and that stays the same from run to run."""
        ...

    @property
    def label(self) -> int:
        """Number of the region's category."""
        ...

    def mask(self) -> NDArray[np.uint8]:
        """Binary mask at image size, values 0 and 1, [height width]."""
        ...


@dataclass(frozen=True, slots=True)
class RegionImage:
    """An image with its annotated regions, which are never empty; size is (width, height)."""

    sample: Sample
    size: tuple[int, int]
    regions: tuple[Region, ...]


@dataclass(frozen=True, slots=True)
class Regions(Data):
    """Images with object or part masks.

    Attributes:
        name: Name of the dataset.
        images: The images.
        categories: Names by the ids of categories.
        coverage: How complete they are.
        edition: What tells them from others of the dataset that are shown alike: the images that a protocol
            takes, or their order; "" for the usual ones.
    """

    name: str
    images: tuple[RegionImage, ...]
    categories: dict[int, str] = field(hash=False)
    coverage: Coverage
    edition: str = ""

    def limited(self, limit: int | None) -> Self:
        """The first images."""
        if limit is None or limit >= len(self.images):
            return self
        return replace(self, images=self.images[:limit], coverage=self.coverage.limited(limit, "image"))


@dataclass(frozen=True, slots=True)
class CocoEntry(DatasetEntry[Regions]):
    """A dataset in the layout of COCO, and its official counts.

    Attributes:
        name: Name of the dataset.
        folder: Its folder under the data folder.
        images_folder: Folder of the images in it; without its parent it is found, too.
        annotations: File of instances in it.
        images: Official number of images in that file.
        first: Number of images that are used, by ascending id; those without annotations count.
    """

    name: str = "coco-val2017"
    folder: str = "coco"
    images_folder: str = "images/val2017"
    annotations: str = "annotations/instances_val2017.json"
    images: int = 5000
    first: int = 1000

    @property
    def layout(self) -> str:
        """The files that are expected below the data folder, in words."""
        return f"{self.folder}/{self.images_folder}/*.jpg and {self.folder}/{self.annotations}"

    def read(self, data: Path) -> Regions:
        """The first images of COCO, by ascending id, that are on disk and have usable annotations."""
        root = self.root(data)
        file = read_coco_file(root / self.annotations)
        folder = _images_folder(root, self)
        wanted = file.images[: self.first]
        there = [image for image in wanted if is_file(folder / image.file_name)]
        if not there:
            raise InputError(
                f"expected the images that {file.path} lists (such as {wanted[0].file_name}) in {folder}, "
                "found none; unpack them there"
            )
        images: list[RegionImage] = []
        for image in there:
            path = folder / image.file_name
            require_size(path, image.size, file.path.name)
            regions = file.regions(image, f"{image.file_name}/")
            if regions:
                images.append(RegionImage(FileSample(image.file_name, str(path)), image.size, regions))
        if not images:
            raise InputError(f"expected annotations of the images in {folder} in {file.path}, found none")
        counts = (
            Count("images listed", len(file.images), self.images),
            Count("images used", len(there), self.first),
            Count("images with regions", len(images)),
            Count("regions", sum(len(image.regions) for image in images)),
        )
        categories = {identity: category.name for identity, category in file.categories.items()}
        return Regions(self.name, tuple(images), categories, Coverage(counts, orphan_notes([file])))

    def contents(self, data: Path) -> Iterable[Part]:
        """The annotations, and the listed images that are there."""
        root = data / self.folder
        folder = _images_folder(root, self)
        images = (folder / image.file_name for image in read_coco_file(root / self.annotations).images)
        yield Part("files", [root / self.annotations, *filter(is_file, images)])


COCO_VAL2017 = CocoEntry()


def _images_folder(root: Path, entry: CocoEntry) -> Path:
    """Folder of the images: the entry's, or the same without its parent; raises InputError."""
    folders = [root / entry.images_folder, root / Path(entry.images_folder).name]
    for folder in folders:
        if is_folder(folder):
            return folder
    raise InputError(f"expected the images of {entry.name} in {folders[0]} or {folders[1]}, found neither")
