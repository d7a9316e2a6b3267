"""Names of the arrays that metrics take, and values in them that several metrics treat alike."""

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Features = NDArray[np.float32] | NDArray[np.float64]  # vectors of items, one a row

Mask = NDArray[np.bool_]  # where an object is in an image: [height width]

Labels = NDArray[np.uint8]  # which object each pixel shows: [height width], 0 for background

VOID = 255  # label of pixels that belong to no object and are not judged
SHORTEST = 1e-12  # length that a shorter vector is divided by, so that a vector of zeros stays one
ROUNDING = 16  # multiples of a dtype's precision below which a spread is none


def mean_of_any(values: Floats) -> float:
    """The mean of values; NaN of none."""
    return float(values.mean()) if values.size else float("nan")
