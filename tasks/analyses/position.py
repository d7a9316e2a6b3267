"""Position audit: the position in tokens, decoded by a linear map, and its effect on matches between images.

Ridge regression predicts row and column from the tokens of held-out images, and tokens of one image are
matched with those of another, unrelated one, where matches at the same position are due to position
information. Sources: INSID3 (visinf/INSID3, commit f1c9622), whose debiasing removes such directions; Islam
et al., How Much Position Information Do Convolutional Neural Networks Encode?, ICLR 2020 (positions decoded
from features).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from layerboard.tasks.analyses.base import ImageAnalysis, KeptImages, Tally
from layerboard.tasks.framework.base import FINITE, Findings, LayerOutcome, Outcome
from layerboard.tasks.framework.checks import ALIKE, varies
from layerboard.tasks.framework.feeds import WHOLE_GRIDS
from layerboard.zoo.spec import Layer


@dataclass(frozen=True, slots=True)
class PositionConfig:
    """Settings of the position audit."""

    images: int  # largest number of images of each group of the probe subset, the first ones
    penalties: tuple[float, ...]  # of ridge regression, relative to the tokens' mean variance


class PositionAudit(ImageAnalysis[Tensor]):
    """Position in the patch tokens of the probe images.

    ``position-r2``: share of the variance of row and column that a linear map predicts from unit tokens,
    trained on half of the images and tested on the others; at most 1, about 0 without position information.
    ``same-place``: share of tokens whose most similar token in another image is at the same position; by
    chance ``same-place-chance``, 1 / cells. ``match-distance``: distance from a token to its match, on the
    unit square. Photographs of a dataset are alike at the same position (sky above, ground below), so
    slightly increased values are no fault of a network.
    """

    config: PositionConfig
    configs: ClassVar = {
        "standard": PositionConfig(images=64, penalties=tuple(10.0**power for power in range(-3, 4)))
    }
    feed = WHOLE_GRIDS

    def reduce(self, layer: Layer, positions: Sequence[int], grids: Tensor) -> dict[str, Tensor]:
        grids = grids[: self.config.images]
        seen = torch.tensor(positions[: len(grids)])
        if len(grids) < LEAST:
            return {"seen": seen}
        errors, variance = place_errors(grids, self.config.penalties)
        same, distance = matches(grids)
        return {
            "seen": seen,
            "errors": errors,
            "variance": variance,
            "same": same,
            "distance": distance,
            "cells": torch.tensor([grids.shape[1] * grids.shape[2]]),
            "varies": varies(grids)[None],
            FINITE: grids.isfinite().all(),
        }

    def summarise(self, layer: Layer, images: KeptImages) -> Findings:
        return Findings((LayerOutcome(layer, "patch", _outcome(images.having("same"))),))


def _outcome(images: KeptImages) -> Outcome:
    if not images.groups:
        return Outcome((), empty=f"fewer than {LEAST} images of each batch could be read")
    if not any(bool(varied[0]) for varied in images.every("varies")):
        return Outcome((), empty=ALIKE)
    tally = Tally(images.keys_at("seen"))
    variance, errors = np.asarray(images.first["variance"], np.float64), images.each("errors")
    if variance.sum() > 0:
        tally.images("position-r2", 1 - errors.sum(1) / variance.sum())
    else:
        tally.missing["position-r2"] = "a grid of one cell has a single position"
    tally.images("same-place", images.each("same"))
    tally.images("match-distance", images.each("distance"))
    for side, name in enumerate(("position-r2-row", "position-r2-column")):
        if variance[side] > 0:
            tally.images(name, 1 - errors[:, side] / variance[side])
    tally.number("same-place-chance", 1 / int(images.first["cells"][0]))
    return tally.outcome()


LEAST = 4  # least number of images, so that training, choice of the penalty and test use different ones


def places(cells: tuple[int, int]) -> Tensor:
    """Row and column of the centres of a grid's cells on the unit square, [cells 2] float64, row by row."""
    rows, columns = ((torch.arange(count, dtype=torch.float64) + 0.5) / count for count in cells)
    return torch.cartesian_prod(rows, columns)


def place_errors(grids: Tensor, penalties: Sequence[float]) -> tuple[Tensor, Tensor]:
    """Squared errors of the positions that ridge regression predicts from unit tokens of held-out images.

    The images [images height width dim], at least `LEAST`, are split into even and odd ones. Each half is
    predicted by the regression fitted to the other. Its penalty is the one that, fitted to half of the
    training images, predicts the rest of them best. ``penalties`` are added to the variance of each
    direction, in units of the tokens' mean variance, above 0; with a large one the mean position is predicted
    everywhere. Returns the mean squared error of row and column over each image's tokens [images 2], and that
    of the mean position, the baseline, [2], which is 0 along a side of one cell; both float64.
    """
    truth = places((grids.shape[1], grids.shape[2])).to(grids.device)
    tokens = functional.normalize(grids.flatten(1, 2).float(), dim=-1)
    squared = torch.empty(len(grids), 2, dtype=torch.float64, device=grids.device)
    tried = torch.tensor(penalties, dtype=torch.float64).to(grids.device)
    for half in range(2):
        errors = _read_off(tokens[half::2], tokens[1 - half :: 2], truth, tried)
        squared[1 - half :: 2] = ((errors - truth) ** 2).mean(dim=1)
    return squared, ((truth - truth.mean(0)) ** 2).mean(0)


def _read_off(learned: Tensor, asked: Tensor, truth: Tensor, penalties: Tensor) -> Tensor:
    """Positions of the tokens ``asked`` predicted by ridge regression with intercept: [images cells 2]."""
    mean, around = learned.mean(dim=(0, 1)), truth - truth.mean(0)
    centred = learned - mean
    first, second = (_moments(centred[part::2], around) for part in range(2))
    tried = _weights(first, penalties)
    rest = centred[1::2].double().flatten(0, 1)
    errors = (rest @ tried - around.repeat(len(centred[1::2]), 1)).square().mean(dim=(1, 2))
    best = penalties[errors.argmin(dim=0, keepdim=True)]  # an index without an axis would wait for the device
    weights = _weights((first[0] + second[0], first[1] + second[1]), best)
    return (asked - mean).double() @ weights[0] + truth.mean(0)


def _moments(tokens: Tensor, around: Tensor) -> tuple[Tensor, Tensor]:
    """Products of tokens [images cells dim] with each other [dim dim] and with their positions [dim 2]."""
    rows = tokens.flatten(0, 1)
    return (rows.T @ rows).double(), tokens.sum(0).double().T @ around


def _weights(moments: tuple[Tensor, Tensor], penalties: Tensor) -> Tensor:
    """Weights for each penalty, [penalties dim 2]."""
    products, targets = moments
    # tokens that are all equal predict the mean position
    added = penalties * products.diagonal().mean() + torch.finfo(torch.float64).tiny
    identity = torch.eye(len(products), dtype=torch.float64, device=products.device)
    # `solve` would wait for the device to check for errors
    every = targets.expand(len(penalties), *targets.shape)
    weights: Tensor = torch.linalg.solve_ex(products + added[:, None, None] * identity, every).result
    return weights


def matches(grids: Tensor) -> tuple[Tensor, Tensor]:
    """Position bias of matches: nearest tokens by cosine in the next image (for the last image, the first).

    Ties go to the first token. ``grids`` are [images height width dim], at least two images. Returns the
    share of each image's tokens whose match is at the same position, and the mean distance between the
    position and the match on the unit square: [images] each.
    """
    cells = grids.shape[1] * grids.shape[2]
    tokens = functional.normalize(grids.flatten(1, 2).float(), dim=-1)
    own = torch.arange(cells, device=grids.device)
    where = places((grids.shape[1], grids.shape[2])).to(grids.device)
    pairs = zip(tokens, tokens.roll(-1, 0), strict=True)
    agreement = torch.stack([(first @ other.T).argmax(1) for first, other in pairs])
    distance = torch.linalg.vector_norm(where[agreement] - where, dim=-1).mean(1)
    return (agreement == own).double().mean(1), distance
