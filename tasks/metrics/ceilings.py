"""How well keypoints could be found by a protocol that can only say certain positions.

What can be said is a product of two axes, so that the nearest position is the nearest one of each axis.
"""

from dataclasses import dataclass
from math import acos, pi, sqrt

import numpy as np

from tasks.metrics.arrays import Floats


@dataclass(frozen=True, slots=True)
class Axis:
    """Positions along one axis of an image, in its pixels.

    Attributes:
        first: The first one.
        step: From one to the next; 0 where there is one position.
        count: How many there are.
        between: Whether all that lies between the first and the last one can be said, too.
    """

    first: float
    step: float
    count: int
    between: bool = False

    def nearest(self, values: Floats) -> Floats:
        """The position nearest to each value; of two equally near ones the lower."""
        last = self.first + self.step * (self.count - 1)
        low, high = min(self.first, last), max(self.first, last)
        if self.between or not self.step:
            return np.clip(values, low, high)
        step = np.ceil((values - self.first) / self.step - 0.5)
        return np.asarray(self.first + self.step * np.clip(step, 0, self.count - 1), np.float64)


def least_errors(truth: Floats, columns: Axis, rows: Axis) -> Floats:
    """Distance of each point to the nearest position that can be said, in pixels of the image: [points].

    Args:
        truth: [points 2] x, y.
        columns: What can be said of x.
        rows: What can be said of y.
    """
    across = columns.nearest(truth[:, 0]) - truth[:, 0]
    down = rows.nearest(truth[:, 1]) - truth[:, 1]
    return np.asarray(np.hypot(across, down), np.float64)


def share_within(cell: float, radius: float) -> float:
    """Share of a square cell that lies within a radius of its centre.

    It is the ceiling that is to be expected of points that are spread evenly.

    Args:
        cell: Side of the cell.
        radius: In the same unit.

    Raises:
        ValueError: A length is not positive.
    """
    if not (cell > 0 and radius > 0):
        raise ValueError(f"expected a side and a radius above 0, found {cell} and {radius}")
    half = cell / 2
    if radius >= half * sqrt(2):
        return 1.0
    inside = pi * radius**2
    if radius > half:
        inside -= 4 * (radius**2 * acos(half / radius) - half * sqrt(radius**2 - half**2))
    return inside / cell**2
