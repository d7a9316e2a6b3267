"""Semantic segmentation datasets in the layouts of PASCAL VOC 2012 and ADE20k."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from layerboard.tasks.datasets.base import Count, Coverage, Data, DatasetEntry, FileSample, Needed, Sample
from layerboard.tasks.datasets.integrity import require, require_no
from layerboard.tasks.datasets.reading import files as storage
from layerboard.tasks.datasets.reading.masks import read_mask
from layerboard.tasks.metrics.arrays import VOID, Labels
from layerboard.zoo.errors import some

Files = Mapping[str, tuple[Path, Path]]  # image and mask of each key, whether or not they exist


@dataclass(frozen=True, slots=True)
class Scene:
    """An image and its mask file with the class of each pixel; size is (width, height) of both."""

    sample: Sample
    size: tuple[int, int]
    mask: Path


@dataclass(frozen=True, slots=True)
class Scenes(Data):
    """Semantic segmentation data: images for the memory (train) and images to label (val), sorted by key."""

    name: str
    train: tuple[Scene, ...]
    val: tuple[Scene, ...]
    classes: tuple[str, ...]  # names of the classes, from 0
    offset: int  # pixel value of class 0; lower values and 255 are no class
    memory: int  # largest number of remembered cells of the training images
    coverage: Coverage
    most: int | None = None  # the same for protocols with their own number; None for their number
    firsts = ("train", "val")
    items = "images of each split"

    @property
    def truth(self) -> tuple[object, ...]:
        masks = (scene.mask for scene in (*self.train, *self.val))
        return storage.names_and_sizes(masks), self.classes, self.offset, self.memory


@dataclass(frozen=True, slots=True)
class SceneEntry(DatasetEntry[Scenes]):
    """A dataset with the class of every pixel."""

    roles = ("scenes",)

    classes: ClassVar[tuple[str, ...]]
    offset: ClassVar[int]
    name: str
    folder: str
    train_images: int  # official number of training images
    val_images: int  # official number of validation images
    memory: int = 100_000  # largest number of remembered cells of training images in `standard`
    most: int | None = None  # the same for protocols with their own number; None for their number

    @abstractmethod
    def splits(self, root: Path) -> dict[str, Files]:
        """The files of the train and the val split; raises InputError."""

    def read(self, data: Path) -> Scenes:
        """The images of both splits that exist with their masks, sorted by key."""
        splits = self.splits(self.root(data))
        train, val = ({key.removeprefix(f"{split}/") for key in files} for split, files in splits.items())
        # such images would be matched with themselves in the memory
        require_no(sorted(train & val), f"no image in both splits of {self.name}")
        notes: list[str] = []
        remembered, asked = (
            _find_scenes(files, f"{split} of {self.name}", notes) for split, files in splits.items()
        )
        counts = (
            Count("training images", len(remembered), self.train_images),
            Count("validation images", len(asked), self.val_images),
        )
        numbers = (self.classes, self.offset, self.memory, Coverage(counts, tuple(notes)), self.most)
        return Scenes(self.name, remembered, asked, *numbers)


@dataclass(frozen=True, slots=True)
class VocEntry(SceneEntry):
    """A dataset in the layout of PASCAL VOC 2012: images, palette masks and lists of ids."""

    # numbered as in the development kit
    classes = (
        "background",
        *("aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow"),
        *("diningtable", "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa", "train"),
        "tvmonitor",
    )
    offset = 0
    form = (
        "{0.folder}/ImageSets/Segmentation/{{{0.train},val}}.txt, {0.folder}/JPEGImages/*.jpg, "
        "{0.folder}/{0.train_masks}/*.png and {0.folder}/SegmentationClass/*.png"
    )
    needed = (
        Needed("ImageSets/Segmentation/", "the lists"),
        Needed("{0.train_masks}/", "the masks"),
        Needed("ImageSets/Segmentation/{0.train}.txt", "the list of training images"),
        Needed("ImageSets/Segmentation/val.txt", "the list of validation images"),
    )

    name: str = "voc-2012-val"
    folder: str = "VOCdevkit/VOC2012"
    train_images: int = 1464
    val_images: int = 1449
    train: str = "train"  # file of the ids of training images, in ``ImageSets/Segmentation``
    train_masks: str = "SegmentationClass"  # folder of their masks

    def splits(self, root: Path) -> dict[str, Files]:
        lists = root / "ImageSets" / "Segmentation"
        return {
            split: {
                key: (root / "JPEGImages" / f"{key}.jpg", root / masks / f"{key}.png")
                for key in storage.read_names(lists / f"{split}.txt", "image id")
            }
            for split, masks in ((self.train, self.train_masks), ("val", "SegmentationClass"))
        }


VOC_2012 = VocEntry()
VOC_2012_AUG = VocEntry(
    name="voc-2012-aug-val", train="trainaug", train_masks="SegmentationClassAug", train_images=10_582
)
"""With the masks of Hariharan et al., Semantic Contours from Inverse Detectors, ICCV 2011."""


@dataclass(frozen=True, slots=True)
class AdeEntry(SceneEntry):
    """The layout of ADE20k's scene parsing challenge: values 1 to 150 of grey masks are classes 0 to 149."""

    classes = tuple(f"class {number}" for number in range(1, 151))  # numbered as in ``objectInfo150.txt``
    offset = 1
    form = (
        "{0.folder}/images/{{training,validation}}/*.jpg and "
        "{0.folder}/annotations/{{training,validation}}/*.png"
    )
    needed = tuple(
        Needed(f"{folder}/{split}/", what)
        for split in ("training", "validation")
        for folder, what in (("images", "the images"), ("annotations", "the masks"))
    )

    name: str = "ade20k-val"
    folder: str = "ADEChallengeData2016"
    train_images: int = 20_210
    val_images: int = 2_000

    def splits(self, root: Path) -> dict[str, Files]:
        splits: dict[str, Files] = {}
        for split in ("training", "validation"):
            images, masks = root / "images" / split, root / "annotations" / split
            names = (*storage.file_names(images, (".jpg",)), *storage.file_names(masks, (".png",)))
            splits[split] = {
                f"{split}/{stem}": (images / f"{stem}.jpg", masks / f"{stem}.png")
                for stem in sorted({Path(name).stem for name in names})
            }
        return splits


ADE20K = AdeEntry()


def _find_scenes(files: Files, where: str, notes: list[str]) -> tuple[Scene, ...]:
    """Images that exist with masks of equal size; the others are noted; raises InputError."""
    scenes: list[Scene] = []
    alone: dict[str, list[str]] = {"images": [], "masks": []}
    for key, (image, mask) in files.items():
        if not (storage.is_file(image) and storage.is_file(mask)):
            for kind, path in zip(alone, (image, mask), strict=True):
                alone[kind] += [key] if storage.is_file(path) else []
            continue
        size = storage.image_size(image)
        storage.require_size(mask, size, f"its image {image}", storage.RESAVE)
        scenes.append(Scene(FileSample(key, str(image)), size, mask))
    require(scenes, f"images with masks of {where}")
    for (kind, keys), lacking in zip(alone.items(), ("mask", "image"), strict=True):
        notes += [f"{len(keys):,} {kind} of {where} have no {lacking} ({some(keys)})"] if keys else []
    return tuple(scenes)


def read_classes(data: Scenes, scene: Scene) -> Labels:
    """Class of each pixel of an image, uint8 [height width]; 255 for none; raises InputError."""
    values = read_mask(scene.mask, "classes")
    # values below the first class wrap round to values above the last one
    classes = np.where(values < data.offset, np.uint8(VOID), values - np.uint8(data.offset))
    classes = np.where(values == VOID, np.uint8(VOID), classes)
    largest = int(classes[classes != VOID].max(initial=0))
    known = f"pixel values up to {data.offset + len(data.classes) - 1}, and {VOID} for none, in {scene.mask}"
    require(largest < len(data.classes), known, largest + data.offset)
    return classes


def every_value(data: Scenes) -> Scenes:
    """The dataset with every pixel value as a class, including ADE20k's 0 ("other")."""
    return replace(data, offset=0, classes=(*("other",) * data.offset, *data.classes))
