"""CKA of all layers of all backbones with each other, batch by batch, one matrix product a batch."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from benchmark.features.reader import VectorReader
from benchmark.features.shards import Shards
from tasks.cka import CkaProblem
from tasks.metrics.similarity import CkaAccumulator
from zoo.spec import Layer

PATCHES = ("patch", "all")
"""Poolings that need the stored Gram matrices of the patches."""


@dataclass(frozen=True)
class Compared:
    """A backbone's stored Gram matrices and vectors of the probe subset."""

    name: str
    layers: tuple[Layer, ...]
    vectors: VectorReader
    grams: Shards

    def offers(self, pooling: str) -> bool:
        """Whether it has features of that pooling."""
        vectors = _vectors(pooling)
        return vectors is None or vectors in self.vectors.poolings()


def compare(
    problem: CkaProblem, backbones: Sequence[Compared], pooling: str, device: torch.device
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """CKA over all layers of the backbones, in order, and its standard errors over the images.

    NaN where a layer does not vary over the images, or was not finite in any of the batches.
    """
    accumulator = CkaAccumulator(errors=True)
    stacks = [_grams(problem, one, pooling, device) for one in backbones]
    for grams in zip(*stacks, strict=True):
        accumulator.add(torch.cat(grams))
    return accumulator.matrix().value.cpu().numpy(), accumulator.standard_error().cpu().numpy()


def _grams(
    problem: CkaProblem, backbone: Compared, pooling: str, device: torch.device
) -> Iterator[torch.Tensor]:
    """U-centred Gram matrices [layers images images] of every batch with enough readable images.

    A layer that could not be measured is NaN, which stays in its own rows and columns of the result.
    """
    shown, reader = backbone.vectors.shown, backbone.vectors
    vectors = _vectors(pooling)
    pooled = [] if vectors is None else [reader.read(layer, vectors) for layer in backbone.layers]
    start = 0
    for number, group in enumerate(problem.source.groups):
        positions = np.flatnonzero(shown[start : start + len(group.samples)])
        batches = problem.batches(positions.tolist())
        stored = _stored(backbone, number, [len(rows) for rows in batches]) if pooling in PATCHES else None
        for batch, rows in enumerate(batches):
            images = start + positions[rows]
            parts = [torch.from_numpy(stored[batch]).to(device)] if stored else []
            if pooled:
                values = (torch.from_numpy(layer[images]).to(device) for layer in pooled)
                parts.append(torch.stack([_gram(problem, one) for one in values]))
            yield problem.centred(torch.stack(parts).sum(0))  # inner products add over tokens
        start += len(group.samples)


def _vectors(pooling: str) -> str | None:
    """The stored vectors that a pooling takes; None for the patches alone."""
    return {"patch": None, "all": "cls"}.get(pooling, pooling)


def _stored(backbone: Compared, group: int, sizes: Sequence[int]) -> list[NDArray[np.float32]]:
    """Gram matrices [layers images images] of the patches for each batch of a group."""
    arrays = backbone.grams.arrays(group)
    missing = np.full(sum(size**2 for size in sizes), np.nan, np.float32)
    flat = np.stack([arrays.get(f"{group}/{layer}/gram", missing) for layer in backbone.layers])
    parts = np.split(flat, np.cumsum([size**2 for size in sizes])[:-1], axis=1)
    return [part.reshape(len(flat), size, size) for part, size in zip(parts, sizes, strict=True)]


def _gram(problem: CkaProblem, features: torch.Tensor) -> torch.Tensor:
    """Gram matrix in float32; NaN for features that are not finite."""
    if not features.isfinite().all():
        return torch.full((len(features), len(features)), torch.nan, device=features.device)
    return problem.gram(features).float()
