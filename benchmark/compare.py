"""CKA of all layers of all backbones with each other, batch by batch, one matrix product a batch."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from benchmark.scoring import VectorReader
from benchmark.store import ShardStore
from tasks.base import Source
from tasks.cka import SMALLEST_BATCH, CkaProblem
from tasks.metrics.similarity import CkaAccumulator, centred_gram
from zoo.spec import Layer


@dataclass(frozen=True)
class Compared:
    """A backbone's stored Gram matrices and vectors of the probe subset."""

    name: str
    layers: tuple[Layer, ...]
    vectors: VectorReader
    grams: ShardStore

    def offers(self, pooling: str) -> bool:
        """Whether it has features of that pooling."""
        return pooling == "patch" or pooling in self.vectors.poolings()


def compare(
    problem: CkaProblem, backbones: Sequence[Compared], pooling: str, device: torch.device
) -> NDArray[np.float64]:
    """CKA matrix over all layers of the backbones, in order.

    NaN where a layer does not vary over the images, or was not finite in any of the batches.
    """
    accumulator = CkaAccumulator()
    stacks = [_grams(problem.source, one, pooling, device) for one in backbones]
    for grams in zip(*stacks, strict=True):
        accumulator.add(torch.cat(grams))
    return accumulator.matrix().value.cpu().numpy()


def _grams(source: Source, backbone: Compared, pooling: str, device: torch.device) -> Iterator[torch.Tensor]:
    """U-centred Gram matrices [layers images images] of every batch with enough readable images.

    A layer that could not be measured is NaN, which stays in its own rows and columns of the result.
    """
    shown = backbone.vectors.shown
    pooled = [] if pooling == "patch" else [backbone.vectors.read(one, pooling) for one in backbone.layers]
    start = 0
    for batch, group in enumerate(source.groups):
        rows = start + np.flatnonzero(shown[start : start + len(group.samples)])
        start += len(group.samples)
        if len(rows) < SMALLEST_BATCH:
            continue
        if pooling == "patch":
            arrays = backbone.grams.arrays(batch)
            missing = np.full((len(rows), len(rows)), np.nan, np.float32)
            stored = [arrays.get(f"{batch}/{layer}/gram", missing) for layer in backbone.layers]
            yield torch.from_numpy(np.stack(stored)).to(device)
        else:
            yield torch.stack([_gram(torch.from_numpy(layer[rows]).to(device)) for layer in pooled])


def _gram(features: torch.Tensor) -> torch.Tensor:
    """U-centred Gram matrix in float32; NaN for features that are not finite."""
    if not features.isfinite().all():
        return torch.full((len(features), len(features)), torch.nan, device=features.device)
    return centred_gram(features).float()
