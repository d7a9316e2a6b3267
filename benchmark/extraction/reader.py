"""What passes have stored, layer by layer: vectors of a source, and measurements of its groups."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import groupby
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from benchmark.extraction.collectors import FAILURE
from benchmark.extraction.shards import Shards
from tasks.base import Measurements, Source
from tasks.stored import LayerMeasurements
from zoo.spec import Layer


class VectorReader:
    """Vectors of a source from its shards, which are all there."""

    def __init__(self, source: Source, store: Shards) -> None:
        self._source = source
        self._store = store

    @cached_property
    def _shards(self) -> tuple[int, ...]:
        """Shards of which an image could be read; the others hold no vectors."""
        return tuple(shard for shard in range(self._source.shards) if len(self._store.names(shard)) > 1)

    def poolings(self) -> tuple[str, ...]:
        """Poolings that are stored: ``mean``, and ``cls`` where the backbone has a class token."""
        if not self._shards:
            return ()
        names = self._store.names(self._shards[0])
        return tuple(sorted({name.split(".")[0] for name in names if "." in name}))

    @cached_property
    def shown(self) -> NDArray[np.bool_]:
        """Whether each image of the source could be read, [images]."""
        shards = range(self._source.shards)
        return np.concatenate([np.asarray(self._store.read(s, "shown"), bool) for s in shards])

    def read(self, layer: Layer, pooling: str) -> NDArray[np.float32]:
        """[images dim] in the source's order; NaN rows for images that could not be read."""
        parts = {s: np.asarray(self._store.read(s, f"{pooling}.{layer}"), np.float32) for s in self._shards}
        shown = self.shown
        vectors = np.full((len(shown), next(iter(parts.values())).shape[1]), np.nan, np.float32)
        start = 0
        for shard in range(self._source.shards):
            stop = start + self._source.shard_images(shard)
            if shard in parts:
                vectors[start:stop] = parts[shard]
            start = stop
        return vectors

    def bytes(self, layer: Layer, pooling: str) -> int:
        """Size of what `read` gives, estimated from the first shard."""
        first = self._store.read(self._shards[0], f"{pooling}.{layer}")
        return int(first.nbytes) * self._source.shards


class MeasuredLayers(LayerMeasurements):
    """For each layer that could be measured, what every group left behind, in the source's order.

    Nothing stays in memory: a layer is read from the shards, which are all there, whenever it is asked for.
    """

    def __init__(self, source: Source, store: Shards, layers: Sequence[Layer]) -> None:
        self._source = source
        self._store = store
        self.failures = {layer: reason for layer in layers if (reason := self._failure(layer))}
        self._layers = tuple(layer for layer in layers if layer not in self.failures)

    def __getitem__(self, layer: Layer) -> list[Measurements]:
        if layer not in self._layers:
            raise KeyError(layer)
        groups: list[dict[str, NDArray[np.generic]]] = [{} for _ in self._source.groups]
        for shard, names in groupby(self._names(layer), key=itemgetter(0)):
            owners = {name: (group, what) for _, name, group, what in names}
            for name, array in self._store.some(shard, owners).items():
                group, what = owners[name]
                groups[group][what] = array
        return list(groups)

    def __iter__(self) -> Iterator[Layer]:
        return iter(self._layers)

    def __len__(self) -> int:
        return len(self._layers)

    @property
    def bytes(self) -> int:
        """Size of what one layer left behind, by the first."""
        if not self._layers:
            return 0
        return sum(array.nbytes for group in self[self._layers[0]] for array in group.values())

    def of_group(self, group: int) -> dict[Layer, Measurements]:
        """What a group left behind for each layer; nothing of layers that could not be measured."""
        names = {str(layer): layer for layer in self._layers}
        measurements: dict[Layer, dict[str, NDArray[np.generic]]] = {}
        for name, array in self._store.arrays(group // self._source.groups_per_shard).items():
            number, layer, what = name.split("/", 2)
            if int(number) == group and layer in names:
                measurements.setdefault(names[layer], {})[what] = array
        return {**measurements}

    def _failure(self, layer: Layer) -> str:
        """Why a layer could not be measured; "" if it could."""
        for shard, name, _, what in self._names(layer):
            if what == FAILURE:
                return bytes(np.asarray(self._store.read(shard, name), np.uint8)).decode()
        return ""

    def _names(self, layer: Layer) -> list[tuple[int, str, int, str]]:
        """Shard, name of the array, group, and what it is, of all arrays of a layer."""
        return self._by_layer.get(str(layer), [])

    @cached_property
    def _by_layer(self) -> dict[str, list[tuple[int, str, int, str]]]:
        names: dict[str, list[tuple[int, str, int, str]]] = {}
        for shard in range(self._source.shards):
            for name in self._store.names(shard):
                group, layer, what = name.split("/", 2)
                names.setdefault(layer, []).append((shard, name, int(group), what))
        return names
