"""Boxes, and the map of pixel coordinates that a view implies. Imports no torch.

Coordinates are (x, y) in pixel edges: an image spans [0, width] x [0, height], and the centre of its first
pixel is (0.5, 0.5).
"""

import re
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

Box = tuple[float, float, float, float]  # (left, top, right, bottom) in pixel edges


@dataclass(frozen=True, slots=True)
class Geometry:
    """Affine map from image coordinates to view coordinates: view = image * scale + offset, per axis."""

    scale: tuple[float, float]  # view pixels per image pixel, (x, y)
    offset: tuple[float, float]  # view coordinates of the image's upper left corner
    size: tuple[int, int]  # width and height of the view in pixels
    content: Box  # the part of the view that shows the image; the rest is padding

    def to_view(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Image coordinates [..., 2] as view coordinates."""
        return np.asarray(points * np.asarray(self.scale) + np.asarray(self.offset))

    def to_image(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """View coordinates [..., 2] as image coordinates."""
        return np.asarray((points - np.asarray(self.offset)) / np.asarray(self.scale))


class ViewSize(NamedTuple):
    """How large an image is shown: width and height in pixels, and the side of the tiles that cut it."""

    width: int
    height: int
    tile: int = 0  # 0 for an image that is shown whole

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """The size that a text says, as `str` writes it; None if it says none."""
        match = re.fullmatch(r"(\d{1,4}) x (\d{1,4})(?: in tiles of (\d{1,4}))?", text)
        return cls(*(int(number or 0) for number in match.groups())) if match else None

    @property
    def tiles(self) -> int:
        """Number of squares that a backbone is shown of the image; 1 for a whole one."""
        return -(-self.width // self.tile) * -(-self.height // self.tile) if self.tile else 1

    @property
    def shown(self) -> tuple[int, int]:
        """Width and height in pixels of what a backbone is shown at once: of the image, or of a tile."""
        return (self.tile, self.tile) if self.tile else (self.width, self.height)

    def cells(self, stride: int) -> int:
        """Number of cells of that many pixels' side in the grid of the whole image."""
        return (self.width // stride) * (self.height // stride)

    def __str__(self) -> str:
        return f"{self.width} x {self.height}" + f" in tiles of {self.tile}" * bool(self.tile)


def nearest_multiple(length: float, multiple: int) -> int:
    """The positive multiple nearest to a length; halves go up."""
    return max(multiple, multiple * int(length / multiple + 0.5))


def cropped_size(size: tuple[int, int], box: Box | None) -> tuple[tuple[int, int], tuple[int, int]]:
    """Size of the cropped image and its upper left corner, rounded as in `zoo.view.views.crop_to_box`."""
    if box is None:
        return size, (0, 0)
    left, top = max(0, round(box[0])), max(0, round(box[1]))
    right, bottom = min(size[0], round(box[2])), min(size[1], round(box[3]))
    return (max(right, left + 1) - left, max(bottom, top + 1) - top), (left, top)


def resize_geometry(
    size: tuple[int, int], box: Box | None, resized: tuple[int, int], shift: tuple[int, int] = (0, 0)
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Scale and offset of a crop, then a resize, then a shift by whole pixels."""
    (width, height), (left, top) = cropped_size(size, box)
    scale = resized[0] / width, resized[1] / height
    return scale, (shift[0] - left * scale[0], shift[1] - top * scale[1])
