"""A dataset's files as rows of tables: found by path, read one at a time."""

import errno
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol


class Rows(Protocol):
    """The content of files, by number."""

    def size(self, row: int) -> int:
        """Bytes of a file, found without reading it."""
        ...

    def stamp(self, row: int) -> str:
        """What changes when the file's bytes do, found without reading them."""
        ...

    def read(self, row: int) -> bytes:
        """Bytes of a file; raises InputError where they are not what was packed."""
        ...


@dataclass(frozen=True, slots=True)
class Folder:
    """What is directly in a folder: names of folders, and files by name with their rows."""

    folders: set[str]
    files: dict[str, int]


class Pack:
    """Files by their paths relative to the data folder, with ``/`` between names.

    Paths and sizes are in memory, contents are not. It may be read by several threads, and by processes that
    were forked.

    Args:
        paths: Path of each file.
        numbers: Row of each.
        rows: Their contents.
    """

    def __init__(self, paths: Iterable[str], numbers: Sequence[int], rows: Rows) -> None:
        self.rows = rows
        self._folders: dict[str, Folder] = {"": Folder(set(), {})}
        for path, number in zip(paths, numbers, strict=True):
            parent, _, name = path.rpartition("/")
            self._made(parent).files[name] = number

    def _made(self, path: str) -> Folder:
        """The folder of that path, which is made with those above it."""
        found = self._folders.get(path)
        if found is None:
            found = self._folders[path] = Folder(set(), {})
            self._name(path)
        return found

    def _name(self, path: str) -> None:
        """Put the names of a new folder and of those above it into those that hold them."""
        while path:
            path, _, name = path.rpartition("/")
            known = path in self._folders
            self._folders.setdefault(path, Folder(set(), {})).folders.add(name)
            if known:
                return

    def folder(self, path: str) -> Folder | None:
        """The folder of that path; None where there is none."""
        return self._folders.get(path)

    def row(self, path: str) -> int | None:
        """Row of the file of that path; None where there is none."""
        parent, _, name = path.rpartition("/")
        folder = self._folders.get(parent)
        return None if folder is None else folder.files.get(name)

    def existing(self, path: str) -> int:
        """Row of the file of that path; raises FileNotFoundError."""
        row = self.row(path)
        if row is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return row
