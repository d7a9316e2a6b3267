"""Whether the heads of a transformer that look near are like the first blocks of a ConvNet.

Source: Raghu et al., Do Vision Transformers See Like Convolutional Neural Networks?, NeurIPS 2021, section 5
and figure 5. Which subsets of heads are taken there is not said; here they are windows in the order of the
distance over which heads attend (`tasks.metrics.locality`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tasks.base import Group, Measurer, Source, digest
from tasks.cka import CkaProblem, CkaRule, stored_grams
from tasks.comparing import PairFindings, StoredBackbone
from tasks.feeds import HeadsOrBlocksFeed
from tasks.metrics.attention import attention_distance, cell_distances
from tasks.metrics.locality import FEWEST, HeadSubsets, subsets_of
from tasks.metrics.similarity import gather
from tasks.sources import ANY_SIZE, ProbeSources
from zoo.features import AttentionMaps, LayerFeatures
from zoo.spec import WHOLE_BACKBONE, BackboneSpec, Layer
from zoo.view.views import View

METRIC = "locality-rho"
POOLING = "patch"

Portion = tuple[AttentionMaps | None, LayerFeatures]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LocalityRule:
    """The numbers of locality, beside the batches of its source.

    Attributes:
        block: Block of the transformers whose heads are taken.
        blocks: How many of the first blocks of a ConvNet they are compared with.
    """

    block: int
    blocks: int


@dataclass(frozen=True)
class Locality:
    """Rank correlation, over windows of heads, of how far they look and how like a ConvNet they are.

    The Gram matrix of heads side by side is the sum of theirs, so Gram matrices are plain under every
    protocol: scaled ones do not add.
    """

    where: ProbeSources
    rule: LocalityRule

    @property
    def source(self) -> Source:
        """The source that is looked at: the probe subset, of which every group holds whole batches."""
        return self.where.probe

    @property
    def feed(self) -> HeadsOrBlocksFeed:
        """Measurers are fed the heads of a transformer, or the first blocks of a ConvNet."""
        return HeadsOrBlocksFeed(self.rule.block, self.rule.blocks)

    @cached_property
    def cka(self) -> CkaProblem:
        """How batches are cut and Gram matrices made."""
        return CkaProblem(self.where, CkaRule((POOLING,), min_max=False))

    @cached_property
    def fingerprint(self) -> str:
        """Digest of the rule and of how the images are cut into batches."""
        return digest("locality", 1, self.rule, self.cka.fingerprint)

    @property
    def poolings(self) -> tuple[str, ...]:
        """Patch tokens, flattened."""
        return (POOLING,)

    def measure(self, group: Group, view: View) -> Measurer[Portion]:
        """What keeps Gram matrices, and of heads the distances over which they attend."""
        return _Measurer(self.cka, view.geometry(ANY_SIZE).size[0])

    def compares(self, first: BackboneSpec, second: BackboneSpec) -> bool:
        """A transformer is compared with a ConvNet."""
        return (first.heads is None) != (second.heads is None)

    def compare(
        self, backbones: Sequence[StoredBackbone], pooling: str, device: torch.device
    ) -> Iterator[PairFindings]:
        """``locality-rho`` of every transformer with every ConvNet: mean over its blocks, and of each.

        Arrays: ``head_cka`` [subsets blocks] CKA of each window of heads with each block of the ConvNet,
        ``distance`` [subsets] over which its heads attend in pixels, ``heads`` [subsets size].
        """
        specs = [one.spec for one in backbones]
        for first, transformer in enumerate(specs):
            for second, convnet in enumerate(specs):
                if transformer.heads is not None and convnet.heads is None:
                    yield from self._pair(backbones, first, second, device)

    def _pair(
        self, backbones: Sequence[StoredBackbone], first: int, second: int, device: torch.device
    ) -> Iterator[PairFindings]:
        transformer, convnet = backbones[first], backbones[second]
        heads = self.feed.layers((), transformer.spec)
        blocks = self.feed.layers((), convnet.spec)
        reason = transformer.refusal or convnet.refusal
        found = None if reason else self._subsets(transformer, convnet, device)
        if found is None:
            reason = reason or "heads or blocks could not be measured"
            yield PairFindings.none(first, second, METRIC, (heads, (WHOLE_BACKBONE,)), reason)
            return
        reason = _undefined(found)
        arrays: dict[str, NDArray[np.generic]] = {
            "head_cka": found.cka.astype(np.float32),
            "distance": found.distance,
            "heads": found.heads,
        }
        for others, value in (((WHOLE_BACKBONE,), found.rho.mean(keepdims=True)), (blocks, found.rho)):
            errors = np.full((1, len(value)), np.nan)
            yield PairFindings(first, second, METRIC, heads, others, value[None], errors, reason, arrays)

    def _subsets(
        self, transformer: StoredBackbone, convnet: StoredBackbone, device: torch.device
    ) -> HeadSubsets | None:
        """Windows of heads against blocks, over all batches; None where nothing was measured."""
        (layer,) = self.feed.layers((), transformer.spec)
        blocks = self.feed.layers((), convnet.spec)
        distances: list[NDArray[np.float32]] = []
        own = cross = other = torch.zeros(1, device=device)
        for number, sizes in self._sizes(transformer.shown):
            heads = transformer.measured(number).get(layer, {})
            if "gram" not in heads:
                return None
            distances.append(np.asarray(heads["distance"], np.float32))
            grams = zip(
                _head_grams(heads["gram"], sizes), stored_grams(convnet, number, blocks, sizes), strict=True
            )
            for pair in grams:
                one, two = (self.cka.centred(torch.as_tensor(gram).to(device)) for gram in pair)
                own, cross, other = own + gather(one, one), cross + gather(one, two), other + gather(two, two)
        if not distances:
            return None
        distance = np.concatenate(distances).astype(np.float64).mean(axis=0)
        tables = (table.cpu().numpy() for table in (own, cross, other.diagonal()))
        return subsets_of(distance, *tables)

    def _sizes(self, shown: NDArray[np.bool_]) -> Iterator[tuple[int, list[int]]]:
        """Groups with batches that can be compared, and the number of images of each of these."""
        start = 0
        for number, group in enumerate(self.source.groups):
            positions = np.flatnonzero(shown[start : start + len(group.samples)])
            if sizes := [rows.stop - rows.start for rows in self.cka.batches(positions.tolist())]:
                yield number, sizes
            start += len(group.samples)


@dataclass(frozen=True, slots=True)
class _Heads:
    """What heads give for some images of a group.

    Attributes:
        positions: Places of the images in their group.
        grid: [images height width dim], head by head.
        distance: [images heads].
        heads: How many there are.
    """

    positions: Sequence[int]
    grid: Tensor
    distance: Tensor
    heads: int


class _Measurer:
    """Keeps Gram matrices of each batch, one a head or one of a block, and distances of images and heads."""

    def __init__(self, problem: CkaProblem, side: int) -> None:
        self._problem = problem
        self._side = side
        self._heads: dict[Layer, list[_Heads]] = {}
        self._kept: dict[Layer, dict[str, Tensor]] = {}

    def update(self, layer: Layer, positions: Sequence[int], portion: Portion) -> None:
        maps, features = portion
        if maps is None:
            # blocks of a ConvNet come whole: their source is joint
            self._kept[layer] = {name: gram[0] for name, gram in self._grams(positions, features.grid, 1)}
            return
        # heads come in batches whose maps fit; what they add to the stream is small beside the maps
        distance, heads = _pixel_distances(maps, self._side), maps.probabilities.shape[1]
        some = _Heads(positions, features.grid.clone(), distance, heads)
        self._heads.setdefault(layer, []).append(some)

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        if parts := self._heads.pop(layer, []):
            positions = [position for part in parts for position in part.positions]
            distance = torch.cat([part.distance for part in parts])
            grid = torch.cat([part.grid for part in parts])
            return {"distance": distance, **dict(self._grams(positions, grid, parts[0].heads))}
        return self._kept.pop(layer, {})

    def _grams(self, positions: Sequence[int], grid: Tensor, heads: int) -> Iterator[tuple[str, Tensor]]:
        """Gram matrices of each head in all batches, [heads entries]; none where no batch is large enough."""
        if batches := self._problem.batches(positions):
            images, rows, columns, width = grid.shape
            tokens = grid.reshape(images, rows * columns, heads, width // heads).permute(2, 0, 1, 3)
            grams = [self._problem.gram(tokens[:, batch].flatten(2), checked=False) for batch in batches]
            yield "gram", torch.cat([gram.float().flatten(1) for gram in grams], dim=1)


def _pixel_distances(maps: AttentionMaps, side: int) -> Tensor:
    """Mean distance in pixels over which each head attends, [images heads]."""
    cells = cell_distances(maps.cells, unit=False, device=maps.probabilities.device)
    return attention_distance(maps.patches, cells) * (side // maps.cells[1])


def _head_grams(flat: NDArray[np.generic], sizes: Sequence[int]) -> list[NDArray[np.float32]]:
    """Gram matrices [heads images images] of each batch, of so many images."""
    grams = np.asarray(flat, np.float32)
    parts = np.split(grams, np.cumsum([size**2 for size in sizes])[:-1], axis=1)
    return [part.reshape(len(grams), size, size) for part, size in zip(parts, sizes, strict=True)]


def _undefined(found: HeadSubsets) -> str:
    """Why there is no rank correlation where there is none."""
    if len(found.heads) < FEWEST:
        return f"a rank correlation takes {FEWEST} subsets of heads; there are {len(found.heads)}"
    if not np.isfinite(found.distance).all():
        return "attention probabilities are not finite"
    if not np.isfinite(found.cka).all():
        return "heads or blocks do not vary or are not finite"
    return "all subsets look equally far or are equally like the blocks"
