"""CKA of all layers of all backbones with each other, batch by batch, one matrix product a batch."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from benchmark.loading import shard_groups
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
    """CKA matrix over all layers of the backbones, in order; NaN where a layer does not vary."""
    accumulator = CkaAccumulator()
    stacks = [_grams(problem.source, one, pooling, device) for one in backbones]
    for grams in zip(*stacks, strict=True):
        if grams[0].shape[-1] >= SMALLEST_BATCH:
            accumulator.add(torch.cat(grams))
    return accumulator.matrix().value.cpu().numpy()


def _grams(source: Source, backbone: Compared, pooling: str, device: torch.device) -> Iterator[torch.Tensor]:
    """For each batch the U-centred Gram matrices [layers images images] of a backbone."""
    if pooling == "patch":
        for shard in range(len(source.groups)):
            arrays = backbone.grams.arrays(shard)
            found = [arrays.get(f"{shard}/{layer}/gram") for layer in backbone.layers]
            size = max((len(gram) for gram in found if gram is not None), default=0)
            still = np.zeros((size, size), np.float32)  # a layer that could not be measured does not vary
            stack = np.stack([still if gram is None else gram for gram in found])
            yield torch.from_numpy(stack).to(device)
        return
    vectors = [backbone.vectors.read(layer, pooling) for layer in backbone.layers]
    shown = backbone.vectors.shown()
    start = 0
    for shard in range(len(source.groups)):
        (group,) = shard_groups(source, shard)
        stop = start + len(source.groups[group].samples)
        batch = [torch.from_numpy(v[start:stop][shown[start:stop]]).to(device) for v in vectors]
        start = stop
        if len(batch[0]) < SMALLEST_BATCH:
            yield torch.zeros(len(batch), 0, 0)
            continue
        finite = [features if features.isfinite().all() else features.zero_() for features in batch]
        yield torch.stack([centred_gram(features) for features in finite]).float()
