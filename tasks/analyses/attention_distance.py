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
from numpy.typing import NDArray
from torch import Tensor

from tasks.base import (
    Findings,
    Group,
    Items,
    LayerOutcome,
    Measurements,
    Measurer,
    Outcome,
    Score,
    Source,
    Statistic,
    digest,
)
from tasks.checks import nothing_read
from tasks.feeds import ATTENTION, AttentionFeed
from tasks.metrics.attention import attention_distance, cell_distances, patch_attention
from tasks.sources import ClassificationSources
from zoo.features import AttentionMaps
from zoo.spec import Layer
from zoo.view.views import View

ANY_SIZE = (256, 256)
"""Stands for the size of any image: views of a classification dataset show all at one size."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class AttentionDistance:
    """Mean distance over which the patches of the probe images attend, for each head of each block.

    ``attention-distance`` is measured on the unit square, corner to corner; ``attention-distance-px`` in
    pixels between patch centres; ``attention-distance-ratio`` is the first over that of uniform attention,
    which depends on the grid alone.
    """

    where: ClassificationSources

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
        return digest("attention-distance", 1)

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
        self._kept: dict[Layer, list[tuple[Sequence[int], Tensor, Tensor]]] = {}
        self._grid = (1, 1)
        self._distances: dict[torch.device, tuple[Tensor, Tensor]] = {}

    def update(self, layer: Layer, positions: Sequence[int], maps: AttentionMaps) -> None:
        self._grid = maps.cells
        unit, cells = self._between(maps.probabilities.device)
        attention = patch_attention(maps.probabilities, maps.prefix_tokens)
        found = attention_distance(attention, unit), attention_distance(attention, cells)
        self._kept.setdefault(layer, []).append((positions, *found))

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        parts = self._kept.pop(layer, [])
        if not parts:
            return {}
        uniform = cell_distances(self._grid, unit=True).mean()
        return {
            "position": torch.tensor([position for positions, _, _ in parts for position in positions]),
            "unit": torch.cat([one for _, one, _ in parts]),
            "cells": torch.cat([one for _, _, one in parts]),
            "uniform": uniform[None],
            "patch": torch.tensor([self._side // self._grid[1]]),
        }

    def _between(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """Distances of all cells, on the unit square and in cells."""
        if device not in self._distances:
            self._distances[device] = (
                cell_distances(self._grid, unit=True, device=device),
                cell_distances(self._grid, unit=False, device=device),
            )
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
        pairs = zip(source.groups, measurements, strict=True)
        there = [(group, one) for group, one in pairs if "unit" in one]
        if not there:
            return None
        keys = (group.samples[int(place)].key for group, one in there for place in one["position"].tolist())
        first = there[0][1]
        unit, cells = (
            np.concatenate([np.asarray(one[name], np.float64) for _, one in there])
            for name in ("unit", "cells")
        )
        return cls(tuple(keys), unit, int(first["patch"][0]) * cells, float(first["uniform"][0]))

    def outcome(self) -> Outcome:
        """Scores of all heads together and of each, and the images behind them."""
        if not np.isfinite(self.unit).all():
            return Outcome((), empty="attention probabilities are not finite")
        # a grid of one cell has no distances at all
        ratio = self.unit / self.uniform if self.uniform else np.zeros_like(self.unit)
        scores: list[Score] = []
        values: dict[str, Floats] = {}
        statistics: dict[str, Statistic] = {}
        measured = {"": self.unit, "-px": self.pixels, "-ratio": ratio}
        for ending, table in measured.items():
            for head in range(-1, table.shape[1]):
                column = table.mean(axis=1) if head < 0 else table[:, head]
                score = Score(
                    f"attention-distance{ending}", float(column.mean()), len(column), "images", head
                )
                scores.append(score)
                values[score.statistic] = column
                statistics[score.statistic] = Statistic(score.statistic)
        strata = ("",) * len(self.keys)
        items = Items("images", self.keys, self.keys, strata, values, statistics)
        return Outcome(tuple(scores), items)
