"""Locality: whether local heads of a transformer are similar to the first blocks of a ConvNet.

Source: Raghu et al., Do Vision Transformers See Like Convolutional Neural Networks?, NeurIPS 2021, section 5
and figure 5. The paper does not state its subsets of heads; here they are windows of heads sorted by
attention distance (`windows`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from layerboard.tasks.analyses.metrics.attention import attention_distance, cell_distances
from layerboard.tasks.framework.base import Group, PairFindings, digest
from layerboard.tasks.framework.feeds import HeadsOrBlocksFeed
from layerboard.tasks.framework.measurers import BatchMeasurer, Measurer
from layerboard.tasks.framework.sources import ANY_SIZE, ProbedImages
from layerboard.tasks.framework.stored import StoredBackbone
from layerboard.tasks.framework.task import ComparisonTask, FedTask
from layerboard.tasks.metrics.arrays import Floats, Integers
from layerboard.tasks.similarity.cka import CkaConfig, Grams, split_grams, stored_grams
from layerboard.tasks.similarity.metric import gather
from layerboard.tasks.statistics.rank_correlation import FEWEST, rank_correlation
from layerboard.zoo.features import AttentionMaps, LayerFeatures
from layerboard.zoo.spec import WHOLE_BACKBONE, BackboneSpec, Layer
from layerboard.zoo.view.views import View

METRIC = "locality-rho"
POOLING = "patch"

Portion = tuple[AttentionMaps | None, LayerFeatures]


@dataclass(frozen=True, slots=True)
class LocalityConfig:
    """Settings of locality; the batches are those of its source."""

    block: int  # block of the transformers whose heads are used
    blocks: int  # number of first blocks of a ConvNet that they are compared with


@dataclass(frozen=True, slots=True)
class HeadSubsets:
    """Comparison of subsets of the heads of a block with the blocks of a ConvNet; NaN if undefined."""

    heads: Integers  # heads of each subset, [subsets size], in order of increasing attention distance
    distance: Floats  # mean attention distance of each subset, [subsets]
    cka: Floats  # CKA of each subset with each block, [subsets blocks]
    rho: Floats  # Spearman's rank correlation of distance and CKA for each block, [blocks]


class Locality(ComparisonTask, FedTask):
    """Rank correlation, over windows of heads, of attention distance and CKA with a ConvNet.

    The Gram matrix of concatenated heads is the sum of theirs, so Gram matrices are unscaled in every
    protocol: scaled ones are not additive.
    """

    data: ProbedImages
    config: LocalityConfig
    configs: ClassVar = {"standard": LocalityConfig(block=1, blocks=5)}
    poolings = (POOLING,)

    @property
    def feed(self) -> HeadsOrBlocksFeed:
        return HeadsOrBlocksFeed(block=self.config.block, blocks=self.config.blocks)

    @cached_property
    def cka(self) -> Grams:
        return Grams(self.data, CkaConfig((POOLING,), min_max=False))

    @cached_property
    def fingerprint(self) -> str:
        return digest("locality", 2, self.config, self.cka.fingerprint)

    def measure(self, group: Group, view: View) -> Measurer[Portion]:
        return _GramMeasurer(self.cka, view.geometry(ANY_SIZE).size[0])

    def compares(self, first: BackboneSpec, second: BackboneSpec) -> bool:
        return first.is_convnet != second.is_convnet and (first.heads or second.heads) is not None

    def compare(self, backbones: Sequence[StoredBackbone], pooling: str) -> Iterator[PairFindings]:
        """``locality-rho`` of every transformer with every ConvNet: mean over blocks, and for each block."""
        for (first, transformer), (second, convnet) in product(enumerate(backbones), repeat=2):
            if transformer.spec.heads is None or not convnet.spec.is_convnet:
                continue
            heads, blocks = (self.feed.layers((), each.spec) for each in (transformer, convnet))
            reason = transformer.refusal or convnet.refusal
            subsets = None if reason else self._subsets(transformer, convnet)
            if subsets is None:
                reason = reason or "heads or blocks could not be measured"
                empty = np.full((len(heads), 1), np.nan)
                yield PairFindings(first, second, METRIC, heads, (WHOLE_BACKBONE,), empty, empty, reason)
                continue
            arrays: dict[str, NDArray[np.generic]] = {
                "head_cka": subsets.cka.astype(np.float32),
                "distance": subsets.distance,
                "heads": subsets.heads,
            }
            reason, mean = _undefined(subsets), subsets.rho.mean(keepdims=True)
            for others, value in (((WHOLE_BACKBONE,), mean), (blocks, subsets.rho)):
                errors = np.full((1, len(value)), np.nan)
                yield PairFindings(first, second, METRIC, heads, others, value[None], errors, reason, arrays)

    def _subsets(self, transformer: StoredBackbone, convnet: StoredBackbone) -> HeadSubsets | None:
        """Comparison of head windows with blocks, over all batches; None if nothing was measured."""
        (layer,) = self.feed.layers((), transformer.spec)
        blocks = self.feed.layers((), convnet.spec)
        distances: list[NDArray[np.float32]] = []
        within = cross = other = torch.zeros(1, device=transformer.device)
        for number, batches in self.cka.batches_of(transformer.of_source.shown):
            sizes = [len(images) for images in batches]
            heads = transformer.left_behind(number).get(layer, {})
            if "gram" not in heads:
                return None
            distances.append(np.asarray(heads["distance"], np.float32))
            of_heads = split_grams(np.asarray(heads["gram"], np.float32), sizes)
            for pair in zip(of_heads, stored_grams(convnet, number, blocks, sizes), strict=True):
                near, far = (self.cka.centred(torch.as_tensor(gram).to(within.device)) for gram in pair)
                within, other = within + gather(near, near), other + gather(far, far)
                cross = cross + gather(near, far)
        if not distances:
            return None
        distance = np.concatenate(distances).astype(np.float64).mean(axis=0)
        tables = (table.cpu().numpy() for table in (within, cross, other.diagonal()))
        return subsets_of(distance, *tables)


class _GramMeasurer(BatchMeasurer[Portion]):
    """Keeps Gram matrices of each batch, for each head or for a block, and distances of images and heads."""

    def __init__(self, cka: Grams, side: int) -> None:
        super().__init__(self._keep)
        self._cka, self._side = cka, side

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        arrays = super().finish(layer)
        if "grid" not in arrays:
            return arrays
        distance, positions = arrays["distance"], arrays["position"].tolist()
        return {"distance": distance, **self._grams(positions, arrays["grid"], distance.shape[1])}

    def _keep(self, layer: Layer, positions: Sequence[int], portion: Portion) -> Mapping[str, Tensor]:
        maps, features = portion
        if maps is None:
            # blocks of a ConvNet come whole: their source is joint
            return {name: gram[0] for name, gram in self._grams(positions, features.grid, 1).items()}
        # heads come in batches whose maps fit into memory; their outputs are small compared with the maps
        cells = cell_distances(maps.cells, unit=False, device=maps.probabilities.device)
        pixels = attention_distance(maps.patches, cells) * (self._side // maps.cells[1])
        return {"distance": pixels, "grid": features.grid.clone()}

    def _grams(self, positions: Sequence[int], grid: Tensor, heads: int) -> dict[str, Tensor]:
        """Gram matrices of each head in all batches, [heads entries]; empty if no batch is large enough."""
        batches = self._cka.batches(positions)
        if not batches:
            return {}
        images, rows, columns, width = grid.shape
        tokens = grid.reshape(images, rows * columns, heads, width // heads).permute(2, 0, 1, 3)
        grams = [self._cka.gram(tokens[:, batch].flatten(2)) for batch in batches]
        return {"gram": torch.cat([gram.float().flatten(1) for gram in grams], dim=1)}


def _undefined(subsets: HeadSubsets) -> str:
    """Reason for a missing rank correlation."""
    if len(subsets.heads) < FEWEST:
        return f"a rank correlation takes {FEWEST} subsets of heads; there are {len(subsets.heads)}"
    if not np.isfinite(subsets.distance).all():
        return "attention probabilities are not finite"
    if not np.isfinite(subsets.cka).all():
        return "heads or blocks do not vary or are not finite"
    return "all subsets of heads have one attention distance or one CKA"


def windows(distance: Floats) -> Integers:
    """Heads of each window of consecutive heads by attention distance, a quarter of them: [windows size]."""
    order = np.argsort(distance, kind="stable")
    return np.lib.stride_tricks.sliding_window_view(order, max(1, len(distance) // 4)).copy()


def subsets_of(distance: Floats, heads: Floats, across: Floats, blocks: Floats) -> HeadSubsets:
    """Compare windows of heads with the blocks of a ConvNet.

    The Gram matrix of concatenated features is the sum of their Gram matrices, and HSIC is linear in each of
    its two Gram matrices. So the HSIC of a subset follows from that of its heads. ``distance`` [heads] is the
    mean attention distance of each head. The others are HSIC of unnormalised Gram matrices: ``heads`` [heads
    heads] of the heads' outputs with each other, ``across`` [heads blocks] of heads with blocks, and
    ``blocks`` [blocks] of each block with itself.
    """
    chosen = windows(distance)
    own = np.array([heads[np.ix_(each, each)].sum() for each in chosen])
    with np.errstate(invalid="ignore", divide="ignore"):
        cka = across[chosen].sum(axis=1) / np.sqrt(own[:, None] * blocks[None, :])
    cka[~(own > 0)], cka[:, ~(blocks > 0)] = np.nan, np.nan
    near = distance[chosen].mean(axis=1)
    rho = [rank_correlation(near, column) for column in cka.T]
    known = np.isfinite(cka).all(axis=0) & np.isfinite(near).all()
    return HeadSubsets(chosen, near, cka, np.where(known, rho, np.nan))
