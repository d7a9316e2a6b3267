"""Centred kernel alignment between all layers of all backbones.

Source: Kornblith et al., ICML 2019; minibatch form, unbiased HSIC estimator: Nguyen et al., ICLR 2021.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from itertools import combinations_with_replacement
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from layerboard.tasks.framework.base import FINITE, Group, PairFindings, digest
from layerboard.tasks.framework.feeds import WHOLE_GRIDS
from layerboard.tasks.framework.measurers import Measurer
from layerboard.tasks.framework.registry import DIRECTIONS
from layerboard.tasks.framework.sources import ProbedImages, batch_slices
from layerboard.tasks.framework.stored import StoredBackbone
from layerboard.tasks.framework.task import ComparisonTask, FedTask
from layerboard.tasks.framework.transformed import Vectors
from layerboard.tasks.metrics.arrays import Floats
from layerboard.tasks.similarity.metric import (
    SMALLEST_BATCH,
    CkaAccumulator,
    finite_gram,
    gram_matrix,
    rounded_centred,
    variance,
)
from layerboard.zoo.spec import WHOLE_BACKBONE, Layer
from layerboard.zoo.view.views import View

PATCHES = ("patch", "all")  # poolings that need the stored Gram matrices of the patches
UNDEFINED = "features do not vary or are not finite"  # reason why two layers have no CKA
TOO_FEW = f"CKA needs {SMALLEST_BATCH} images that can be read"  # reason why no layers have one


@dataclass(frozen=True, slots=True)
class CkaConfig:
    """Settings of CKA; the batches are those of its source."""

    # class token (``cls``), mean of the patch tokens (``mean``), all patch tokens flattened (``patch``), or
    # these and the class token (``all``)
    poolings: tuple[str, ...]
    min_max: bool  # whether each Gram matrix of uncentred features is first scaled to [0, 1]
    # Times that pooled vectors are compared, each time in other random batches; stored Gram matrices, whose
    # digest has the repr of the config, do not depend on it.
    repeats: int = field(default=1, repr=False)


@dataclass(frozen=True)
class Grams:
    """Computation of Gram matrices for the images of a source, batch by batch."""

    where: ProbedImages
    config: CkaConfig

    @cached_property
    def fingerprint(self) -> str:
        """Digest of CKA's settings and of the split of the images into batches."""
        groups = [len(group.samples) for group in self.where.probe.groups]
        return digest("cka", self.config, self.where.batches, groups)

    def batches(self, positions: Sequence[int]) -> list[slice]:
        """Batches, as in `batch_slices`, of a group with readable images at these positions."""
        return batch_slices(positions, self.where.batches.size, SMALLEST_BATCH)

    def batches_of(self, shown: NDArray[np.bool_]) -> Iterator[tuple[int, list[NDArray[np.int64]]]]:
        """Image indices in the source of each batch, by group; groups without a batch are left out."""
        start = 0
        for number, group in enumerate(self.where.probe.groups):
            positions = np.flatnonzero(shown[start : start + len(group.samples)])
            if batches := self.batches(positions.tolist()):
                yield number, [start + positions[rows] for rows in batches]
            start += len(group.samples)

    def redrawn(self, shown: NDArray[np.bool_]) -> Iterator[NDArray[np.int64]]:
        """Image indices in the source of each batch of the further repeats, in random order."""
        size, images = self.where.batches.size, np.flatnonzero(shown)
        for seed in range(1, self.config.repeats):
            order = np.random.Generator(np.random.PCG64(seed)).permutation(images)
            yield from (order[rows] for rows in batch_slices(range(len(order)), size, SMALLEST_BATCH))

    def gram(self, features: Tensor) -> Tensor:
        """Gram matrix [n n] of features [n dim], input of `centred`, at least float32; NaN if not finite."""
        return gram_matrix(features, centred=not self.config.min_max)

    def grams(self, features: Tensor, batches: Sequence[slice]) -> list[Tensor]:
        """Gram matrices [batches n n] of features [images dim]; one product for equal-sized neighbours."""
        runs: list[list[slice]] = []
        for rows in batches:
            before = runs[-1][-1] if runs else rows
            if rows.start == before.stop and rows.stop - rows.start == before.stop - before.start:
                runs[-1].append(rows)
            else:
                runs.append([rows])
        matrices = []
        for run in runs:
            some = features[run[0].start : run[-1].stop]
            several = len(run) > 1
            grams = self.gram(some.reshape(len(run), -1, some.shape[1]) if several else some)
            matrices.append(grams if several else grams[None])
        return matrices

    def centred(self, gram: Tensor) -> Tensor:
        """U-centred Gram matrices [... n n] in float32, all zeros where the features do not vary."""
        return rounded_centred(gram, min_max=self.config.min_max)


@dataclass(frozen=True, eq=False)
class CkaTask(ComparisonTask, FedTask):
    """CKA on the probe subset, batch by batch; poolings other than patches use its stored vectors."""

    data: ProbedImages
    config: CkaConfig
    configs: ClassVar = {
        "standard": CkaConfig(poolings=("cls", "mean", "patch"), min_max=False),
        "paper": CkaConfig(poolings=("cls", "patch", "all"), min_max=True),
        "raghu": CkaConfig(poolings=("cls", "mean", "patch"), min_max=False, repeats=20),
    }
    scorer = "cka"
    feed = WHOLE_GRIDS

    @property
    def images_together(self) -> int:
        return self.data.batches.size

    @cached_property
    def grams(self) -> Grams:
        """Computation of the Gram matrices."""
        return Grams(self.data, self.config)

    @property
    def fingerprint(self) -> str:
        return self.grams.fingerprint

    @property
    def scored_fingerprint(self) -> str:
        repeats = self.config.repeats
        return digest(DIRECTIONS, repeats, self.fingerprint)

    def measure(self, group: Group, view: View) -> Measurer[Tensor]:
        return _GramMeasurer(self.grams)

    def exported(self, vectors: Vectors) -> dict[str, NDArray[np.generic]]:
        """Vectors of the probe subset in the order of the batches."""
        features = vectors[self.source.name]
        return {"features": features[~np.isnan(features[:, 0])]}

    @property
    def poolings(self) -> tuple[str, ...]:
        return self.config.poolings

    def compare(self, backbones: Sequence[StoredBackbone], pooling: str) -> Iterator[PairFindings]:
        """CKA of all pairs of layers, for all pairs of backbones that have this pooling."""
        needed = _vectors(pooling)
        there = [
            row for row, each in enumerate(backbones) if needed is None or needed in each.of_source.poolings()
        ]
        members = [row for row in there if not backbones[row].refusal]
        value = error = np.zeros((0, 0))
        directions = np.zeros(0)
        few = "" if any(self.grams.batches_of(backbones[0].of_source.shown)) else TOO_FEW
        if members and not few:
            some = [backbones[row] for row in members]
            value, error, directions = cka_matrix(self.grams, some, pooling)
        owner = np.repeat(members, [len(backbones[row].layers) for row in members])
        for first, second in combinations_with_replacement(there, 2):
            layers, others = backbones[first].layers, backbones[second].layers
            reason = backbones[first].refusal or backbones[second].refusal or few
            values = errors = np.full((len(layers), len(others)), np.nan)
            if not reason:
                block = np.ix_(owner == first, owner == second)
                values, errors, reason = value[block], error[block], UNDEFINED
            yield PairFindings(first, second, "CKA", layers, others, values, errors, reason)
        for row in members if not few else ():
            layers, spread = backbones[row].layers, directions[owner == row, None]
            unknown, whole = np.full(spread.shape, np.nan), (WHOLE_BACKBONE,)
            yield PairFindings(row, row, DIRECTIONS, layers, whole, spread, unknown, UNDEFINED)


class _GramMeasurer(Measurer[Tensor]):
    """Keeps the Gram matrices of a group's flattened grids, one per batch and flattened, never the grids."""

    def __init__(self, grams: Grams) -> None:
        super().__init__()
        self._grams = grams

    def update(self, layer: Layer, positions: Sequence[int], grids: Tensor, /) -> None:
        # a group comes as a whole: its source is joint
        grams = self._grams.grams(grids.flatten(1), self._grams.batches(positions))
        if grams:
            flat = torch.cat([gram.float().flatten() for gram in grams])
            self.keep(layer, {"gram": flat, FINITE: torch.cat([finite_gram(gram) for gram in grams])})

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        return super().finish(layer) or {"gram": torch.zeros(0)}


def cka_matrix(
    grams: Grams, backbones: Sequence[StoredBackbone], pooling: str
) -> tuple[Floats, Floats, Floats]:
    """CKA over all layers of the backbones, in order, its standard errors over the images, and directions.

    One matrix product per batch serves all layers of all backbones. NaN if a layer does not vary over the
    images, or was not finite in any batch. The directions of a layer are the participation ratio of the
    eigenvalues of the covariance of its features: their sum squared, over the sum of their squares.
    """
    accumulator = CkaAccumulator(errors=True)
    stacks = [_grams(grams, backbone, pooling) for backbone in backbones]
    variances: list[Tensor] = []
    for batch in zip(*stacks, strict=True):
        accumulator.add(torch.cat([centred for centred, _ in batch]))
        variances.append(torch.cat([total for _, total in batch]))
    # repeats show the same images again, which are no further sample
    repeats = 1 if pooling in PATCHES else grams.config.repeats
    errors = accumulator.standard_error() * repeats**0.5
    total, squares = torch.stack(variances).mean(0), accumulator.sums()[0].diagonal() / len(variances)
    directions = torch.where(squares > 0, total.square() / squares, torch.nan)
    return accumulator.matrix().cpu().numpy(), errors.cpu().numpy(), directions.cpu().numpy()


def _grams(grams: Grams, backbone: StoredBackbone, pooling: str) -> Iterator[tuple[Tensor, Tensor]]:
    """U-centred Gram matrices [layers n n] and variances [layers] of batches with enough readable images.

    A layer that could not be measured is NaN, which affects only its own rows and columns of the result.
    """
    vectors = _vectors(pooling)
    pooled = [] if vectors is None else [backbone.of_source.read(layer, vectors) for layer in backbone.layers]
    for number, batches in grams.batches_of(backbone.of_source.shown):
        sizes = [len(images) for images in batches]
        stored = stored_grams(backbone, number, backbone.layers, sizes) if pooling in PATCHES else None
        for batch, images in enumerate(batches):
            parts = [torch.from_numpy(stored[batch]).to(backbone.device)] if stored else []
            if pooled:
                parts.append(_pooled_grams(grams, backbone, pooled, images))
            whole = reduce(torch.add, parts)  # inner products add over tokens
            yield grams.centred(whole), variance(whole, min_max=grams.config.min_max)
    if pooling not in PATCHES:
        for images in grams.redrawn(backbone.of_source.shown):
            whole = _pooled_grams(grams, backbone, pooled, images)
            yield grams.centred(whole), variance(whole, min_max=grams.config.min_max)


def _pooled_grams(
    grams: Grams, backbone: StoredBackbone, pooled: Sequence[NDArray[np.float32]], images: NDArray[np.int64]
) -> Tensor:
    """Gram matrices [layers n n] of the stored vectors of some images."""
    values = (torch.from_numpy(layer[images]).to(backbone.device) for layer in pooled)
    return torch.stack([grams.gram(features).float() for features in values])


def stored_grams(
    backbone: StoredBackbone, group: int, layers: Sequence[Layer], sizes: Sequence[int]
) -> list[NDArray[np.float32]]:
    """Gram matrices [layers n n] of the patches for each batch of a group; NaN for layers not measured."""
    arrays = backbone.left_behind(group)
    missing = np.full(sum(size**2 for size in sizes), np.nan, np.float32)
    flat = np.stack([np.asarray(arrays.get(layer, {}).get("gram", missing), np.float32) for layer in layers])
    return split_grams(flat, sizes)


def split_grams(flat: NDArray[np.float32], sizes: Sequence[int]) -> list[NDArray[np.float32]]:
    """Gram matrices [rows images images] of batches of these sizes, from one flat array."""
    parts = np.split(flat, np.cumsum([size**2 for size in sizes])[:-1], axis=1)
    return [part.reshape(len(flat), size, size) for part, size in zip(parts, sizes, strict=True)]


def _vectors(pooling: str) -> str | None:
    """Name of the stored vectors that a pooling uses; None for patches alone."""
    return {"patch": None, "all": "cls"}.get(pooling, pooling)
