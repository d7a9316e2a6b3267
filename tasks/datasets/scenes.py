"""Images with the class of every pixel: what the layouts of VOC 2012 and ADE20k have in common."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np

from tasks.datasets.base import Count, Coverage, Data, FileSample, Sample
from tasks.datasets.files import image_size, is_file, names_and_sizes, some
from tasks.datasets.masks import read_mask
from tasks.metrics.arrays import VOID, Labels
from zoo.errors import InputError


@dataclass(frozen=True, slots=True)
class Scene:
    """An image and the file that says the class of each of its pixels; size is (width, height) of both."""

    sample: Sample
    size: tuple[int, int]
    mask: Path


@dataclass(frozen=True, slots=True)
class Scenes(Data):
    """A semantic segmentation dataset: images to remember (train) and images to label (val), by sorted key.

    Attributes:
        name: Name of the dataset.
        train: Images whose labels are known.
        val: Images that are labelled.
        classes: Names of the classes, from 0.
        offset: Pixel value of class 0; lower values are no class, as 255 is.
        memory: How many cells of the training images are remembered at most.
        coverage: How complete it is.
        most: The same by protocols with a number of their own; None for theirs.
    """

    name: str
    train: tuple[Scene, ...]
    val: tuple[Scene, ...]
    classes: tuple[str, ...]
    offset: int
    memory: int
    coverage: Coverage
    most: int | None = None

    def limited(self, limit: int | None) -> Self:
        """The first images of each split."""
        if limit is None or limit >= max(len(self.train), len(self.val)):
            return self
        coverage = self.coverage.limited(limit, "image", rest=" of each split")
        return replace(self, train=self.train[:limit], val=self.val[:limit], coverage=coverage)

    @property
    def truth(self) -> tuple[object, ...]:
        """Names and sizes of the masks, and what their values mean."""
        masks = (scene.mask for scene in (*self.train, *self.val))
        return names_and_sizes(masks), self.classes, self.offset, self.memory


@dataclass(frozen=True, slots=True)
class FoundScenes:
    """Images of a split that are there with their masks.

    Attributes:
        scenes: They, in order.
        notes: Which others have a mask or an image alone, in words.
    """

    scenes: tuple[Scene, ...]
    notes: tuple[str, ...]


def find_scenes(files: Iterable[tuple[str, Path, Path]], where: str) -> FoundScenes:
    """Those of some images that are there.

    Args:
        files: Key, image and mask of each.
        where: The split, in words.

    Raises:
        InputError: None is there, or a mask has another size than its image.
    """
    scenes: list[Scene] = []
    bare: list[str] = []
    alone: list[str] = []
    for key, image, mask in files:
        there = is_file(image), is_file(mask)
        if all(there):
            scenes.append(Scene(FileSample(key, str(image)), _one_size(image, mask), mask))
        elif any(there):
            (bare if there[0] else alone).append(key)
    if not scenes:
        raise InputError(f"expected images with masks of {where}, found none")
    notes = [f"{len(bare):,} images of {where} have no mask ({some(bare)})"] if bare else []
    notes += [f"{len(alone):,} masks of {where} have no image ({some(alone)})"] if alone else []
    return FoundScenes(tuple(scenes), tuple(notes))


def coverage_of(memory: FoundScenes, queries: FoundScenes, train_images: int, val_images: int) -> Coverage:
    """How complete both splits are, of which the official dataset has so many images."""
    counts = (
        Count("training images", len(memory.scenes), train_images),
        Count("validation images", len(queries.scenes), val_images),
    )
    return Coverage(counts, (*memory.notes, *queries.notes))


def require_apart(train: Collection[str], val: Collection[str], where: str) -> None:
    """Raise InputError where an image is in both splits: it would find itself in the memory."""
    if both := sorted({*train} & {*val}):
        raise InputError(f"expected no image in both splits of {where}, found {some(both)}")


def read_classes(data: Scenes, scene: Scene) -> Labels:
    """The class of each pixel of an image, uint8 [height width]; 255 for none.

    Raises:
        UnreadableImageError: The mask is missing, truncated or foreign.
        InputError: It holds colours, or a value that is no class.
    """
    values = read_mask(scene.mask, "classes")
    # values below the first class wrap round to above the last one
    classes = np.where(values < data.offset, np.uint8(VOID), values - np.uint8(data.offset))
    classes = np.where(values == VOID, np.uint8(VOID), classes)
    if (largest := int(classes[classes != VOID].max(initial=0))) >= len(data.classes):
        raise InputError(
            f"expected pixel values up to {data.offset + len(data.classes) - 1}, and {VOID} for none, in "
            f"{scene.mask}, found {largest + data.offset}"
        )
    return classes


def every_value(data: Scenes) -> Scenes:
    """The dataset with every pixel value as a class: ADE20k's 0 ("other") is one."""
    return replace(data, offset=0, classes=(*("other",) * data.offset, *data.classes))


def _one_size(image: Path, mask: Path) -> tuple[int, int]:
    size, other = image_size(image), image_size(mask)
    if size != other:
        raise InputError(
            f"expected an image and its mask of one size, found {size[0]} x {size[1]} in {image} and "
            f"{other[0]} x {other[1]} in {mask}"
        )
    return size
