"""Features that cannot be scored, and why."""

import numpy as np
from numpy.typing import NDArray


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
    if constant and len(features) > 1 and (features == features[0]).all():
        return "features are the same for all items"
    return ""
