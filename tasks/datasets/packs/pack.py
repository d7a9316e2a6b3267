"""A dataset's files as rows of tables: found by path, read one at a time."""

import errno
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from tasks.datasets.packs.manifest import (
    MANIFEST,
    Manifest,
    PackedDataset,
    PackedShard,
    file_sha256,
    rows_digest,
)
from tasks.datasets.packs.shards import LENGTH, Shard, content_digest, read_shard
from zoo.errors import InputError


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


class ShardRows:
    """The rows of shards, one after the other; of each, file, place, size and digest are in memory."""

    def __init__(self, shards: Sequence[Shard]) -> None:
        self._files = [shard.file for shard in shards]
        self._first = np.cumsum([0, *(len(shard.paths) for shard in shards)])
        self._sizes = np.concatenate([np.empty(0, np.int64), *(shard.sizes for shard in shards)])
        self._starts = np.concatenate([np.empty(0, np.int64), *(shard.starts for shard in shards)])
        self._digests = np.concatenate([np.empty(0, "S32"), *(shard.digests for shard in shards)])

    def size(self, row: int) -> int:
        """Bytes of a file."""
        return int(self._sizes[row])

    def stamp(self, row: int) -> str:
        """Digest of its bytes."""
        return bytes(self._digests[row]).decode()

    def read(self, row: int) -> bytes:
        """Bytes of a file; raises InputError where they are not those that were packed."""
        file = self._files[int(np.searchsorted(self._first, row, side="right")) - 1]
        size, start = self.size(row), int(self._starts[row])
        # Opened each time: a hundred shards would be as many open files in every process.
        try:
            stored = os.open(file, os.O_RDONLY)
            try:
                found = os.pread(stored, size + LENGTH.size, start - LENGTH.size)
            finally:
                os.close(stored)
        except OSError as error:
            raise InputError(f"expected a shard of a pack at {file}: {error.strerror}") from error
        content = found[LENGTH.size :]
        if found[: LENGTH.size] != LENGTH.pack(size) or content_digest(content) != self.stamp(row):
            raise InputError(
                f"expected {size:,} bytes of the digest {self.stamp(row)} at byte {start:,} of {file}, found "
                "others; fetch the shard again"
            )
        return content


def open_packed(folder: Path, manifest: Manifest) -> Pack:
    """The files of all datasets of a pack.

    Raises:
        InputError: A shard is missing, truncated or damaged, there are more or fewer rows than the manifest
            says, their digest is another, or two datasets have different files of one path.
    """
    shards = [shard for name, dataset in manifest.items() for shard in _shards(folder, name, dataset)]
    rows = ShardRows(shards)
    paths = (path for shard in shards for path in shard.paths)
    numbers: dict[str, int] = {}
    for row, path in enumerate(paths):
        first = numbers.setdefault(path, row)
        if rows.stamp(first) != rows.stamp(row):
            raise InputError(f"expected one file {path} in {folder}, found two that differ; pack them apart")
    return Pack(numbers, tuple(numbers.values()), rows)


def _shards(folder: Path, name: str, dataset: PackedDataset) -> list[Shard]:
    """The shards of a dataset, as the manifest says; raises InputError."""
    shards = [_shard(folder, one) for one in dataset.shards]
    if (found := sum(len(shard.paths) for shard in shards)) != dataset.files:
        raise InputError(
            f"expected {dataset.files:,} files of {name} in {folder}, found {found:,}; fetch it again"
        )
    if (digest := rows_digest(shards)) != dataset.digest:
        raise InputError(
            f"expected the files of {name} in {folder} to have the digest {dataset.digest}, found {digest}; "
            f"{MANIFEST} and the shards are of two packs: fetch both again"
        )
    return shards


def _require_size(folder: Path, said: PackedShard) -> None:
    """Raise InputError unless a shard is there with all its bytes."""
    file = folder / said.name
    try:
        size = file.stat().st_size
    except OSError as error:
        raise InputError(f"expected the shard {said.name} in {folder}: {error.strerror}; fetch it") from error
    if size != said.bytes:
        raise InputError(f"expected {said.bytes:,} bytes in {file}, found {size:,}; fetch it again")


def _shard(folder: Path, said: PackedShard) -> Shard:
    _require_size(folder, said)
    file = folder / said.name
    shard = read_shard(file)
    if len(shard.paths) != said.rows:
        raise InputError(f"expected {said.rows:,} rows in {file}, found {len(shard.paths):,}; fetch it again")
    return shard


def require_digests(folder: Path, manifest: Manifest) -> int:
    """Read every byte of a pack; gives the number of shards.

    Raises:
        InputError: One is not there, or has not the SHA-256 that the manifest says.
    """
    shards = [shard for dataset in manifest.values() for shard in dataset.shards]
    for shard in shards:
        _require_size(folder, shard)
        if (found := file_sha256(folder / shard.name)) != shard.sha256:
            raise InputError(
                f"expected {folder / shard.name} to have the SHA-256 {shard.sha256}, found "
                f"{found}; fetch it again"
            )
    return len(shards)
