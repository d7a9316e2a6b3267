"""Features that cannot be scored, and why."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from layerboard.tasks.framework.base import FINITE, Source
from layerboard.tasks.metrics.arrays import ROUNDING
from layerboard.zoo.errors import UnreadableImageError
from layerboard.zoo.spec import Layer

# reasons why a layer has no scores: NaN or infinite values, or grids whose tokens are all equal
NOT_FINITE = "features are not finite"
ALIKE = "tokens are the same everywhere"


def unusable(features: NDArray[np.float32], constant: bool = True) -> str:
    """Reason why features [items dim] cannot be scored; "" if they can.

    With ``constant``, features that are the same for all items are refused, too.
    """
    if reason := unlearnable(features):
        return reason
    if not features.any():
        return "features are all zero"
    if constant and len(features) > 1:
        # no column varies by more than the rounding error of weighted means
        low, high = features.min(axis=0).astype(np.float64), features.max(axis=0).astype(np.float64)
        least = ROUNDING * np.finfo(features.dtype).eps * np.maximum(abs(low), abs(high))
        if (high - low <= least).all():
            return "features are the same for all items"
    return ""


def unlearnable(features: NDArray[np.floating[Any]], labels: NDArray[np.int64] | None = None) -> str:
    """Reason why a probe cannot be tested on features [items dim], or trained with labels; "" if it can.

    Features that are the same for all items are allowed: their probe has chance accuracy.
    """
    if not len(features):
        return "no image could be read"
    if not np.isfinite(features).all():
        return NOT_FINITE
    if labels is not None and len(np.unique(labels)) < 2:
        return "a probe needs training images of two classes; all that could be read are of one"
    return ""


def nothing_read(source: Source) -> UnreadableImageError:
    """The error for a source without any readable image."""
    return UnreadableImageError(
        f"expected images that can be decoded in {source.name}, such as {source.samples[0].key}, found none "
        f"among {len(source.samples):,}; fetch them again"
    )


def varies(grids: Tensor) -> Tensor:
    """Whether the tokens of any grid [images height width dim] differ by more than rounding: [] bool."""
    flat = grids.flatten(1, 2)
    low, high = flat.amin(1), flat.amax(1)
    least = ROUNDING * torch.finfo(grids.dtype).eps * torch.maximum(low.abs(), high.abs())
    return (high - low > least).any()


class LayerFlags:
    """Flags whether each layer's features of a group vary and are finite, without waiting for the device."""

    def __init__(self) -> None:
        self._flags: dict[Layer, list[tuple[Tensor, Tensor]]] = {}

    def see(self, layer: Layer, grids: Tensor, compared: Tensor | None = None) -> None:
        """Update the flags from grids [images height width dim] and the ``compared`` part; None for all."""
        changing = varies(grids if compared is None else compared)
        self._flags.setdefault(layer, []).append((changing, grids.isfinite().all()))

    def arrays(self, layer: Layer) -> dict[str, Tensor]:
        """The arrays ``varies`` and `FINITE` of a layer or a set of layers."""
        flags = (flag for member in layer.members for flag in self._flags[member])
        changing, finite = zip(*flags, strict=True)
        return {"varies": torch.stack(changing).any()[None], FINITE: torch.stack(finite)}
