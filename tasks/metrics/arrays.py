"""Array types of the metrics, and the constants and helpers that several metrics share."""

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Features = NDArray[np.float32] | NDArray[np.float64]  # vectors of items, one a row

Mask = NDArray[np.bool_]  # where an object is in an image: [height width]

Labels = NDArray[np.uint8]  # which object each pixel shows: [height width], 0 for background

VOID = 255  # label of pixels that belong to no object and are ignored
SHORTEST = 1e-12  # least length that a vector is divided by, so that a zero vector stays zero
ROUNDING = 16  # a spread below this many times a dtype's precision counts as none


def mean_of_any(values: Floats) -> float:
    """Mean of the values; NaN if there are none."""
    return float(values.mean()) if values.size else float("nan")
