"""Features that cannot be scored, and why."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from layerboard.tasks.base import FINITE, Source
from layerboard.tasks.metrics.arrays import ROUNDING
from layerboard.zoo.errors import UnreadableImageError
from layerboard.zoo.spec import Layer

# why a layer has no scores: NaN or infinite values, or grids that hold one vector each
NOT_FINITE = "features are not finite"
ALIKE = "tokens are the same everywhere"


def unusable(features: NDArray[np.float32], constant: bool = True) -> str:
    """Why features [items dim] cannot be scored; "" if they can.

    With ``constant`` features that are the same for all items are refused, too.
    """
    if reason := unlearnable(features):
        return reason
    if not features.any():
        return "features are all zero"
    if constant and len(features) > 1:
        # whether no column varies by more than the rounding of weighted means
        low, high = features.min(axis=0).astype(np.float64), features.max(axis=0).astype(np.float64)
        least = ROUNDING * np.finfo(features.dtype).eps * np.maximum(abs(low), abs(high))
        if (high - low <= least).all():
            return "features are the same for all items"
    return ""


def unlearnable(features: NDArray[np.floating[Any]], labels: NDArray[np.int64] | None = None) -> str:
    """Why a probe cannot be tested on features [items dim], or trained on them with labels; "" if it can.

    Features that are the same for all items can be: their probe is right by chance.
    """
    if not len(features):
        return "no image could be read"
    if not np.isfinite(features).all():
        return NOT_FINITE
    if labels is not None and len(np.unique(labels)) < 2:
        return "a probe needs training images of two classes; all that could be read are of one"
    return ""


def nothing_read(source: Source) -> UnreadableImageError:
    """The error of a source none of whose images could be read."""
    return UnreadableImageError(
        f"expected images that can be decoded in {source.name}, such as {source.samples[0].key}, found none "
        f"among {len(source.samples):,}; fetch them again"
    )


def varies(grids: Tensor) -> Tensor:
    """Whether any grid of [images height width dim] has tokens that differ beyond rounding: [] bool."""
    flat = grids.flatten(1, 2)
    low, high = flat.amin(1), flat.amax(1)
    least = ROUNDING * torch.finfo(grids.dtype).eps * torch.maximum(low.abs(), high.abs())
    return (high - low > least).any()


class LayerFlags:
    """Whether what layers show of a group varies and is finite; values on the device are not asked for."""

    def __init__(self) -> None:
        self._flags: dict[Layer, list[tuple[Tensor, Tensor]]] = {}

    def see(self, layer: Layer, grids: Tensor, compared: Tensor | None = None) -> None:
        """Look at grids [images height width dim], of which some are ``compared``; all where it is None."""
        changing = varies(grids if compared is None else compared)
        self._flags.setdefault(layer, []).append((changing, grids.isfinite().all()))

    def arrays(self, layer: Layer) -> dict[str, Tensor]:
        """What is kept of a layer, or of layers that are taken together: ``varies`` and `FINITE`."""
        flags = (flag for member in layer.members for flag in self._flags[member])
        changing, finite = zip(*flags, strict=True)
        return {"varies": torch.stack(changing).any()[None], FINITE: torch.stack(finite)}
