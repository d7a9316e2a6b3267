"""Attention distance: whether heads look near or far.

Sources: Dosovitskiy et al., ICLR 2021, figure 7 and appendix D.6; Raghu et al., NeurIPS 2021, section 5;
Walmer et al., CVPR 2023, section 4.3. The class token and registers are cut off and rows renormalised, as
in the released code of the last; the other two do not say what they do with them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from tasks.analyses.tally import NOT_FINITE, Tally, joined, keys_of, seen
from tasks.base import Findings, Group, LayerOutcome, Measurements, Measurer, Outcome, Source, digest
from tasks.checks import nothing_read
from tasks.feeds import ATTENTION, AttentionFeed
from tasks.metrics.arrays import Floats
from tasks.metrics.attention import attention_distance, cell_distances
from tasks.sources import ANY_SIZE, ProbeSources
from zoo.features import AttentionMaps
from zoo.spec import Layer
from zoo.view.views import View

LOCAL_RATIO = 0.5
"""Distance over that of uniform attention below which a head is local."""


@dataclass(frozen=True)
class AttentionDistance:
    """Mean distance over which the patches of the probe images attend, for each head of each block.

    ``attention-distance`` is measured on the unit square, corner to corner; ``attention-distance-px`` in
    pixels between patch centres; ``attention-distance-ratio`` is the first over that of uniform attention,
    which depends on the grid alone. Of each
    layer, ``distance-range`` is the distance of its farthest head less that of its nearest, on the unit
    square, and ``local-heads`` the share of its heads with a ratio below a half: Raghu et al. show the sorted
    heads, the two numbers are this package's. A grid of one cell has distance 0 and no ratio.
    """

    where: ProbeSources

    @property
    def source(self) -> Source:
        """The source that is looked at: the probe subset."""
        return self.where.probe

    @property
    def feed(self) -> AttentionFeed:
        """Measurers are fed attention probabilities."""
        return ATTENTION

    @cached_property
    def fingerprint(self) -> str:
        """Digest of what it is: it has no numbers of its own and no ground truth."""
        return digest("attention-distance", 2)

    def measure(self, group: Group, view: View) -> Measurer[AttentionMaps]:
        """A measurer of some images."""
        return _DistanceMeasurer(view.geometry(ANY_SIZE).size[0])

    def findings(self, measured: Mapping[Layer, Sequence[Measurements]]) -> Findings:
        """Means over the images of each block, all heads together, and each; raises UnreadableImageError.

        Arrays: ``distance`` [images blocks heads] on the unit square, ``image`` [images] keys of the images,
        ``block`` [blocks].
        """
        found = {layer: _Distances.read(self.source, measured[layer]) for layer in measured}
        there = {layer: one for layer, one in found.items() if one is not None}
        if not there:
            raise nothing_read(self.source)
        outcomes = (LayerOutcome(layer, "patch", one.outcome()) for layer, one in there.items())
        arrays = {
            "distance": np.stack([one.unit for one in there.values()], axis=1).astype(np.float32),
            "image": np.array(next(iter(there.values())).keys),
            "block": np.array([layer.index for layer in there], np.int64),
        }
        return Findings(tuple(outcomes), arrays)


class _DistanceMeasurer:
    """Keeps one number for each image, block and head; the maps are dropped."""

    def __init__(self, side: int) -> None:
        self._side = side
        self._kept: dict[Layer, list[tuple[Sequence[int], Tensor]]] = {}
        self._grid = (1, 1)
        self._distances: dict[torch.device, Tensor] = {}

    def update(self, layer: Layer, positions: Sequence[int], maps: AttentionMaps) -> None:
        self._grid = maps.cells
        between = self._between(maps.patches.device)
        self._kept.setdefault(layer, []).append((positions, attention_distance(maps.patches, between)))

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        parts = self._kept.pop(layer, [])
        if not parts:
            return {}
        uniform = cell_distances(self._grid, unit=True).mean()
        found = torch.cat([one for _, one in parts])
        return {
            "position": torch.tensor([position for positions, _ in parts for position in positions]),
            "unit": found[..., 0],
            "cells": found[..., 1],
            "uniform": uniform[None],
            "patch": torch.tensor([self._side // self._grid[1]]),
        }

    def _between(self, device: torch.device) -> Tensor:
        """Distances of all cells, on the unit square and in cells."""
        if device not in self._distances:
            kinds = [cell_distances(self._grid, unit=unit, device=device) for unit in (True, False)]
            self._distances[device] = torch.stack(kinds)
        return self._distances[device]


@dataclass(frozen=True)
class _Distances:
    """Distances of one block: ``unit`` and ``pixels`` are [images heads]."""

    keys: tuple[str, ...]
    unit: Floats
    pixels: Floats
    uniform: float

    @classmethod
    def read(cls, source: Source, measurements: Sequence[Measurements]) -> "_Distances | None":
        """From what the groups left behind; None where no image could be read."""
        found = seen(source, measurements)
        if not found:
            return None
        first = found[0][1]
        pixels = int(first["patch"][0]) * joined(found, "cells")
        return cls(keys_of(found), joined(found, "unit"), pixels, float(first["uniform"][0]))

    def outcome(self) -> Outcome:
        """Scores of all heads together and of each, and the images behind them."""
        if not np.isfinite(self.unit).all():
            return Outcome((), empty=NOT_FINITE)
        tally = Tally(self.keys)
        tally.heads("attention-distance", self.unit)
        tally.heads("attention-distance-px", self.pixels)
        heads = self.unit.mean(axis=0)
        tally.number("distance-range", float(heads.max() - heads.min()), len(self.keys), "images")
        if self.uniform:  # a grid of one cell has no distances at all
            tally.heads("attention-distance-ratio", self.unit / self.uniform)
            local = heads / self.uniform < LOCAL_RATIO
            tally.number("local-heads", float(local.mean()), len(local), "heads")
        return tally.outcome()
