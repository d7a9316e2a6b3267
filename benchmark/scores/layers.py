"""Scores of every layer from what the passes stored."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmark.features.collectors import FAILURE
from benchmark.features.loading import shard_count
from benchmark.features.shards import ShardStore
from tasks.base import DenseProblem, Measurements, Outcome, Source, VectorProblem
from zoo.spec import Layer

Job = TypeVar("Job")

PARALLEL_BYTES = 1 << 30
"""Layers are scored side by side only while their vectors together stay below this."""


@dataclass(frozen=True, slots=True)
class LayerOutcome:
    """Scores of one layer and pooling (``grid`` for dense tasks)."""

    layer: Layer
    pooling: str
    outcome: Outcome


class VectorReader:
    """Vectors of a source, layer by layer, from its shards."""

    def __init__(self, source: Source, store: ShardStore) -> None:
        self._source = source
        self._store = store

    @cached_property
    def _shards(self) -> tuple[int, ...]:
        """Shards of which an image could be read; the others hold no vectors."""
        shards = range(shard_count(self._source))
        return tuple(shard for shard in shards if len(self._store.names(shard)) > 1)

    def poolings(self) -> tuple[str, ...]:
        """Poolings that are stored: ``mean``, and ``cls`` where the backbone has a class token."""
        if not self._shards:
            return ()
        names = self._store.names(self._shards[0])
        return tuple(sorted({name.split(".")[0] for name in names if "." in name}))

    @cached_property
    def shown(self) -> NDArray[np.bool_]:
        """Whether each image of the source could be read, [images]."""
        shards = range(shard_count(self._source))
        return np.concatenate([np.asarray(self._store.read(s, "shown"), bool) for s in shards])

    def read(self, layer: Layer, pooling: str) -> NDArray[np.float32]:
        """[images dim] in the source's order; NaN rows for images that could not be read."""
        parts = {s: np.asarray(self._store.read(s, f"{pooling}.{layer}"), np.float32) for s in self._shards}
        shown = self.shown
        vectors = np.full((len(shown), next(iter(parts.values())).shape[1]), np.nan, np.float32)
        size = self._source.groups_per_shard
        start = 0
        for shard in range(shard_count(self._source)):
            groups = self._source.groups[shard * size : (shard + 1) * size]
            stop = start + sum(len(group.samples) for group in groups)
            if shard in parts:
                vectors[start:stop] = parts[shard]
            start = stop
        return vectors

    def bytes(self, layer: Layer, pooling: str) -> int:
        """Size of what `read` gives, estimated from the first shard."""
        first = self._store.read(self._shards[0], f"{pooling}.{layer}")
        return int(first.nbytes) * shard_count(self._source)


def score_vectors(
    problem: VectorProblem,
    readers: Mapping[str, VectorReader],
    layers: Sequence[Layer],
    workers: int,
    device: torch.device,
) -> list[LayerOutcome]:
    """Outcomes of a vector problem for every layer and stored pooling, in that order."""
    needed = {source.name: readers[source.name] for source in problem.sources}
    first = next(iter(needed.values()))
    jobs = [(layer, pooling) for layer in layers for pooling in first.poolings()]

    shown = {name: reader.shown for name, reader in needed.items()}

    def score(job: tuple[Layer, str]) -> LayerOutcome:
        vectors = {name: reader.read(*job) for name, reader in needed.items()}
        if not all(np.isfinite(vectors[name][shown[name]]).all() for name in vectors):
            return LayerOutcome(*job, Outcome((), empty="features are not finite"))
        return LayerOutcome(*job, problem.score(vectors, None if device.type == "cpu" else device))

    size = sum(reader.bytes(*jobs[0]) for reader in needed.values()) if jobs else 0
    return _parallel(score, jobs, workers, size)


def score_measurements(
    problem: DenseProblem, store: ShardStore, layers: Sequence[Layer], workers: int
) -> list[LayerOutcome]:
    """Outcomes of a dense problem for every layer."""
    measured = _measurements(problem.source, store, layers)

    def score(layer: Layer) -> LayerOutcome:
        failed = [one[FAILURE] for one in measured[layer] if FAILURE in one]
        if failed:
            reason = bytes(np.asarray(failed[0], np.uint8)).decode()
            return LayerOutcome(layer, "grid", Outcome((), empty=reason))
        return LayerOutcome(layer, "grid", problem.score(measured[layer]))

    size = sum(array.nbytes for one in measured[layers[0]] for array in one.values()) if layers else 0
    return _parallel(score, list(layers), workers, size)


def _measurements(
    source: Source, store: ShardStore, layers: Sequence[Layer]
) -> dict[Layer, list[Measurements]]:
    """For each layer, what every group left behind, in the source's order."""
    wanted = {str(layer): layer for layer in layers}
    found: dict[Layer, list[dict[str, NDArray[np.generic]]]] = {
        layer: [{} for _ in source.groups] for layer in layers
    }
    for shard in range(shard_count(source)):
        for name, array in store.arrays(shard).items():
            group, layer, what = name.split("/", 2)
            if layer in wanted:
                found[wanted[layer]][int(group)][what] = array
    return {layer: list(groups) for layer, groups in found.items()}


def _parallel(
    function: Callable[[Job], LayerOutcome], jobs: list[Job], workers: int, size: int
) -> list[LayerOutcome]:
    """Results in order; small jobs side by side, each on one core, large ones in turn on all cores."""
    together = max(1, min(workers, PARALLEL_BYTES // max(size, 1), len(jobs)))
    if together == 1:
        return [function(job) for job in jobs]
    with threadpool_limits(limits=1), ThreadPoolExecutor(together) as pool:
        return list(pool.map(function, jobs))
