"""Position audit: how much of a layer's tokens is their place in the image.

A ridge regression reads row and column off the tokens of images that it has not seen, and tokens of one
image are matched with those of another, unrelated one: matches at the same place are made by position.
Sources: as of `tasks.metrics.position`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from tasks.analyses.base import KeptImages, LayerSummary, ProbeAnalysis, Tally
from tasks.base import FINITE, LayerOutcome, Outcome
from tasks.checks import ALIKE, varies
from tasks.feeds import WHOLE_GRIDS
from tasks.metrics.position import LEAST, matches, place_errors
from zoo.spec import Layer


@dataclass(frozen=True, slots=True)
class PositionConfig:
    """The numbers of the position audit.

    Attributes:
        images: Images at most that are looked at of each group of the probe subset, its first.
        penalties: Of the ridge regression, as shares of the tokens' mean variance; the best is taken.
    """

    images: int
    penalties: tuple[float, ...]


CONFIGS = {"standard": PositionConfig(images=64, penalties=tuple(10.0**power for power in range(-3, 4)))}


@dataclass(frozen=True, eq=False)
class PositionAudit(ProbeAnalysis[Tensor]):
    """Position in the patch tokens of the probe images.

    ``position-r2``: share of the variance of row and column that a linear map reads off unit tokens, learned
    from half of the images and asked of the others; 1 at most, about 0 where nothing is to be read.
    ``same-place``: share of tokens whose most similar token in another image is at the same place; by chance
    ``same-place-chance``, one over the cells. ``match-distance``: from a token's place to its match's, on the
    unit square. Photographs of a dataset are alike at the same place (sky above, ground below): a little of
    all that is no fault of a network.
    """

    config: PositionConfig
    configs = CONFIGS
    transforms = True
    feed = WHOLE_GRIDS
    index = "seen"

    def reduce(self, layer: Layer, positions: Sequence[int], grids: Tensor) -> dict[str, Tensor]:
        grids = grids[: self.config.images]
        seen = torch.tensor(positions[: len(grids)])
        if len(grids) < LEAST:
            return {"seen": seen}
        errors, found = place_errors(grids, self.config.penalties), matches(grids)
        return {
            "seen": seen,
            "errors": errors.squared,
            "variance": errors.variance,
            "same": found.same,
            "distance": found.distance,
            "cells": torch.tensor([grids.shape[1] * grids.shape[2]]),
            "varies": varies(grids)[None],
            FINITE: grids.isfinite().all(),
        }

    def summarise(self, layer: Layer, images: KeptImages) -> LayerSummary:
        return LayerSummary([LayerOutcome(layer, "patch", _outcome(images.having("same")))])


def _outcome(images: KeptImages) -> Outcome:
    """Scores of one layer, of the groups with images enough."""
    if not images.groups:
        return Outcome((), empty=f"no group has {LEAST} images that could be read, which it needs")
    if not any(bool(kept[0]) for kept in images.every("varies")):
        return Outcome((), empty=ALIKE)
    tally, missing = Tally(images.keys), {}
    variance, errors = np.asarray(images.first["variance"], np.float64), images.each("errors")
    if variance.sum() > 0:
        tally.images("position-r2", 1 - errors.sum(1) / variance.sum())
    else:
        missing["position-r2"] = "a grid of one cell has one place"
    tally.images("same-place", images.each("same"))
    tally.images("match-distance", images.each("distance"))
    for side, name in enumerate(("position-r2-row", "position-r2-column")):
        if variance[side] > 0:
            tally.images(name, 1 - errors[:, side] / variance[side])
    tally.number("same-place-chance", 1 / int(images.first["cells"][0]))
    return tally.outcome(missing=missing)
