"""Scores of every layer from what the passes stored."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmark.extraction.collectors import NOT_FINITE
from benchmark.extraction.reader import MeasuredLayers, VectorReader
from tasks.analyses.base import VectorsAnalysis
from tasks.base import AnalysisProblem, Findings, LayerOutcome, Outcome, ScoredProblem, VectorProblem
from tasks.fused import members_of, score_sets
from zoo.spec import Layer

Piece = TypeVar("Piece")

ALL = "all"
"""Pooling of the average of all tokens, made of the stored vectors of the class token and of the patches."""

PARALLEL_BYTES = 1 << 30
"""Layers are scored side by side only while their vectors together stay below this."""


def score_vectors(
    problem: VectorProblem,
    readers: Mapping[str, VectorReader],
    layers: Sequence[Layer],
    workers: int,
    device: torch.device,
    patches: Mapping[Layer, int] | None = None,
) -> list[LayerOutcome]:
    """Outcomes of a vector problem for every layer and stored pooling, in that order.

    Args:
        problem: What scores the vectors.
        readers: Readers by name of the source.
        layers: Layers to score.
        workers: Threads.
        device: Where large products may run.
        patches: For each layer its number of patch tokens, where the average of all tokens is scored, too.
    """
    needed = {source.name: readers[source.name] for source in problem.sources}
    first = next(iter(needed.values()))
    poolings = first.poolings()
    if patches is not None and {"cls", "mean"} <= {*poolings}:
        poolings = (*poolings, ALL)
    jobs = [(layer, pooling) for layer in layers for pooling in poolings]

    shown = {name: reader.shown for name, reader in needed.items()}

    def read(reader: VectorReader, layer: Layer, pooling: str) -> NDArray[np.float32]:
        if patches is None or pooling != ALL:
            return reader.read(layer, pooling)
        return reader.read_all(layer, patches[layer])

    def score(job: tuple[Layer, str]) -> LayerOutcome:
        vectors = {name: read(reader, *job) for name, reader in needed.items()}
        if not all(np.isfinite(vectors[name][shown[name]]).all() for name in vectors):
            return LayerOutcome(*job, Outcome((), empty=NOT_FINITE))
        return LayerOutcome(*job, problem.score(vectors, None if device.type == "cpu" else device))

    size = sum(reader.bytes(*jobs[0]) for reader in needed.values()) if jobs else 0
    return side_by_side(score, jobs, workers, size)


def score_sets_of_vectors(
    problem: VectorProblem,
    readers: Mapping[str, VectorReader],
    sets: Sequence[Layer],
    device: torch.device,
) -> list[LayerOutcome]:
    """Outcomes of a vector problem for every set of layers and stored pooling, in that order.

    The vectors of all layers in one pooling are in memory together.

    Args:
        problem: What scores the vectors.
        readers: Readers by name of the source.
        sets: The sets.
        device: Where large products may run.
    """
    needed = {source.name: readers[source.name] for source in problem.sources}
    shown = {name: reader.shown for name, reader in needed.items()}
    found: dict[tuple[Layer, str], Outcome] = {}
    poolings = next(iter(needed.values())).poolings()
    for pooling in poolings:
        layers = {
            layer: {name: reader.read(layer, pooling) for name, reader in needed.items()}
            for layer in members_of(sets)
        }
        broken = {
            layer
            for layer, vectors in layers.items()
            if not all(np.isfinite(vectors[name][shown[name]]).all() for name in vectors)
        }
        whole = [each for each in sets if not broken & {*each.members}]
        finite = {layer: vectors for layer, vectors in layers.items() if layer in members_of(whole)}
        scored = score_sets(problem, finite, whole, None if device.type == "cpu" else device)
        found |= {(each, pooling): outcome for each, outcome in zip(whole, scored, strict=True)}
    missing = Outcome((), empty=NOT_FINITE)
    return [
        LayerOutcome(each, pooling, found.get((each, pooling), missing))
        for each in sets
        for pooling in poolings
    ]


def describe_vectors(
    problem: VectorsAnalysis,
    readers: Mapping[str, VectorReader],
    layers: Sequence[Layer],
    last: Layer | None,
    workers: int,
    device: torch.device,
) -> list[LayerOutcome]:
    """Outcomes of an analysis of stored vectors for every layer and stored pooling, in that order.

    Args:
        problem: What describes the vectors.
        readers: Readers by name of the source.
        layers: Layers to describe.
        last: The last block; None where its vectors are not kept.
        workers: Threads.
        device: Where large products may run.
    """
    jobs = [(layer, pooling) for layer in layers for pooling in next(iter(readers.values())).poolings()]

    def read(layer: Layer, pooling: str) -> dict[str, NDArray[np.float32]]:
        return {name: reader.read(layer, pooling) for name, reader in readers.items()}

    def describe(job: tuple[Layer, str]) -> LayerOutcome:
        end = None if last is None else read(last, job[1])
        return LayerOutcome(*job, problem.describe(read(*job), end, None if device.type == "cpu" else device))

    size = 2 * sum(reader.bytes(*jobs[0]) for reader in readers.values()) if jobs else 0
    return side_by_side(describe, jobs, workers, size)


def score_measurements(
    problem: ScoredProblem[Any],
    measured: MeasuredLayers,
    pooling: str,
    workers: int,
) -> list[LayerOutcome]:
    """Outcomes of a measured problem for every layer, from what its groups left behind."""

    def score(layer: Layer) -> LayerOutcome:
        return LayerOutcome(layer, pooling, problem.score(measured[layer]))

    scored = side_by_side(score, list(measured), workers, measured.bytes)
    return sorted([*_failed(measured, pooling), *scored], key=lambda one: one.layer.place)


def find(problem: AnalysisProblem[Any], measured: MeasuredLayers, pooling: str) -> Findings:
    """What an analysis says, and why layers say nothing that could not be measured."""
    failed = _failed(measured, pooling)
    found = problem.findings(measured) if len(measured) else Findings(())
    return Findings((*failed, *found.outcomes), found.arrays)


def _failed(measured: MeasuredLayers, pooling: str) -> list[LayerOutcome]:
    """Empty outcomes of the layers that could not be measured."""
    return [
        LayerOutcome(layer, pooling, Outcome((), empty=reason)) for layer, reason in measured.failures.items()
    ]


def side_by_side(
    function: Callable[[Piece], LayerOutcome], jobs: list[Piece], workers: int, size: int
) -> list[LayerOutcome]:
    """Results in order; small jobs side by side, each on one core, large ones in turn on all cores."""
    together = max(1, min(workers, PARALLEL_BYTES // max(size, 1), len(jobs)))
    if together == 1:
        return [function(job) for job in jobs]
    with threadpool_limits(limits=1), ThreadPoolExecutor(together) as pool:
        return list(pool.map(function, jobs))
