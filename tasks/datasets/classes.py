"""Images with classes, or without: folders of classes, labels, and a split where there is none."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from layerboard.tasks.datasets.base import Count, Coverage, Data, Sample, counted
from layerboard.tasks.datasets.files import IMAGE_EXTENSIONS, file_names, folder_names, require_directory
from layerboard.tasks.datasets.instances import copies_of, of_classes
from layerboard.zoo.errors import InputError, some

SHARE = 20  # percent of each class that become queries where there is no split
SEED = 0  # seed of the hash of names that chooses them
MADE = f"val made of {SHARE} % of each class of train by the hash of file names, seed {SEED}"  # for people
MADE_SPLIT = f"train, val ({SHARE} % of each class, seed {SEED})"  # the same, in the field `split` of records

LabelledSample = tuple[str, Sample]  # an image behind the name of its class


@dataclass(frozen=True, slots=True)
class ClassImages:
    """Images with class labels, in sorted key order."""

    samples: tuple[Sample, ...]
    labels: NDArray[np.int64]  # class index of each image, int64 [images]
    classes: tuple[str, ...]  # class names; an index is the rank of the name in sorted order
    groups: tuple[str, ...] = ()  # what each image belongs to, "" for nothing; empty where none does

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the images."""
        return tuple(sample.key for sample in self.samples)

    @property
    def clusters(self) -> tuple[str, ...]:
        """What each image is sampled with: its group, or it alone."""
        pairs = zip(self.groups, self.keys, strict=True)
        return tuple(group or key for group, key in pairs) if self.groups else self.keys

    @property
    def named(self) -> list[LabelledSample]:
        """Each image behind the name of its class."""
        return [*zip(map(self.classes.__getitem__, self.labels), self.samples, strict=True)]

    def limited(self, limit: int) -> "ClassImages":
        """The first images of each class."""
        places = [np.flatnonzero(self.labels == label)[:limit] for label in np.unique(self.labels)]
        first = np.sort(np.concatenate([np.empty(0, np.int64), *places]))
        samples = tuple(self.samples[index] for index in first)
        groups = tuple(self.groups[index] for index in first) if self.groups else ()
        return ClassImages(samples, self.labels[first], self.classes, groups)


@dataclass(frozen=True, slots=True)
class Classification(Data):
    """A classification dataset: a bank (train) and queries (val) over the same classes."""

    name: str
    train: ClassImages
    val: ClassImages
    coverage: Coverage
    role = "classification"

    def content(self, stated: Callable[[Sample], str]) -> list[object]:
        splits = (self.train, self.val)
        sides = [(split.classes, split.labels.tolist(), [*map(stated, split.samples)]) for split in splits]
        return [*sides, *(split.groups for split in splits if split.groups)]

    def serving(self, role: str) -> Data | None:
        if role != "instances":
            return Data.serving(self, role)
        return of_classes(self.name, [*self.train.named, *self.val.named], self.coverage)

    @property
    def split(self) -> str:
        """What was read of it, for records: it says where ``val`` was made of ``train``."""
        return MADE_SPLIT if MADE in self.coverage.remarks else "train, val"

    def grouped(self, groups: Mapping[str, str]) -> Self:
        """The same images with groups by their names; raises InputError for one in train and in val."""
        if not groups:
            return self
        train, val = (
            replace(images, groups=tuple(groups.get(key, "") for key in images.keys))
            for images in (self.train, self.val)
        )
        if cut := sorted({*train.groups} & {*val.groups} - {""}):
            raise InputError(
                f"expected every group of {self.name} in train or in val, found {some(cut)} in both; move "
                "its images to one of them"
            )
        return replace(self, train=train, val=val)

    def limited(self, limit: int | None) -> Self:
        if limit is None:
            return self
        train, val = self.train.limited(limit), self.val.limited(limit)
        if (len(train.samples), len(val.samples)) == (len(self.train.samples), len(self.val.samples)):
            return self
        used = f"{len(train.samples):,} train and {len(val.samples):,} val images were used"
        coverage = self.coverage.noted(f"limited to {counted(limit, 'image')} a class: {used}")
        return replace(self, train=train, val=val, coverage=coverage)


@dataclass(frozen=True, slots=True)
class Unlabelled(Data):
    """Images without classes, in sorted key order."""

    name: str
    samples: tuple[Sample, ...]
    coverage: Coverage
    firsts = ("samples",)
    role = "classification"  # the tasks of it that need no classes

    def content(self, stated: Callable[[Sample], str]) -> list[object]:
        return [[*map(stated, self.samples)]]

    def serving(self, role: str) -> Data | None:
        return copies_of(self) if role == "instances" else Data.serving(self, role)


def read_class_folders(root: Path, hint: str = "") -> dict[str, list[str]]:
    """Sorted names of the images of each class folder, by sorted name; other and hidden files are ignored.

    Raises InputError for no class, one without images, and images in the root, with a hint what to do.
    """
    require_directory(root, "a folder of class folders")
    if loose := file_names(root):
        advice = hint or "move every image into a folder that is named after its class"
        raise InputError(
            f"expected only class folders in {root}, found {len(loose):,} images directly in it "
            f"({some(loose)}); {advice}"
        )
    folders = {name: file_names(root / name) for name in folder_names(root)}
    if not folders:
        raise InputError(f"expected one folder per class in {root}, found none")
    if empty := [name for name, files in folders.items() if not files]:
        raise InputError(
            f"expected images ({', '.join(IMAGE_EXTENSIONS)}) in every class folder of {root}, found none in "
            f"{some(empty)}; add them or remove the folder"
        )
    return folders


def classification(
    name: str,
    train: Iterable[LabelledSample],
    val: Iterable[LabelledSample],
    where: str,
    coverage: Coverage,
    official: Iterable[int | None] = (None, None, None),
) -> Classification:
    """A dataset of images in any order; its coverage says how many there are beside the official numbers.

    Raises InputError where val, which is ``where``, has a class that train has not.
    """
    sides = [sorted(images, key=lambda image: image[1].key) for images in (train, val)]
    known, asked = ({label for label, _ in images} for images in sides)
    if unknown := sorted(asked - known):
        raise InputError(
            f"expected the classes of {where} to be among those of train, found {some(unknown)} there only; "
            "add training images of them or remove them"
        )
    classes = tuple(sorted(known))
    rank = {label: number for number, label in enumerate(classes)}
    numbers = (np.array([rank[label] for label, _ in images], np.int64) for images in sides)
    samples = (tuple(sample for _, sample in images) for images in sides)
    bank, queries = map(ClassImages, samples, numbers, (classes, classes))
    counts = map(Count, ("classes", "train images", "val images"), (len(classes), *map(len, sides)), official)
    return Classification(name, bank, queries, replace(coverage, counts=tuple(counts)))


def split_names(names: Iterable[str]) -> tuple[list[str], list[str]]:
    """A class's names, at least two, as bank (80 %) and queries (20 %, at least one), each sorted.

    The split depends on the hash of each name alone, so it is the same on every machine, and hardly changes
    when images are added: at most one other image goes to the other side.
    """
    salt = SEED.to_bytes(16, "little")
    ranked = sorted(names, key=lambda name: (blake2b(name.encode(), digest_size=8, salt=salt).digest(), name))
    queries = max(1, round(len(ranked) * SHARE / 100))
    return sorted(ranked[queries:]), sorted(ranked[:queries])


def divide(
    images: Iterable[LabelledSample], names: Iterable[str], where: str
) -> tuple[list[LabelledSample], list[LabelledSample]]:
    """Images by their names, each unique in its class, as bank and queries (`split_names`).

    Raises InputError unless there are two classes, and two images in each.
    """
    by_class: dict[str, dict[str, Sample]] = {}
    for (label, sample), name in zip(images, names, strict=True):
        by_class.setdefault(label, {})[name] = sample
    if small := sorted(label for label, names in by_class.items() if len(names) < 2):
        raise InputError(
            f"expected at least 2 images in every class of {where}, to split them into a bank and queries, "
            f"found 1 in {some(small)}; add images or remove the class"
        )
    require_classes(len(by_class), where)
    sides: tuple[list[LabelledSample], list[LabelledSample]] = ([], [])
    for label, named in by_class.items():
        for side, names in zip(sides, split_names(named), strict=True):
            side += [(label, named[name]) for name in names]
    return sides


def require_classes(number: int, where: str, advice: str = "") -> None:
    """Raise InputError unless there are two classes."""
    if number < 2:
        raise InputError(f"expected at least 2 classes in {where}, found {number}{advice and f'; {advice}'}")
