"""Shards on disk: what a pass leaves behind, written atomically and checked before it is read.

A shard's file name carries the checksum of its bytes, so one rename makes data and checksum appear together,
and two runs that write the same shard at the same time do each other no harm.
"""

import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from zoo.atomic import whole_file

SUFFIX = ".safetensors"

_INTACT: dict[Path, tuple[int, int]] = {}
"""Size and time of files that this process has written or checked: their bytes are read once."""


class Shards:
    """Numbered shards of a folder that was opened; each is a dictionary of arrays."""

    def __init__(self, folder: Path, count: int, known: Mapping[int, Path]) -> None:
        self.folder = folder
        self.count = count
        self._known = dict(known)

    @classmethod
    def open(cls, folder: Path, count: int) -> "Shards":
        """Look at what is there of shards 0..count-1; damaged files are removed and count as missing."""
        known: dict[int, Path] = {}
        for path in sorted(folder.glob(f"*{SUFFIX}")):
            index, checksum = path.name.removesuffix(SUFFIX).split(".")
            if int(index) in known:
                continue
            if _is_intact(path, checksum):
                known[int(index)] = path
            else:
                path.unlink(missing_ok=True)
        return cls(folder, count, known)

    @property
    def missing(self) -> tuple[int, ...]:
        """Shards that are not there, in order."""
        return tuple(index for index in range(self.count) if index not in self._known)

    def write(self, index: int, arrays: Mapping[str, Tensor]) -> None:
        """Store a shard, whole or not at all; arrays are contiguous CPU tensors."""
        payload = save(dict(arrays))
        path = self.folder / f"{index:06d}.{zlib.crc32(payload):08x}{SUFFIX}"
        with whole_file(path) as temporary:
            temporary.write_bytes(payload)
        _INTACT[path] = _stamp(path)
        self._known[index] = path

    def names(self, index: int) -> tuple[str, ...]:
        """Names of a shard's arrays."""
        with safe_open(self._known[index], framework="numpy") as file:
            return tuple(file.keys())

    def arrays(self, index: int) -> dict[str, NDArray[np.generic]]:
        """All arrays of a shard."""
        with safe_open(self._known[index], framework="numpy") as file:
            return {name: np.asarray(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118

    def read(self, index: int, name: str) -> NDArray[np.generic]:
        """One array of a shard; raises KeyError if it is not there."""
        return self.some(index, [name])[name]

    def some(self, index: int, names: Iterable[str]) -> dict[str, NDArray[np.generic]]:
        """Some arrays of a shard, which is opened once: that takes longer than reading small arrays.

        Raises:
            KeyError: One is not there.
        """
        arrays: dict[str, NDArray[np.generic]] = {}
        with safe_open(self._known[index], framework="numpy") as file:
            for name in names:
                try:
                    arrays[name] = np.asarray(file.get_tensor(name))
                except SafetensorError as error:
                    raise KeyError(f"{self._known[index]} has no array {name}") from error
        return arrays


def _is_intact(path: Path, checksum: str) -> bool:
    """Whether a file's bytes have the checksum of its name."""
    stamp = _stamp(path)
    if _INTACT.get(path) == stamp:
        return True
    if f"{_crc32(path):08x}" != checksum:
        return False
    _INTACT[path] = stamp
    return True


def _stamp(path: Path) -> tuple[int, int]:
    facts = path.stat()
    return facts.st_size, facts.st_mtime_ns


def _crc32(path: Path) -> int:
    checksum = 0
    with path.open("rb") as file:
        while block := file.read(1 << 22):
            checksum = zlib.crc32(block, checksum)
    return checksum
