"""Metrics of attention heads: attention distance, attention to special tokens, and entropy.

Attention distance: Dosovitskiy et al., ICLR 2021, figure 7 and appendix D.6; Raghu et al., NeurIPS 2021,
section 5; Walmer et al., CVPR 2023, section 4.3. The class token and registers are cut off and rows are
renormalised, as in the released code of the last; the other two papers do not state their treatment.

Shares: attention to the class token is an auxiliary number of the released code of Walmer et al., which reads
the first patch in its place; that is not copied. The other numbers are this package's.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np
import torch
from torch import Tensor

from layerboard.tasks.analyses import base
from layerboard.tasks.analyses.metrics.attention import Cells, attention_distance, cell_distances, entropy
from layerboard.tasks.framework.base import Findings, Group, LayerOutcome, Outcome
from layerboard.tasks.framework.feeds import ATTENTION
from layerboard.tasks.framework.measurers import BatchMeasurer, Measurer
from layerboard.tasks.framework.sources import ANY_SIZE
from layerboard.zoo.features import AttentionMaps
from layerboard.zoo.spec import Layer
from layerboard.zoo.view.views import View

LOCAL_RATIO = 0.5  # a head is local if its distance over that of uniform attention is below this


class AttentionDistance(base.ImageAnalysis[AttentionMaps]):
    """Attention distance of patches in the probe images, for each head of each block.

    ``attention-distance`` is measured on the unit square spanned by the patch centres,
    ``attention-distance-px`` in pixels. ``attention-distance-ratio`` is the first divided by that of uniform
    attention, which depends only on the grid. For each layer, ``distance-range`` is the largest minus the
    smallest distance of its heads, on the unit square, and ``local-heads`` the share of its heads with a
    ratio below one half. Raghu et al. show the sorted heads; these two numbers are ours. A grid of one cell
    has distance 0 and no ratio.
    """

    feed = ATTENTION
    version = 3

    def measure(self, group: Group, view: View) -> Measurer[AttentionMaps]:
        side = view.geometry(ANY_SIZE).size[0]

        @cache  # all batches of a group have one grid
        def between(cells: Cells, device: torch.device) -> tuple[Tensor, Tensor]:
            """Distances of all cells, on the unit square and in cells; and the mean of the former, [1]."""
            unit, plain = (cell_distances(cells, unit=unit, device=device) for unit in (True, False))
            return torch.stack([unit, plain]), cell_distances(cells, unit=True).mean()[None]

        def reduce(layer: Layer, positions: Sequence[int], maps: AttentionMaps) -> dict[str, Tensor]:
            """Mean distances of each image and head, [images heads], on the unit square and in cells."""
            distances, uniform = between(maps.cells, maps.patches.device)
            means = attention_distance(maps.patches, distances)
            patch = torch.tensor([side // maps.cells[1]])
            return {"unit": means[..., 0], "cells": means[..., 1], "uniform": uniform.clone(), "patch": patch}

        return BatchMeasurer(reduce, {"uniform": base.first, "patch": base.first})

    def summarise(self, layer: Layer, images: base.KeptImages) -> Findings:
        unit = images.each("unit")
        outcome = Outcome((), empty=base.NOT_FINITE)
        if np.isfinite(unit).all():
            tally, heads = base.Tally(images.keys), unit.mean(axis=0)
            tally.heads("attention-distance", unit)
            tally.heads("attention-distance-px", int(images.first["patch"][0]) * images.each("cells"))
            tally.number("distance-range", float(heads.max() - heads.min()))
            if uniform := float(images.first["uniform"][0]):  # a grid of one cell has no distances at all
                tally.heads("attention-distance-ratio", unit / uniform)
                local = heads / uniform < LOCAL_RATIO
                tally.number("local-heads", float(local.mean()), len(local), "heads")
            outcome = tally.outcome()
        arrays = {"distance": unit, "image": np.array(images.keys)}
        return Findings((LayerOutcome(layer, "patch", outcome),), arrays)

    def arrays(self, layers: base.LayerArrays) -> dict[str, base.Array]:
        distance = layers.stacked("distance", axis=1)
        return {"distance": distance, "image": layers.first["image"], "block": layers.blocks}


POOLINGS = ("patch", "cls")  # query tokens
METRICS = ("entropy", "attention-to-cls", "attention-to-registers", "attention-to-self")


class AttentionShares(base.ImageAnalysis[AttentionMaps]):
    """Attention to the class token, to all registers and to the query token itself, and its entropy.

    Query tokens are the patches (pooling ``patch``) and the class token (``cls``). The entropy is over all
    tokens, as a share of the maximum. Without a class token or registers, their metrics are missing.
    """

    feed = ATTENTION

    def reduce(self, layer: Layer, positions: Sequence[int], maps: AttentionMaps) -> dict[str, Tensor]:
        """Values [images heads], float32, by query token and metric (``cls/entropy``)."""
        every, prefix = maps.probabilities, maps.prefix_tokens
        spread, patches = entropy(every), every[:, :, prefix:]
        shares = {
            "patch/entropy": spread[..., prefix:].mean(dim=-1),
            "patch/attention-to-self": every.diagonal(dim1=-2, dim2=-1)[..., prefix:].float().mean(dim=-1),
        }
        if prefix:
            shares["patch/attention-to-cls"] = patches[..., 0].float().mean(dim=-1)
            shares["cls/entropy"] = spread[..., 0].clone()
            shares["cls/attention-to-cls"] = every[:, :, 0, 0].clone().float()
        if prefix > 1:
            shares["patch/attention-to-registers"] = patches[..., 1:prefix].float().sum(dim=-1).mean(dim=-1)
            shares["cls/attention-to-registers"] = every[:, :, 0, 1:prefix].float().sum(dim=-1)
        return shares

    def summarise(self, layer: Layer, images: base.KeptImages) -> Findings:
        outcomes = []
        for pooling in (name for name in POOLINGS if f"{name}/entropy" in images.first):
            names = {metric: f"{pooling}/{metric}" for metric in METRICS}
            tables = {metric: images.each(name) for metric, name in names.items() if name in images.first}
            outcome = Outcome((), empty=base.NOT_FINITE)
            if all(np.isfinite(table).all() for table in tables.values()):
                tally = base.Tally(images.keys)
                for metric, table in tables.items():
                    tally.heads(metric, table)
                outcome = tally.outcome()
            outcomes.append(LayerOutcome(layer, pooling, outcome))
        return Findings(tuple(outcomes))
