"""Shards on disk: the results of a pass, written atomically and verified before they are read.

The file name of a shard carries the checksum of its bytes, so one rename makes data and checksum appear
together, and two runs that write the same shard at the same time do no harm. The file contains its number and
the name of its folder, which ends with the fingerprint of the contents: it is valid nowhere else.
"""

import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from layerboard.benchmark.passes.collectors import FAILURE
from layerboard.tasks.framework.base import Measurements, Source
from layerboard.tasks.framework.stored import LayerMeasurements
from layerboard.zoo.atomic import write_whole
from layerboard.zoo.spec import Layer

_NAME = re.compile(r"(\d{6})\.([0-9a-f]{8})\.safetensors")  # number and checksum; other files are ignored

# size and time of files that this process has written or checked: their bytes are read once
_INTACT: dict[Path, tuple[int, int]] = {}


class Shards:
    """Shards 0..count-1 of a folder, each a dictionary of arrays; damaged and foreign ones are removed."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder, self.count = folder, count
        self._known: dict[int, Path] = {}
        for path in sorted(folder.glob("*")):
            name = _NAME.fullmatch(path.name)
            if name and path.is_file() and int(name[1]) not in self._known:
                if _is_intact(path, *name.groups()):
                    self._known[int(name[1])] = path
                else:
                    with suppress(OSError):  # of a cache that can only be read it is missing
                        path.unlink()

    @property
    def missing(self) -> tuple[int, ...]:
        """Missing shards, in order."""
        return tuple(index for index in range(self.count) if index not in self._known)

    def write(self, index: int, arrays: Mapping[str, Tensor]) -> None:
        """Store a shard, whole or not at all; arrays are contiguous CPU tensors."""
        payload = save(dict(arrays), _facts(self.folder, f"{index:06d}"))
        path = self.folder / f"{index:06d}.{zlib.crc32(payload):08x}.safetensors"
        write_whole(path, payload)
        _INTACT[path] = _stamp(path)
        self._known[index] = path

    def names(self, index: int) -> tuple[str, ...]:
        """Names of the arrays of a shard."""
        with safe_open(self._known[index], framework="numpy") as file:
            return tuple(file.keys())

    def read(self, index: int, name: str) -> NDArray[np.generic]:
        """One array of a shard; raises KeyError if there is no such shard."""
        return self.arrays(index, [name])[name]

    def arrays(self, index: int, names: Iterable[str] | None = None) -> dict[str, NDArray[np.generic]]:
        """Some or all arrays of a shard that is there, which is opened once, since opening is slowest."""
        with safe_open(self._known[index], framework="numpy") as file:
            every = file.keys() if names is None else names
            return {name: np.asarray(file.get_tensor(name)) for name in every}


class VectorReader:
    """Vectors of a source from its shards, which must all exist."""

    def __init__(self, source: Source, store: Shards) -> None:
        self._source, self._store = source, store

    @cached_property
    def _shards(self) -> tuple[int, ...]:
        """Shards with a readable image; the others hold no vectors."""
        return tuple(shard for shard in range(self._source.shards) if len(self._store.names(shard)) > 1)

    def poolings(self) -> tuple[str, ...]:
        names = (name for shard in self._shards[:1] for name in self._store.names(shard))
        return tuple(sorted({name.split(".")[0] for name in names if "." in name}))

    @cached_property
    def shown(self) -> NDArray[np.bool_]:
        shards = range(self._source.shards)
        return np.concatenate([np.asarray(self._store.read(s, "shown"), bool) for s in shards])

    def read(self, layer: Layer, pooling: str) -> NDArray[np.float32]:
        parts = {s: np.asarray(self._store.read(s, f"{pooling}.{layer}"), np.float32) for s in self._shards}
        width = next(iter(parts.values())).shape[1]
        for shard in {*range(self._source.shards)} - {*parts}:
            parts[shard] = np.full((self._source.shard_images(shard), width), np.nan, np.float32)
        return np.concatenate([parts[shard] for shard in range(self._source.shards)])

    def bytes(self, layer: Layer, pooling: str) -> int:
        """Size in bytes, estimated from the first shard."""
        return int(self._store.read(self._shards[0], f"{pooling}.{layer}").nbytes) * self._source.shards


class MeasuredLayers(LayerMeasurements):
    """For each layer that could be measured, the measurements of every group, in the order of the source.

    Nothing stays in memory: a layer is read from the shards, which must all exist, whenever it is used.
    """

    def __init__(self, source: Source, store: Shards, layers: Sequence[Layer]) -> None:
        self._source, self._store = source, store
        self.failures: dict[Layer, str] = {}  # why other layers could not be measured
        for layer in layers:
            for shard, name, _, what in self._by_layer.get(str(layer), ()):
                if what == FAILURE and layer not in self.failures:
                    self.failures[layer] = bytes(np.asarray(store.read(shard, name), np.uint8)).decode()
        self._layers = tuple(layer for layer in layers if layer not in self.failures)

    def __getitem__(self, layer: Layer) -> list[Measurements]:
        if layer not in self._layers:
            raise KeyError(layer)
        groups: list[dict[str, NDArray[np.generic]]] = [{} for _ in self._source.groups]
        for shard, names in groupby(self._by_layer.get(str(layer), ()), key=itemgetter(0)):
            owners = {name: (group, what) for _, name, group, what in names}
            for name, array in self._store.arrays(shard, owners).items():
                group, what = owners[name]
                groups[group][what] = array
        return list(groups)

    def __iter__(self) -> Iterator[Layer]:
        return iter(self._layers)

    def __len__(self) -> int:
        return len(self._layers)

    @property
    def bytes(self) -> int:
        groups = (group for layer in self._layers[:1] for group in self[layer])
        return sum(array.nbytes for group in groups for array in group.values())

    def of_group(self, group: int) -> dict[Layer, Measurements]:
        names = {str(layer): layer for layer in self._layers}
        measurements: dict[Layer, dict[str, NDArray[np.generic]]] = {}
        for name, array in self._store.arrays(group // self._source.groups_per_shard).items():
            number, layer, what = name.split("/", 2)
            if int(number) == group and layer in names:
                measurements.setdefault(names[layer], {})[what] = array
        return {**measurements}

    @cached_property
    def _by_layer(self) -> dict[str, list[tuple[int, str, int, str]]]:
        """All arrays of each layer: shard, name in it, group, and the measurer's name for it."""
        names: dict[str, list[tuple[int, str, int, str]]] = {}
        for shard in range(self._source.shards):
            for name in self._store.names(shard):
                group, layer, what = name.split("/", 2)
                names.setdefault(layer, []).append((shard, name, int(group), what))
        return names


def _is_intact(path: Path, index: str, checksum: str) -> bool:
    """Whether a file has the checksum in its name and says that it is that shard of its folder."""
    stamp = _stamp(path)
    if _INTACT.get(path) != stamp:
        if f"{zlib.crc32(path.read_bytes()):08x}" != checksum:
            return False
        with safe_open(path, framework="numpy") as file:
            if file.metadata() != _facts(path.parent, index):
                return False
        _INTACT[path] = stamp
    return True


def _facts(folder: Path, index: str) -> dict[str, str]:
    return {"shard": f"{folder.name}/{index}"}  # one: the order of several is not fixed


def _stamp(path: Path) -> tuple[int, int]:
    facts = path.stat()
    return facts.st_size, facts.st_mtime_ns
