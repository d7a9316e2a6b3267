"""Attention distance: whether heads look near or far.

Sources: Dosovitskiy et al., ICLR 2021, figure 7 and appendix D.6; Raghu et al., NeurIPS 2021, section 5;
Walmer et al., CVPR 2023, section 4.3. The class token and registers are cut off and rows renormalised, as
in the released code of the last; the other two do not say what they do with them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import torch
from torch import Tensor

from tasks.analyses.base import (
    NOT_FINITE,
    Array,
    BatchMeasurer,
    KeptImages,
    LayerArrays,
    LayerSummary,
    ProbeAnalysis,
    Tally,
    first,
)
from tasks.base import Group, LayerOutcome, Measurer, Outcome
from tasks.feeds import ATTENTION
from tasks.metrics.arrays import Floats
from tasks.metrics.attention import Cells, attention_distance, cell_distances
from tasks.sources import ANY_SIZE
from zoo.features import AttentionMaps
from zoo.spec import Layer
from zoo.view.views import View

LOCAL_RATIO = 0.5
"""Distance over that of uniform attention below which a head is local."""

Between = Callable[[Cells, torch.device], tuple[Tensor, Tensor]]


@dataclass(frozen=True, eq=False)
class AttentionDistance(ProbeAnalysis[AttentionMaps]):
    """Mean distance over which the patches of the probe images attend, for each head of each block.

    ``attention-distance`` is measured on the unit square, corner to corner; ``attention-distance-px`` in
    pixels between patch centres; ``attention-distance-ratio`` is the first over that of uniform attention,
    which depends on the grid alone. Of each layer, ``distance-range`` is the distance of its farthest head
    less that of its nearest, on the unit square, and ``local-heads`` the share of its heads with a ratio
    below a half: Raghu et al. show the sorted heads, the two numbers are this package's. A grid of one cell
    has distance 0 and no ratio.
    """

    feed = ATTENTION
    version = 2

    def measure(self, group: Group, view: View) -> Measurer[AttentionMaps]:
        # all batches of a group have one grid, whose distances are computed once
        reduce = partial(_distances, view.geometry(ANY_SIZE).size[0], cache(_between))
        return BatchMeasurer(reduce, {"uniform": first, "patch": first})

    def summarise(self, layer: Layer, images: KeptImages) -> LayerSummary:
        unit = images.each("unit")
        outcome = Outcome((), empty=NOT_FINITE)
        if np.isfinite(unit).all():
            pixels = int(images.first["patch"][0]) * images.each("cells")
            outcome = _outcome(images.keys, unit, pixels, float(images.first["uniform"][0]))
        arrays = {"distance": unit, "image": np.array(images.keys)}
        return LayerSummary([LayerOutcome(layer, "patch", outcome)], arrays)

    def arrays(self, layers: LayerArrays) -> dict[str, Array]:
        distance = layers.stacked("distance", axis=1)
        return {"distance": distance, "image": layers.first["image"], "block": layers.blocks}


def _distances(
    side: int, between: Between, layer: Layer, positions: Sequence[int], maps: AttentionMaps
) -> dict[str, Tensor]:
    """Mean distances of each image and head, [images heads], on the unit square and in cells."""
    distances, uniform = between(maps.cells, maps.patches.device)
    found = attention_distance(maps.patches, distances)
    patch = torch.tensor([side // maps.cells[1]])
    return {"unit": found[..., 0], "cells": found[..., 1], "uniform": uniform.clone(), "patch": patch}


def _between(cells: Cells, device: torch.device) -> tuple[Tensor, Tensor]:
    """Distances of all cells, on the unit square and in cells; and the mean of the former, [1]."""
    unit, plain = (cell_distances(cells, unit=unit, device=device) for unit in (True, False))
    return torch.stack([unit, plain]), cell_distances(cells, unit=True).mean()[None]


def _outcome(keys: Sequence[str], unit: Floats, pixels: Floats, uniform: float) -> Outcome:
    """Scores of all heads together and of each, of distances [images heads]."""
    tally, heads = Tally(keys), unit.mean(axis=0)
    tally.heads("attention-distance", unit)
    tally.heads("attention-distance-px", pixels)
    tally.number("distance-range", float(heads.max() - heads.min()))
    if uniform:  # a grid of one cell has no distances at all
        tally.heads("attention-distance-ratio", unit / uniform)
        local = heads / uniform < LOCAL_RATIO
        tally.number("local-heads", float(local.mean()), len(local), "heads")
    return tally.outcome()
