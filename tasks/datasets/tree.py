"""All images below a folder, in any depth."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tasks.datasets.base import counted
from tasks.datasets.files import IMAGE_EXTENSIONS, require_text, some
from zoo.errors import InputError

Identity = tuple[int, int]  # device and number of a folder, by which a file system tells it from others
NO_FILE = "\0"  # marks names that cannot be read; no name of a file holds it


@dataclass(frozen=True, slots=True)
class ImageTree:
    """The files below a folder but hidden ones, by sorted paths relative to it, with ``/`` between."""

    root: Path
    images: tuple[str, ...]  # files that end as images do (`IMAGE_EXTENSIONS`), in any case of letters
    others: tuple[str, ...]  # all other files; broken links are among them
    empty: tuple[str, ...]  # folders without a file or folder

    @property
    def remarks(self) -> tuple[str, ...]:
        """How many files and folders are ignored, in words; nothing where there are none."""
        others = counted(len(self.others), "file that is no image", "files that are no images")
        empty = counted(len(self.empty), "empty folder")
        ignored = ((others, self.others), (empty, self.empty))
        return tuple(f"{number} ignored ({some(paths, 2)})" for number, paths in ignored if paths)


def read_tree(root: Path) -> ImageTree:
    """The files below a folder; links to folders are followed.

    Raises:
        InputError: A folder cannot be read, a link leads back to a folder that holds it, or a name is no
            text.
    """
    images: list[str] = []
    others: list[str] = []
    empty: list[str] = []
    for path in _files(root, "", ()):
        if path.endswith("/"):
            empty.append(path)
        elif path.lower().endswith(IMAGE_EXTENSIONS):
            images.append(path)
        else:
            others.append(path.removesuffix(NO_FILE))
    return ImageTree(root, tuple(sorted(images)), tuple(sorted(others)), tuple(sorted(empty)))


def _files(folder: Path, prefix: str, above: tuple[Identity, ...]) -> Iterator[str]:
    """Relative paths of the files below a folder, in no order.

    What is no file, such as a broken link, ends with `NO_FILE`; an empty folder with ``/``.
    """
    try:
        status = folder.stat()
        identity = (status.st_dev, status.st_ino)
        with os.scandir(folder) as listing:
            entries = [entry for entry in listing if not entry.name.startswith(".")]
    except OSError as error:
        raise InputError(f"expected a readable folder at {folder}: {error.strerror}") from error
    if identity in above:
        raise InputError(
            f"expected folders that end, found the link {folder}, which leads back to a folder that holds "
            "it; remove it"
        )
    if prefix and not entries:
        yield prefix
    for entry in entries:
        name = require_text(entry.name, f"names of files in {str(folder)!a}")
        if _is(entry, os.DirEntry.is_dir):
            yield from _files(folder / name, f"{prefix}{name}/", (*above, identity))
        else:
            yield f"{prefix}{name}" if _is(entry, os.DirEntry.is_file) else f"{prefix}{name}{NO_FILE}"


def _is(entry: "os.DirEntry[str]", kind: "Callable[[os.DirEntry[str]], bool]") -> bool:
    """Whether an entry, or what it links to, is of a kind; not if it links to itself."""
    try:
        return kind(entry)
    except OSError:
        return False
