"""Boxes, and the map of pixel coordinates that a view implies. Imports no torch.

Coordinates are (x, y) in pixel edges: an image spans [0, width] x [0, height], and the centre of its first
pixel is (0.5, 0.5).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Box = tuple[float, float, float, float]
"""(left, top, right, bottom) in pixel edges."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """Affine map from image coordinates to view coordinates: view = image * scale + offset, per axis.

    Attributes:
        scale: View pixels per image pixel, (x, y).
        offset: View coordinates of the image's upper left corner, (x, y).
        size: Width and height of the view in pixels.
        content: Part of the view that shows the image; the rest is padding.
    """

    scale: tuple[float, float]
    offset: tuple[float, float]
    size: tuple[int, int]
    content: Box

    def to_view(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Image coordinates [..., 2] as view coordinates."""
        return np.asarray(points * np.asarray(self.scale) + np.asarray(self.offset))

    def to_image(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """View coordinates [..., 2] as image coordinates."""
        return np.asarray((points - np.asarray(self.offset)) / np.asarray(self.scale))
