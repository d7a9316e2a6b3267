"""ImageNet-1k: ``train/<wnid>/*`` and ``val/<wnid>/*``, and the probe subset for clustering and CKA."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from layerboard.tasks.datasets.base import Count, Coverage, DatasetEntry, FileSample
from layerboard.tasks.datasets.classes import (
    Classification,
    LabelledSample,
    classification,
    read_class_folders,
)
from layerboard.zoo.errors import InputError

# the classes of ImageNet-50 (the list in the code of Walmer et al., CVPR 2023)
# fmt: off
IMAGENET_50 = (
    "n01601694", "n01669191", "n01755581", "n01770393", "n01855672", "n02018207", "n02058221", "n02096177",
    "n02097130", "n02099267", "n02100877", "n02104365", "n02106030", "n02114855", "n02125311", "n02133161",
    "n02484975", "n02489166", "n02747177", "n02906734", "n03124170", "n03272010", "n03337140", "n03483316",
    "n03498962", "n03710721", "n03717622", "n03733281", "n03759954", "n03775071", "n03814639", "n03837869",
    "n03838899", "n03854065", "n03954731", "n03983396", "n04026417", "n04200800", "n04209239", "n04311004",
    "n04380533", "n04428191", "n04443257", "n04509417", "n04525305", "n04554684", "n04606251", "n07583066",
    "n07711569", "n07753592",
)
# fmt: on

_UNSORTED_VAL = (
    "the official validation archive is one flat folder: sort its images into folders val/<wnid>/ "
    "by the ground truth of the development kit"
)


@dataclass(frozen=True, slots=True)
class ImageNetEntry(DatasetEntry[Classification]):
    """A dataset in the layout of ImageNet, its official counts, and its probe subset."""

    name: str = "imagenet"
    folder: str = "imagenet"
    classes: int = 1000
    train: int = 1_281_167
    val: int = 50_000
    probe_wnids: tuple[str, ...] | None = IMAGENET_50  # classes of the probe subset; None for all
    probe_per_class: int = 100  # images of each class of the probe subset

    @property
    def layout(self) -> str:
        return f"{self.folder}/train/<wnid>/*.JPEG and {self.folder}/val/<wnid>/*.JPEG"

    def read(self, data: Path) -> Classification:
        """The existing images of train and val; keys are ``train/<wnid>/<file>``."""
        root = self.root(data)
        train = read_class_folders(root / "train")
        val = read_class_folders(root / "val", _UNSORTED_VAL)
        bank, queries = _images(train, root, "train"), _images(val, root, "val")
        official = self.classes, self.train, self.val
        return classification(self.name, bank, queries, str(root / "val"), Coverage(()), official)

    def contents(self, data: Path) -> dict[str, list[Path]]:
        root = data / self.folder
        train, val = read_class_folders(root / "train"), read_class_folders(root / "val")
        return {
            name: [root / split / wnid / file for wnid, files in folders.items() for file in files]
            for split, name, folders in (("train", "train", train), ("val", "validation", val))
        }


IMAGENET = ImageNetEntry()


def _images(folders: Mapping[str, Sequence[str]], root: Path, split: str) -> list[LabelledSample]:
    above, keys = f"{root}/", ((wnid, f"{split}/{wnid}/{file}") for wnid in folders for file in folders[wnid])
    return [(wnid, FileSample(key, above + key)) for wnid, key in keys]


def probe_subset(
    data: Classification, wnids: Sequence[str] | None, per_class: int
) -> tuple[NDArray[np.int64], Coverage]:
    """Indices of the first images of some classes (None for all) in a training set, by class, then by key.

    If a class is missing, the first classes in sorted order are used instead, as many as requested, and the
    coverage has a note. Raises InputError if ``per_class`` is below 1.
    """
    if per_class < 1:
        raise InputError(f"expected at least one image a class in a probe subset, found {per_class}")
    present = data.train.classes
    chosen, notes = present if wnids is None else tuple(sorted(wnids)), []
    if missing := len({*chosen} - {*present}):
        chosen = present[: len(chosen)]
        notes.append(
            f"{missing} of the {len(wnids or ())} classes of the probe subset are missing: "
            f"the first {len(chosen)} classes of those present are used instead"
        )
    # keys are sorted, so the first indices of a class are its first file names
    positions = [np.flatnonzero(data.train.labels == present.index(name))[:per_class] for name in chosen]
    indices = np.concatenate([np.empty(0, np.int64), *positions]).astype(np.int64)
    counts = (
        Count("probe classes", len(chosen), len(chosen if wnids is None else wnids)),
        Count("probe images", len(indices), None if wnids is None else len(wnids) * per_class),
    )
    return indices, Coverage(counts, tuple(notes))
