"""Position audit: how much of a layer's tokens is their place in the image.

A ridge regression reads row and column off the tokens of images that it has not seen, and tokens of one
image are matched with those of another, unrelated one: matches at the same place are made by position.
Sources: as of `tasks.metrics.position`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tasks.base import (
    FINITE,
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
from tasks.checks import ALIKE, nothing_read, varies
from tasks.feeds import WHOLE_GRIDS, GridFeed
from tasks.metrics.position import LEAST, matches, place_errors
from tasks.sources import ProbeSources
from zoo.spec import Layer
from zoo.view.views import View

METRICS = ("position-r2", "same-place", "match-distance", "position-r2-row", "position-r2-column")


@dataclass(frozen=True, slots=True)
class PositionRule:
    """The numbers of the position audit.

    Attributes:
        images: Images at most that are looked at of each group of the probe subset, its first.
        penalties: Of the ridge regression, as shares of the tokens' mean variance; the best is taken.
    """

    images: int
    penalties: tuple[float, ...]


@dataclass(frozen=True)
class PositionAudit:
    """Position in the patch tokens of the probe images.

    ``position-r2``: share of the variance of row and column that a linear map reads off unit tokens, learned
    from half of the images and asked of the others; 1 at most, about 0 where nothing is to be read.
    ``same-place``: share of tokens whose most similar token in another image is at the same place; by chance
    ``same-place-chance``, one over the cells. ``match-distance``: from a token's place to its match's, on the
    unit square. Photographs of a dataset are alike at the same place (sky above, ground below): a little of
    all that is no fault of a network.
    """

    where: ProbeSources
    rule: PositionRule

    @property
    def source(self) -> Source:
        """The source that is looked at: the probe subset."""
        return self.where.probe

    @property
    def feed(self) -> GridFeed:
        """Measurers are fed grids of whole groups: images are compared."""
        return WHOLE_GRIDS

    @cached_property
    def fingerprint(self) -> str:
        """Digest of its numbers; it has no ground truth but the places."""
        return digest("position-audit", 1, self.rule)

    def measure(self, group: Group, view: View) -> Measurer[Tensor]:
        """A measurer of some images."""
        return _Audit(self.rule)

    def findings(self, measured: Mapping[Layer, Sequence[Measurements]]) -> Findings:
        """What the tokens of each layer say of their place; raises UnreadableImageError."""
        found = {layer: list(measured[layer]) for layer in measured}
        if found and not any(len(one["seen"]) for groups in found.values() for one in groups):
            raise nothing_read(self.source)
        return Findings(
            tuple(LayerOutcome(layer, "patch", self._outcome(groups)) for layer, groups in found.items())
        )

    def _outcome(self, groups: Sequence[Measurements]) -> Outcome:
        there = [(group, one) for group, one in zip(self.source.groups, groups, strict=True) if "same" in one]
        if not there:
            return Outcome((), empty=f"no group has {LEAST} images that could be read, which it needs")
        if not any(bool(one["varies"][0]) for _, one in there):
            return Outcome((), empty=ALIKE)
        keys = tuple(group.samples[int(place)].key for group, one in there for place in one["seen"])
        columns, missing = _columns([one for _, one in there])
        scores = [Score(name, float(column.mean()), len(keys), "images") for name, column in columns.items()]
        cells = int(there[0][1]["cells"][0])
        scores.append(Score("same-place-chance", 1 / cells, len(keys), "images"))
        statistics = {name: Statistic(name) for name in columns}
        items = Items("images", keys, keys, ("",) * len(keys), columns, statistics)
        return Outcome(tuple(scores), items, missing=missing)


def _columns(groups: Sequence[Measurements]) -> tuple[dict[str, NDArray[np.float64]], dict[str, str]]:
    """Values of each image by metric, and why metrics have none."""

    def joined(name: str) -> NDArray[np.float64]:
        return np.concatenate([np.asarray(one[name], np.float64) for one in groups])

    variance, errors = np.asarray(groups[0]["variance"], np.float64), joined("errors")
    found, missing = {}, {}
    if variance.sum() > 0:
        found["position-r2"] = 1 - errors.sum(1) / variance.sum()
    else:
        missing["position-r2"] = "a grid of one cell has one place"
    found |= {"same-place": joined("same"), "match-distance": joined("distance")}
    for side, name in enumerate(("position-r2-row", "position-r2-column")):
        if variance[side] > 0:
            found[name] = 1 - errors[:, side] / variance[side]
    return found, missing


class _Audit:
    """Keeps a few numbers of each image of a group, which it sees whole."""

    def __init__(self, rule: PositionRule) -> None:
        self._rule = rule
        self._kept: dict[Layer, dict[str, Tensor]] = {}

    def update(self, layer: Layer, positions: Sequence[int], grids: Tensor) -> None:
        grids = grids[: self._rule.images]
        seen = torch.tensor(list(positions)[: len(grids)], dtype=torch.long)
        self._kept[layer] = {"seen": seen}
        if len(grids) < LEAST:
            return
        errors, found = place_errors(grids, self._rule.penalties), matches(grids)
        self._kept[layer] |= {
            "errors": errors.squared,
            "variance": errors.variance,
            "same": found.same,
            "distance": found.distance,
            "cells": torch.tensor([grids.shape[1] * grids.shape[2]]),
            "varies": varies(grids)[None],
            FINITE: grids.isfinite().all(),
        }

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        return self._kept.pop(layer, {"seen": torch.zeros(0, dtype=torch.long)})
