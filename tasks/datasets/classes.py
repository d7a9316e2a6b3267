"""Images with or without classes: class folders, labels, and splits."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from layerboard.tasks.datasets.base import Count, Coverage, Data, Sample
from layerboard.tasks.datasets.instances import copies_of, of_classes
from layerboard.tasks.datasets.integrity import mismatch, require
from layerboard.tasks.datasets.reading.files import (
    IMAGE_EXTENSIONS,
    file_names,
    folder_names,
    require_directory,
)
from layerboard.tasks.datasets.reading.names import number_twins, unseen_twins
from layerboard.zoo.errors import counted, some

LEAST = 3  # least number of images per class without val, so that each is tested with others of its class
EVERY = "every image is tested once"  # remark if there is no val
SORT = "move every image into a folder that is named after its class"

LabelledSample = tuple[str, Sample]  # class name and image


@dataclass(frozen=True, slots=True)
class ClassImages:
    """Images with class labels, in sorted key order."""

    samples: tuple[Sample, ...]
    labels: NDArray[np.int64]  # class index of each image, int64 [images]
    classes: tuple[str, ...]  # class names; an index is the rank of the name in sorted order
    groups: tuple[str, ...] = ()  # group of each image, "" for none; empty if there are no groups

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the images."""
        return tuple(sample.key for sample in self.samples)

    @property
    def clusters(self) -> tuple[str, ...]:
        """Cluster that each image is sampled with: its group, or itself."""
        pairs = zip(self.groups, self.keys, strict=True)
        return tuple(group or key for group, key in pairs) if self.groups else self.keys

    @property
    def named(self) -> Iterator[tuple[str, Sample, str]]:
        """Each image with the name of its class, and its group."""
        names = map(self.classes.__getitem__, self.labels)
        return zip(names, self.samples, self.groups or ("",) * len(self.samples), strict=True)

    def limited(self, limit: int) -> "ClassImages":
        """The first images of each class."""
        places = [np.flatnonzero(self.labels == label)[:limit] for label in np.unique(self.labels)]
        first = np.sort(np.concatenate([np.empty(0, np.int64), *places]))
        samples = tuple(self.samples[index] for index in first)
        groups = tuple(self.groups[index] for index in first) if self.groups else ()
        return ClassImages(samples, self.labels[first], self.classes, groups)


class ProbeSubset(NamedTuple):
    """The training images that image clustering, CKA and analyses use: the first ones of some classes."""

    classes: tuple[str, ...] | None  # None for all
    per_class: int  # images of each class


@dataclass(frozen=True, slots=True)
class Classification(Data):
    """A classification dataset: a bank (train) and queries (val) over the same classes.

    Without ``val``, every image is tested once, with the others as training images.
    """

    name: str
    train: ClassImages
    val: ClassImages | None
    coverage: Coverage
    probe: ProbeSubset | None = None  # None for what the protocol says
    role = "classification"

    @property
    def tested(self) -> ClassImages:
        """The images that are tested: ``val``, or all."""
        return self.val or self.train

    def serving(self, role: str) -> Data | None:
        if role != "instances":
            return Data.serving(self, role)
        images = (image for side in self.sides.values() for image in side.named)
        return of_classes(self.name, images, self.coverage)

    def described(self) -> Iterator[tuple[str, str, str, str]]:
        for split, side in self.sides.items():
            said = split if self.val else ""
            yield from ((sample.key, label, group, said) for label, sample, group in side.named)

    def held_apart(self) -> Iterator[tuple[str, Iterable[Sample], str, Iterable[Sample]]]:
        if self.val:
            yield "train", self.train.samples, "val", self.val.samples

    @property
    def sides(self) -> dict[str, ClassImages]:
        """Bank and queries by their split; all images as ``train`` if there is no ``val``."""
        return {"train": self.train, "val": self.val} if self.val else {"train": self.train}

    def content(self, stated: Callable[[Sample], str]) -> list[object]:
        rows = ((split, *named) for split, side in self.sides.items() for named in side.named)
        images = sorted((stated(image), label, group, split) for split, label, image, group in rows)
        return [self.val is not None, *images]

    def grouped(self, groups: Mapping[str, str]) -> Self:
        """The dataset with groups, given by image name.

        Raises InputError for a group in both train and val.
        """
        if not groups:
            return self
        sides = {
            split: replace(side, groups=tuple(groups.get(key, "") for key in side.keys))
            for split, side in self.sides.items()
        }
        if self.val:
            require_undivided(self.name, *(side.groups for side in sides.values()))
        return replace(self, train=sides["train"], val=sides.get("val"))

    @property
    def untestable(self) -> str:
        """Reason why images cannot be tested with the others if there is no ``val``; "" if they can."""
        if self.val:
            return ""
        train, classes = self.train, self.train.classes
        counts = np.bincount(train.labels, minlength=len(classes)).tolist()
        if small := [f"{n} in {label}" for label, n in zip(classes, counts, strict=True) if n < LEAST]:
            return (
                f"needs at least {LEAST} images in every class, to test each by the others, and {self.name} "
                f"has {some(small)}; add images or remove the class"
            )
        groups = Counter(label for label, _ in {*zip(train.labels.tolist(), train.clusters, strict=True)})
        if alone := [label for number, label in enumerate(classes) if groups[number] < 2]:
            return (
                "needs images of two groups in every class, since none is tested by its own group, and "
                f"{self.name} has one group in {some(alone)}; add images of others or remove the class"
            )
        return ""

    def limited(self, limit: int) -> Self:
        limit = limit if self.val else max(limit, LEAST)
        few = {split: side.limited(limit) for split, side in self.sides.items()}
        numbers = [len(side.samples) for side in few.values()]
        if numbers == [len(side.samples) for side in self.sides.values()]:
            return self
        used = " train and ".join(f"{number:,}" for number in numbers) + (" val" if self.val else "")
        note = f"limited to {counted(limit, 'images')} a class: {used} images were used"
        return replace(self, train=few["train"], val=few.get("val"), coverage=self.coverage.noted(note))


@dataclass(frozen=True, slots=True)
class Unlabelled(Data):
    """Images without classes, in sorted key order."""

    name: str
    samples: tuple[Sample, ...]
    coverage: Coverage
    firsts = ("samples",)
    role = "classification"  # the tasks of it that need no classes

    def content(self, stated: Callable[[Sample], str]) -> list[object]:
        return [*sorted(map(stated, self.samples))]

    def serving(self, role: str) -> Data | None:
        return copies_of(self) if role == "instances" else Data.serving(self, role)


def read_class_folders(root: Path, hint: str = "") -> dict[str, list[str]]:
    """Sorted image names of each class folder, sorted by class; other and hidden files are ignored.

    Raises InputError, with a hint what to do, for no class, a class without images, or images in the root.
    """
    require_directory(root, "a folder of class folders")
    require_no_loose(root, file_names(root), hint or SORT)
    folders = {name: file_names(root / name) for name in folder_names(root)}
    require(folders, f"one folder per class in {root}")
    images = f"images ({', '.join(IMAGE_EXTENSIONS)}) in every class folder of {root}"
    empty = [name for name, files in folders.items() if not files]
    require(not empty, images, f"none in {some(empty)}", "add them or remove the folder")
    return folders


def require_no_loose(root: Path, loose: Sequence[str], remedy: str) -> None:
    """Raise InputError for images directly in a folder of class folders."""
    images = f"{len(loose):,} images directly in it ({some(loose)})"
    require(not loose, f"only class folders in {root}", images, remedy)


class Official(NamedTuple):
    """Official numbers of classes and images, None for any number."""

    classes: int | None = None
    train: int | None = None
    val: int | None = None
    names: tuple[str, ...] = ()  # of the classes, if some may have no training image


UNOFFICIAL = Official()


def classification(
    name: str,
    train: Iterable[LabelledSample],
    val: Iterable[LabelledSample] | None,
    where: str,
    coverage: Coverage,
    official: Official = UNOFFICIAL,
) -> Classification:
    """A dataset of images in any order; its coverage compares their number with the official numbers.

    Raises InputError if val, which is described by ``where``, has a class that train lacks, and that is none
    of the official ones.
    """
    given = (images for images in (train, val) if images is not None)
    sides = [sorted(images, key=lambda image: image[1].key) for images in given]
    known, asked = ({label for label, _ in images} for images in (sides[0], sides[-1]))
    known |= {*official.names}
    if unknown := sorted(asked - known):
        every = {*known, *unknown}
        alike = unseen_twins(every, "names") or number_twins(every, "names")
        advice = alike[0] if alike else "add training images of them or remove them"
        shared = f"the classes of {where} to be among those of train"
        raise mismatch(shared, f"{some(unknown)} there only", advice)
    classes = tuple(sorted(known))
    rank = {label: number for number, label in enumerate(classes)}
    bank, *queries = (
        ClassImages(
            tuple(sample for _, sample in images),
            np.array([rank[label] for label, _ in images], np.int64),
            classes,
        )
        for images in sides
    )
    coverage = replace(coverage, notes=(*unseen_twins(classes, "classes"), *coverage.notes))
    names = ("classes", "train images", "val images") if queries else ("classes", "images")
    counts = tuple(map(Count, names, (len(classes), *map(len, sides)), official[:3]))
    coverage = coverage if queries else coverage.remarked(EVERY)
    alone = [classes[each] for each in np.flatnonzero(np.bincount(bank.labels) == 1)] if queries else []
    if alone:
        coverage = coverage.remarked(f"{counted(len(alone), 'classes')} of one train image ({some(alone)})")
    return Classification(name, bank, queries[0] if queries else None, replace(coverage, counts=counts))


def require_undivided(name: str, train: Iterable[str], val: Iterable[str]) -> None:
    """Raise InputError if train and val have images of one group, given the groups of both; "" is none."""
    cut, remedy = sorted({*train} & {*val} - {""}), "move its images to one of them"
    require(not cut, f"every group of {name} in train or in val", f"{some(cut)} in both", remedy)


def require_classes(number: int, where: str, advice: str = "") -> None:
    """Raise InputError unless there are two classes."""
    require(number > 1, f"at least 2 classes in {where}", number, advice)
