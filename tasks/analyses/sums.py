"""What the analyses of residual sums have in common: which features they take, and whether there is a sum.

An output that is not what skips plus what is added (a norm after the sum, a block without a skip) has no
ratio, no cosine and no CKA of the two, and says so.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tasks.feeds import Sum
from tasks.metrics.residual import sum_gap
from zoo.features import LayerFeatures
from zoo.spec import Layer, Tap

TOLERANCE = 1e-4
"""Largest difference between an output and the sum that it should be, as a share of its largest entry."""

ROUNDINGS = 4
"""Roundings of a low precision, whose own is coarser than `TOLERANCE`, that are allowed instead."""

Taps = Mapping[Tap, LayerFeatures]


def parts_of(features: LayerFeatures) -> list[Tensor]:
    """Tokens [images tokens dim] by kind: the class token where there is one, then the patches; views."""
    patches = features.grid.flatten(1, 2)
    return [patches] if features.cls is None else [features.cls[:, None], patches]


def gap_of(taps: Taps, one: Sum, layer: Layer) -> Tensor:
    """What `sum_gap` finds of all tokens of a batch, [2]; a ConvNet may rectify its sum."""
    found = []
    for skip, branch, output in zip(*(parts_of(taps[tap]) for tap in one), strict=True):
        summed = skip + branch
        gap = sum_gap(summed, output)
        if layer.tap == "branch":
            gap = torch.minimum(gap, sum_gap(summed.relu(), output))
        found.append(gap)
    return torch.stack(found).amax(dim=0)


def rounding(taps: Taps) -> Tensor:
    """Precision of the features, [1]."""
    return torch.tensor([torch.finfo(next(iter(taps.values())).grid.dtype).eps])


def unsound(gaps: Sequence[NDArray[np.generic]], precision: float) -> str:
    """Why a block has no values; "" where each of its sums holds.

    Args:
        gaps: [sums 2] of each group, as `gap_of` gives them.
        precision: As `rounding` gives it.
    """
    found = np.max(np.asarray(gaps, np.float64), axis=0)
    if not np.isfinite(found).all():
        return "features are not finite"
    allowed = max(TOLERANCE, ROUNDINGS * precision)
    for gap, size in found:
        if gap > allowed * size:
            return (
                "its output is not the sum of what skips and what is added: entries of up to "
                f"{size:.4g} differ by up to {gap:.4g}"
            )
    return ""
