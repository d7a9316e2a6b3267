"""Folders and image headers, in sorted order, with errors that are sentences."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from PIL import Image

from tasks.datasets.base import UnreadableImageError
from zoo.errors import InputError

IMAGE_EXTENSIONS = (".jpg", ".jpeg", ".png", ".webp", ".bmp")
"""What counts as an image in a class folder, in any case of letters."""


def _visible(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Entries of a folder but the hidden ones, in no order; raises InputError."""
    try:
        with os.scandir(folder) as entries:
            yield from (entry for entry in entries if not entry.name.startswith("."))
    except OSError as error:
        raise InputError(f"expected a readable folder at {folder}: {error.strerror}") from error


def folder_names(folder: Path) -> list[str]:
    """Sorted names of the folders in a folder; raises InputError."""
    return sorted(entry.name for entry in _visible(folder) if entry.is_dir())


def file_names(folder: Path, extensions: tuple[str, ...] = IMAGE_EXTENSIONS) -> list[str]:
    """Sorted names of the files with one of the (lower-case) extensions; raises InputError."""
    return sorted(
        entry.name
        for entry in _visible(folder)
        if entry.name.lower().endswith(extensions) and entry.is_file()
    )


def image_size(path: Path) -> tuple[int, int]:
    """Width and height of an image from its header; raises UnreadableImageError."""
    try:
        with Image.open(path) as image:
            return image.size
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise UnreadableImageError(f"cannot read the header of image {path}: {error}") from error


def require_size(path: Path, size: tuple[int, int], where: str) -> None:
    """Raise InputError unless an image has the (width, height) that ``where`` says."""
    found = image_size(path)
    if found != size:
        raise InputError(
            f"expected image {path} to be {size[0]} x {size[1]} pixels as {where} says, "
            f"found {found[0]} x {found[1]}; the annotations belong to another version of the image"
        )


def require_inside(name: str, where: str) -> str:
    """The name of a file below a folder; raises InputError for an absolute one or one that climbs out."""
    path = PurePosixPath(name)
    if not name or path.is_absolute() or ".." in path.parts or "\\" in name:
        raise InputError(f"expected the name of a file below the dataset's folder in {where}, found {name!r}")
    return name


def some(names: Iterable[str], most: int = 3) -> str:
    """The first few names as text."""
    listed = list(names)
    return ", ".join(listed[:most]) + (f" and {len(listed) - most:,} more" if len(listed) > most else "")
