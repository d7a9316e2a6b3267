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
    """Shards 0..count-1 of a folder, each a dictionary of arrays; of its files damaged ones are removed."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder, self.count = folder, count
        self._known: dict[int, Path] = {}
        for path in sorted(folder.glob(f"*{SUFFIX}")):
            index, checksum = path.name.removesuffix(SUFFIX).split(".")
            if int(index) not in self._known:
                if _is_intact(path, checksum):
                    self._known[int(index)] = path
                else:
                    path.unlink(missing_ok=True)

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

    def read(self, index: int, name: str) -> NDArray[np.generic]:
        """One array of a shard; raises KeyError if it is not there."""
        return self.arrays(index, [name])[name]

    def arrays(self, index: int, names: Iterable[str] | None = None) -> dict[str, NDArray[np.generic]]:
        """Some or all arrays of a shard, which is opened once: that takes longer than reading small arrays.

        Raises:
            KeyError: One is not there.
        """
        arrays: dict[str, NDArray[np.generic]] = {}
        with safe_open(self._known[index], framework="numpy") as file:
            for name in file.keys() if names is None else names:
                try:
                    arrays[name] = np.asarray(file.get_tensor(name))
                except SafetensorError as error:
                    raise KeyError(f"{self._known[index]} has no array {name}") from error
        return arrays


def _is_intact(path: Path, checksum: str) -> bool:
    """Whether a file's bytes have the checksum of its name."""
    stamp = _stamp(path)
    if _INTACT.get(path) != stamp:
        computed = 0
        with path.open("rb") as file:
            while block := file.read(1 << 22):
                computed = zlib.crc32(block, computed)
        if f"{computed:08x}" != checksum:
            return False
        _INTACT[path] = stamp
    return True


def _stamp(path: Path) -> tuple[int, int]:
    facts = path.stat()
    return facts.st_size, facts.st_mtime_ns
