"""Array types of the metrics, and the constants and helpers that several metrics share."""

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Features = NDArray[np.float32] | NDArray[np.float64]  # vectors of items, one a row
AnyFloats = TypeVar("AnyFloats", NDArray[np.float32], NDArray[np.float64], Features)

Mask = NDArray[np.bool_]  # where an object is in an image: [height width]

Labels = NDArray[np.uint8]  # which object each pixel shows: [height width], 0 for background

VOID = 255  # label of pixels that belong to no object and are ignored
SHORTEST = 1e-12  # least length that a vector is divided by, so that a zero vector stays zero
NEAR = 20  # values within 2^-20 of the first one, relative to it, are counted from it
ORDINARY = 40  # numbers are rescaled before they are squared if the largest is beyond 2^40 or below 2^-40
ROUNDING = 16  # a spread below this many times a dtype's precision counts as none


def mean_of_any(values: Floats) -> float:
    """Mean of the values; NaN if there are none."""
    return float(values.mean()) if values.size else float("nan")


def lengths(vectors: Floats) -> Floats:
    """Euclidean length of each vector [n dim]: [n 1]; 1 for a zero vector, which may be divided by it."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.where(length > 0, length, 1.0)


def origins(values: Floats) -> Floats:
    """For each column of values [n columns] the number that they are counted from: [columns].

    It is 0, or the first value if all are so near to it, relative to their size, that sums of the values
    would lose digits that tell them apart. Differences from it are exact.
    """
    apart = np.abs(values - values[0]).max(axis=0)
    return np.where(apart < 2.0**-NEAR * np.abs(values[0]), values[0], 0.0)


def in_range(arrays: Sequence[AnyFloats]) -> list[AnyFloats]:
    """Arrays divided by one power of two, so that their squares neither overflow nor vanish; NaN stays NaN.

    Ordinary numbers (`ORDINARY`) are kept as they are.
    """
    ends = [end for each in arrays for end in (np.fmax.reduce(each, None), -np.fmin.reduce(each, None))]
    exponent = math.frexp(max(map(float, ends)))[1]
    return [np.ldexp(each, -exponent) for each in arrays] if abs(exponent) > ORDINARY else list(arrays)
