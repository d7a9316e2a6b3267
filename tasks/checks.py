"""Features that cannot be scored, and why."""

import numpy as np
from numpy.typing import NDArray

ROUNDING = 16  # multiples of the precision below which a spread is none


def unusable(features: NDArray[np.float32], constant: bool = True) -> str:
    """Why features [items dim] cannot be scored; "" if they can.

    Args:
        features: One row an item.
        constant: Whether features that are the same for all items are refused, too.
    """
    if not len(features):
        return "no image could be read"
    if not np.isfinite(features).all():
        return "features are not finite"
    if not features.any():
        return "features are all zero"
    if constant and len(features) > 1 and _still(features):
        return "features are the same for all items"
    return ""


def _still(features: NDArray[np.float32]) -> bool:
    """Whether no column varies by more than the rounding of weighted means."""
    low, high = features.min(axis=0).astype(np.float64), features.max(axis=0).astype(np.float64)
    least = ROUNDING * np.finfo(features.dtype).eps * np.maximum(abs(low), abs(high))
    return bool((high - low <= least).all())
