"""What passes have stored, layer by layer: vectors of a source, and measurements of its groups."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from benchmark.features.shards import Shards
from tasks.base import Measurements, Source
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


def read_measurements(
    source: Source, store: Shards, layers: Sequence[Layer]
) -> dict[Layer, list[Measurements]]:
    """For each layer, what every group left behind, in the source's order."""
    wanted = {str(layer): layer for layer in layers}
    found: dict[Layer, list[dict[str, NDArray[np.generic]]]] = {
        layer: [{} for _ in source.groups] for layer in layers
    }
    for shard in range(source.shards):
        for name, array in store.arrays(shard).items():
            group, layer, what = name.split("/", 2)
            if layer in wanted:
                found[wanted[layer]][int(group)][what] = array
    return {layer: list(groups) for layer, groups in found.items()}
