"""The user's own images in class folders, with or without a split."""

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

from tasks.datasets.base import Classification, ClassImages, Count, Coverage, require_directory
from tasks.datasets.class_folders import (
    ClassFolder,
    class_images,
    class_labels,
    read_class_folders,
    require_known_classes,
)
from tasks.datasets.files import folder_names, require_text, some
from zoo.errors import InputError

QUERY_SPLITS = ("val", "test")
"""Names of the folder of queries beside ``train``, in order of preference."""


def split_names(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """A class's names split into 80 % bank and 20 % queries (at least one), each sorted.

    The split depends on the hash of each name alone, so it is the same on every machine, and hardly changes
    when images are added.

    Args:
        names: At least two different names, in any order.

    Returns:
        Names of the bank and names of the queries.
    """
    ranked = sorted(names, key=lambda name: (blake2b(name.encode(), digest_size=8).digest(), name))
    queries = max(1, round(len(names) / 5))
    return sorted(ranked[queries:]), sorted(ranked[:queries])


def require_splittable(sizes: dict[str, int], where: str) -> None:
    """Raise InputError unless there are two classes, and two images in each."""
    small = sorted(name for name, size in sizes.items() if size < 2)
    if small:
        raise InputError(
            f"expected at least 2 images in every class of {where}, to split them into a bank and queries, "
            f"found 1 in {some(small)}; add images or remove the class"
        )
    require_classes(len(sizes), where)


def require_classes(number: int, where: str) -> None:
    """Raise InputError unless there are two classes."""
    if number < 2:
        raise InputError(f"expected at least 2 classes in {where}, found {number}")


def read_folder(folder: Path) -> Classification:
    """The user's own images as a dataset that is named after the folder.

    ``FOLDER/{train,val or test}/<class>/*`` is used as it is, with keys ``train/<class>/<file>``;
    ``FOLDER/<class>/*`` is split by `split_names`, with keys ``<class>/<file>``.

    Raises:
        InputError: No such folder, images outside of class folders, or too few images or classes.
    """
    require_directory(folder, "a folder of class folders")
    train, val = _read_splits(folder) if _has_split(folder) else _split(folder)
    require_classes(len(train.classes), str(folder))
    counts = (
        Count("classes", len(train.classes)),
        Count("train images", len(train.samples)),
        Count("val images", len(val.samples)),
    )
    name = require_text(folder.resolve().name, "the name of the folder of images")
    return Classification(name, train, val, Coverage(counts))


def _has_split(folder: Path) -> bool:
    """Whether ``train`` is a folder of class folders rather than a class of that name."""
    return (folder / "train").is_dir() and bool(folder_names(folder / "train"))


def _read_splits(folder: Path) -> tuple[ClassImages, ClassImages]:
    found = [split for split in QUERY_SPLITS if (folder / split).is_dir()]
    if not found:
        raise InputError(f"expected a folder val or test beside {folder / 'train'}, found neither; add one")
    split = found[0]
    train, val = read_class_folders(folder / "train"), read_class_folders(folder / split)
    names = [each.name for each in train]
    require_known_classes(names, (each.name for each in val), str(folder / split))
    classes = class_labels(names)
    return (
        class_images(train, classes, folder / "train", "train/"),
        class_images(val, classes, folder / split, f"{split}/"),
    )


def _split(folder: Path) -> tuple[ClassImages, ClassImages]:
    folders = read_class_folders(folder)
    require_splittable({each.name: len(each.files) for each in folders}, str(folder))
    parts = [split_names(each.files) for each in folders]
    classes = class_labels(each.name for each in folders)
    bank = [ClassFolder(each.name, tuple(part[0])) for each, part in zip(folders, parts, strict=True)]
    queries = [ClassFolder(each.name, tuple(part[1])) for each, part in zip(folders, parts, strict=True)]
    return class_images(bank, classes, folder), class_images(queries, classes, folder)
