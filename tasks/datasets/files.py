"""Folders and image headers, in sorted order, with errors that are sentences."""

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from PIL import Image

from tasks.datasets.base import UnreadableImageError
from tasks.datasets.fields import JsonObject, as_object, describe
from tasks.datasets.storage import is_packed, open_image, packed_names, read_bytes
from zoo.errors import InputError

IMAGE_EXTENSIONS = (".jpg", ".jpeg", ".png", ".webp", ".bmp")
"""What counts as an image in a class folder, in any case of letters."""

LONGEST_NAME = 255
"""Bytes of the name of a file or folder; more than that no file system takes."""


def _packed(folder: Path) -> tuple[list[str], list[str]]:
    """Names of the folders and of the files in a folder of a pack, but the hidden ones; raises InputError."""
    try:
        folders, files = packed_names(folder)
    except OSError as error:
        raise InputError(f"expected a readable folder at {folder}: {error.strerror}") from error
    return [one for one in folders if not one.startswith(".")], [
        one for one in files if not one.startswith(".")
    ]


def _visible(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Entries of a folder but the hidden ones, in no order; raises InputError."""
    try:
        with os.scandir(folder) as entries:
            yield from (entry for entry in entries if not entry.name.startswith("."))
    except OSError as error:
        raise InputError(f"expected a readable folder at {folder}: {error.strerror}") from error


def folder_names(folder: Path) -> list[str]:
    """Sorted names of the folders in a folder; raises InputError."""
    if is_packed(folder):
        return sorted(_packed(folder)[0])
    return sorted(_readable(entry) for entry in _visible(folder) if entry.is_dir())


def file_names(folder: Path, extensions: tuple[str, ...] = IMAGE_EXTENSIONS) -> list[str]:
    """Sorted names of the files with one of the (lower-case) extensions; raises InputError."""
    if is_packed(folder):
        return sorted(name for name in _packed(folder)[1] if name.lower().endswith(extensions))
    return sorted(
        _readable(entry)
        for entry in _visible(folder)
        if entry.name.lower().endswith(extensions) and entry.is_file()
    )


def file_paths(folder: Path, extension: str) -> list[Path]:
    """Paths of the files of a folder with the (lower-case) extension, by sorted name; raises InputError."""
    return [folder / name for name in file_names(folder, (extension,))]


def _readable(entry: os.DirEntry[str]) -> str:
    """Its name; raises InputError for bytes that are no text, which no record and no page can hold."""
    if entry.name.isascii():  # nearly all of a million
        return entry.name
    return require_text(entry.name, f"names of files in {os.path.dirname(entry.path)!a}")


def read_json(path: Path) -> JsonObject:
    """The object in a JSON file; raises InputError for a missing or malformed one."""
    try:
        content = json.loads(read_bytes(path))
    except OSError as error:
        raise InputError(f"expected a JSON file at {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"expected JSON in {path}, which is malformed ({error}); fetch it again") from error
    return as_object(content, str(path))


def require_text(name: str, what: str) -> str:
    """A name of a file as it is; raises InputError unless it is UTF-8 (on the disk or in JSON)."""
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"expected UTF-8 as {what}, found {name!a}; rename it") from error
    return name


def image_size(path: Path) -> tuple[int, int]:
    """Width and height of an image from its header; raises UnreadableImageError."""
    try:
        with open_image(path) as image:
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
    """The name of a file below a folder.

    Raises:
        InputError: An absolute one, one that climbs out, or one that no file can have.
    """
    path = PurePosixPath(require_text(name, f"names of files in {where}"))
    if "\0" in name or any(len(part.encode()) > LONGEST_NAME for part in path.parts):
        raise InputError(
            f"expected names of files of at most {LONGEST_NAME} bytes in {where}, found {describe(name)}"
        )
    if not name or path.is_absolute() or ".." in path.parts or "\\" in name:
        raise InputError(f"expected the name of a file below the dataset's folder in {where}, found {name!r}")
    return name


def some(names: Iterable[str], most: int = 3) -> str:
    """The first few names as text."""
    listed = list(names)
    return ", ".join(listed[:most]) + (f" and {len(listed) - most:,} more" if len(listed) > most else "")
