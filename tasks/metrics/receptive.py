"""Measures of an effective receptive field: how far from a cell the pixels lie that move it.

Source of the field: Raghu et al., Do Vision Transformers See Like Convolutional Neural Networks?, NeurIPS
2021, section 5 and appendix C; Luo et al., Understanding the Effective Receptive Field, NeurIPS 2016.
"""

import numpy as np

from tasks.metrics.arrays import Floats

Pixel = tuple[float, float]
"""Row and column in pixel edges: the centre of the first pixel is (0.5, 0.5)."""

HALF = 0.5 * (1 - 1e-9)
"""Half the mass, less what rounding of a sum may take away."""


def half_radius(field: Floats, centre: Pixel) -> float:
    """Smallest radius of a disc that holds half the mass of a field.

    Args:
        field: How strongly each pixel counts, [height width], not negative, with a sum above 0.
        centre: Where the disc lies.

    Returns:
        The radius to the farthest pixel centre inside, over the side of the field (of a field that is no
        square, the root of its number of pixels): 0.399 where all pixels count alike and the disc fits.
    """
    rows, columns = (np.arange(count) + 0.5 for count in field.shape)
    distance = np.hypot(rows[:, None] - centre[0], columns[None] - centre[1]).ravel()
    order = np.argsort(distance, kind="stable")
    inside = np.cumsum(field.ravel()[order])
    last = order[np.searchsorted(inside, HALF * inside[-1])]
    return float(distance[last] / np.sqrt(field.size))


def half_area(field: Floats) -> float:
    """Share of the pixels, the strongest first, that hold half the mass of a field: 0.5 if all count alike.

    Args:
        field: How strongly each pixel counts, [height width], not negative, with a sum above 0.
    """
    inside = np.cumsum(np.sort(field, axis=None)[::-1])
    return float((np.searchsorted(inside, HALF * inside[-1]) + 1) / field.size)


def share_inside(field: Floats, rows: slice, columns: slice) -> float:
    """Share of the mass of a field [height width], whose sum is above 0, in a rectangle of pixels."""
    return float(field[rows, columns].sum() / field.sum())
