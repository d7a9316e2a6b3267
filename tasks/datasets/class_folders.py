"""Images in one folder per class."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tasks.datasets.base import ClassImages, FileSample, require_directory
from tasks.datasets.files import IMAGE_EXTENSIONS, file_names, folder_names, some
from zoo.errors import InputError


@dataclass(frozen=True, slots=True)
class ClassFolder:
    """A class and the names of its image files, sorted and never empty."""

    name: str
    files: tuple[str, ...]


def read_class_folders(root: Path, hint: str = "") -> tuple[ClassFolder, ...]:
    """The class folders of a folder, by sorted name; hidden files and files of other types are ignored.

    Args:
        root: Folder of the class folders.
        hint: What to do when the images lie in it directly.

    Raises:
        InputError: No such folder, images outside of class folders, no class, or a class without images.
    """
    require_directory(root, "a folder of class folders")
    loose = file_names(root)
    if loose:
        advice = hint or "move every image into a folder that is named after its class"
        raise InputError(
            f"expected only class folders in {root}, found {len(loose):,} images directly in it "
            f"({some(loose)}); {advice}"
        )
    folders = tuple(ClassFolder(name, tuple(file_names(root / name))) for name in folder_names(root))
    if not folders:
        raise InputError(f"expected one folder per class in {root}, found none")
    empty = [folder.name for folder in folders if not folder.files]
    if empty:
        raise InputError(
            f"expected images ({', '.join(IMAGE_EXTENSIONS)}) in every class folder of {root}, found none in "
            f"{some(empty)}; add them or remove the folder"
        )
    return folders


def require_known_classes(bank: Iterable[str], queries: Iterable[str], where: str) -> None:
    """Raise InputError unless every class of the queries has images in the bank."""
    unknown = sorted(set(queries) - set(bank))
    if unknown:
        raise InputError(
            f"expected the classes of {where} to be among those of train, found {some(unknown)} there only; "
            "add training images of them or remove them"
        )


def class_images(
    folders: Sequence[ClassFolder], classes: Mapping[str, int], root: Path, prefix: str = ""
) -> ClassImages:
    """Images of class folders as samples with the key ``<prefix><class>/<file>``, in the order of keys.

    Args:
        folders: The class folders, in any order.
        classes: Label of each class name, in the order of labels.
        root: Folder of the class folders.
        prefix: What keys begin with, such as ``train/``.
    """
    ordered = sorted(folders, key=lambda folder: folder.name + "/")
    samples: list[FileSample] = []
    for folder in ordered:
        path, key = f"{root / folder.name}/", f"{prefix}{folder.name}/"
        samples.extend(FileSample(key + name, path + name) for name in folder.files)
    labels = np.repeat(
        np.array([classes[folder.name] for folder in ordered], dtype=np.int64),
        [len(folder.files) for folder in ordered],
    )
    return ClassImages(tuple(samples), labels, tuple(classes))


def class_labels(names: Iterable[str]) -> dict[str, int]:
    """Label of each class name: its rank in sorted order."""
    return {name: label for label, name in enumerate(sorted(set(names)))}
