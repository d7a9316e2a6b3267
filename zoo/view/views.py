"""How an image is shown to a backbone, and the map of pixel coordinates that this implies.

A view turns a decoded image into uint8 pixels; normalisation happens on the device with the entry's mean and
standard deviation. Coordinates are (x, y) in pixel edges: the image spans [0, width] x [0, height], the
centre of the first pixel is (0.5, 0.5). Sizes in a view are those of a 224 px backbone until ``scaled``.
Resizing is Pillow's bicubic, antialiased when it shrinks, unless a view says otherwise.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import ceil, floor, gcd
from typing import Protocol, Self

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.nn import functional

from layerboard.zoo.view.geometry import (
    Box,
    Geometry,
    ViewSize,
    cropped_size,
    nearest_multiple,
    resize_geometry,
)

REFERENCE_SIZE = 224  # input size in pixels for which the protocols state sizes

Part = tuple[int, int, int, int]  # left, top, right and bottom in pixels
# returns the part of an image that was resized to (width, height), uint8 [3 height width]
Resize = Callable[[Image.Image, tuple[int, int], Part], Tensor]


def to_tensor(image: Image.Image) -> Tensor:
    """uint8 [3 height width] of an RGB image, a copy."""
    return torch.from_numpy(np.array(image, dtype=np.uint8)).permute(2, 0, 1)


def crop_to_box(image: Image.Image, box: Box | None) -> Image.Image:
    """The part of an image inside a box, whose edges are rounded to pixels and clipped to the image."""
    if box is None:
        return image
    (width, height), (left, top) = cropped_size(image.size, box)
    return image.crop((left, top, left + width, top + height))


def resized_part(
    image: Image.Image, size: tuple[int, int], part: Part, resampling: Image.Resampling
) -> Tensor:
    """A part of a resized image: ``image.resize(size, resampling).crop(part)``, bit for bit, with less work.

    Columns are resized only for the rows that matter, and rows only for the columns of the part. Pillow takes
    the box of a part in float32, whose rounding would change the weights, and a grey level here and there; so
    the part is widened until the box is exact, at worst to the whole image.
    """
    rows_first = image.height - size[1] > 2 * max(0, image.width - size[0])  # of Pillow 13, for tall images
    if part == (0, 0, *size) or rows_first:
        return to_tensor(image.resize(size, resampling).crop(part))
    (left, first), (right, last) = part[:2], part[2:]
    x, x_end, start, end = _exact_edges(image.width, size[0], left, right)
    y, y_end, top, bottom = _exact_edges(image.height, size[1], first, last)
    reach = 3 * max(1, image.height / size[1]) + 1  # rows, of the widest filter, Lanczos
    row, row_end = max(0, floor(top - reach)), min(image.height, ceil(bottom + reach))
    height = row_end - row
    if height < image.height:  # a crop copies
        image = image.crop((0, row, image.width, row_end))
    image = image.resize((x_end - x, height), resampling, (start, 0, end, height))
    image = image.crop((left - x, 0, right - x, height))
    box = (0, top - row, right - left, bottom - row)
    image = image.resize((right - left, y_end - y), resampling, box)
    return to_tensor(image.crop((0, first - y, right - left, last - y)))


def _exact_edges(length: int, resized: int, start: int, stop: int) -> tuple[int, int, float, float]:
    """Pixels around start to stop whose edges, which follow in the image, are sums of few powers of two."""
    step = resized // gcd(length, resized)
    step //= step & -step  # its odd part
    start, stop = start - start % step, min(resized, step * ceil(stop / step))
    return start, stop, start * length / resized, stop * length / resized


def torch_part(image: Image.Image, size: tuple[int, int], part: Part, mode: str) -> Tensor:
    """The part of an image resized by torch with the filter of that name, antialiased when it shrinks.

    The filters are Pillow's, but their weights are rounded differently.
    """
    left, top, right, bottom = part
    pixels = to_tensor(image)[None]
    resized = functional.interpolate(pixels, size=size[::-1], mode=mode, antialias=True)
    return resized[0, :, top:bottom, left:right]


BICUBIC: Resize = partial(resized_part, resampling=Image.Resampling.BICUBIC)
BILINEAR: Resize = partial(resized_part, resampling=Image.Resampling.BILINEAR)
LANCZOS: Resize = partial(resized_part, resampling=Image.Resampling.LANCZOS)
BY_TORCH: Mapping[Resize, Resize] = {  # torch has no Lanczos
    BICUBIC: partial(torch_part, mode="bicubic"),
    BILINEAR: partial(torch_part, mode="bilinear"),
}


class View(Protocol):
    """A way to show an image; a frozen dataclass, so that its repr identifies it."""

    def scaled(self, input_size: int, multiple: int) -> Self:
        """The view for a backbone of that input size whose sides must be multiples of ``multiple``."""

    def geometry(self, size: tuple[int, int], box: Box | None = None) -> Geometry:
        """Coordinate map for an image of that (width, height), cropped to ``box`` before anything else."""

    def render(self, image: Image.Image, box: Box | None = None) -> Tensor:
        """Pixels of an RGB image, uint8 [tiles 3 height width]; one tile except for ``Tiles``."""


class Resized(ABC):
    """The image at another size, possibly cropped, or padded with black, which is not content."""

    __slots__ = ()

    @abstractmethod
    def scaled(self, input_size: int, multiple: int) -> Self:
        """See `View`."""

    @abstractmethod
    def _resized(self, size: tuple[int, int]) -> tuple[int, int]:
        """Width and height at which an image of that width and height is shown."""

    def _frame(self, resized: tuple[int, int]) -> tuple[tuple[int, int], tuple[int, int]]:
        """Size of the view, and position of the image's upper left corner: negative if that is cut off."""
        return resized, (0, 0)

    @property
    def resize(self) -> Resize:
        """How images are resized."""
        return BICUBIC

    def geometry(self, size: tuple[int, int], box: Box | None = None) -> Geometry:
        width, height = resized = self._resized(cropped_size(size, box)[0])
        view, (left, top) = self._frame(resized)
        scale, offset = resize_geometry(size, box, resized, (left, top))
        content = (max(0, left), max(0, top), min(view[0], left + width), min(view[1], top + height))
        return Geometry(scale, offset, view, content)

    def render(self, image: Image.Image, box: Box | None = None, resize: Resize | None = None) -> Tensor:
        image = crop_to_box(image, box)
        size = self._resized(image.size)
        (width, height), (left, top) = self._frame(size)
        part = (max(0, -left), max(0, -top), min(size[0], width - left), min(size[1], height - top))
        pixels = (resize or self.resize)(image, size, part)
        left, top = max(0, left), max(0, top)
        around = (left, width - left - pixels.shape[2], top, height - top - pixels.shape[1])
        return (functional.pad(pixels, around) if any(around) else pixels)[None]  # black


@dataclass(frozen=True, slots=True)
class ResizeCrop(Resized):
    """Shorter side to ``short``, then the centre ``crop`` x ``crop``; the rule of torchvision."""

    short: int
    crop: int

    def scaled(self, input_size: int, multiple: int) -> "ResizeCrop":
        crop = nearest_multiple(self.crop * input_size / REFERENCE_SIZE, multiple)
        return ResizeCrop(max(crop, round(self.short * input_size / REFERENCE_SIZE)), crop)

    def _resized(self, size: tuple[int, int]) -> tuple[int, int]:
        long = int(self.short * max(size) / min(size))
        return (self.short, long) if size[0] <= size[1] else (long, self.short)

    def _frame(self, resized: tuple[int, int]) -> tuple[tuple[int, int], tuple[int, int]]:
        left, top = (-round((side - self.crop) / 2) for side in resized)
        return (self.crop, self.crop), (left, top)


@dataclass(frozen=True, slots=True)
class Mirrored:
    """Another view, mirrored left to right, pixel by pixel: its horizontal scale is negative."""

    view: View

    def scaled(self, input_size: int, multiple: int) -> "Mirrored":
        return Mirrored(self.view.scaled(input_size, multiple))

    def geometry(self, size: tuple[int, int], box: Box | None = None) -> Geometry:
        seen = self.view.geometry(size, box)
        width, (left, top, right, bottom) = seen.size[0], seen.content
        scale, offset = (-seen.scale[0], seen.scale[1]), (width - seen.offset[0], seen.offset[1])
        return Geometry(scale, offset, seen.size, (width - right, top, width - left, bottom))

    def render(self, image: Image.Image, box: Box | None = None) -> Tensor:
        return self.view.render(image, box).flip(-1)


@dataclass(frozen=True, slots=True)
class FastResized:
    """Another view, resized by torch: faster, but some pixels differ by one or two grey levels."""

    view: Resized

    def scaled(self, input_size: int, multiple: int) -> "FastResized":
        return FastResized(self.view.scaled(input_size, multiple))

    def geometry(self, size: tuple[int, int], box: Box | None = None) -> Geometry:
        return self.view.geometry(size, box)

    def render(self, image: Image.Image, box: Box | None = None) -> Tensor:
        return self.view.render(image, box, BY_TORCH[self.view.resize])


def fast_resized(view: View) -> View:
    """The view resized by torch; the view itself if torch has no such filter."""
    if isinstance(view, Mirrored):
        return Mirrored(fast_resized(view.view))
    return FastResized(view) if isinstance(view, Resized) and view.resize in BY_TORCH else view


@dataclass(frozen=True, slots=True)
class ThumbnailCrop:
    """Longer side shrunk to ``long``, then shorter side enlarged to ``crop``, then the centre square.

    The shrinking is Pillow's ``thumbnail``: Lanczos, after averaging whole blocks of pixels; an image that is
    small enough is unchanged. Source: the retrieval code of Walmer et al., CVPR 2023.
    """

    long: int
    crop: int

    def scaled(self, input_size: int, multiple: int) -> "ThumbnailCrop":
        crop = nearest_multiple(self.crop * input_size / REFERENCE_SIZE, multiple)
        return ThumbnailCrop(max(1, round(self.long * crop / self.crop)), crop)

    def geometry(self, size: tuple[int, int], box: Box | None = None) -> Geometry:
        cropped, _ = cropped_size(size, box)
        small = Image.new("1", cropped)
        small.thumbnail((self.long, self.long))
        first, offset = resize_geometry(size, box, small.size)
        second = ResizeCrop(self.crop, self.crop).geometry(small.size)
        (scale_x, scale_y), (x, y) = second.scale, second.offset
        offset = (offset[0] * scale_x + x, offset[1] * scale_y + y)
        return replace(second, scale=(first[0] * scale_x, first[1] * scale_y), offset=offset)

    def render(self, image: Image.Image, box: Box | None = None) -> Tensor:
        small = crop_to_box(image, box).copy()
        small.thumbnail((self.long, self.long), Image.Resampling.LANCZOS, reducing_gap=2.0)
        return ResizeCrop(self.crop, self.crop).render(small)


@dataclass(frozen=True, slots=True)
class FitLongSide(Resized):
    """Longer side to ``long``, the other to the nearest multiple; nothing is cropped or padded."""

    long: int
    multiple: int = 1

    def scaled(self, input_size: int, multiple: int) -> "FitLongSide":
        return FitLongSide(nearest_multiple(self.long * input_size / REFERENCE_SIZE, multiple), multiple)

    def _resized(self, size: tuple[int, int]) -> tuple[int, int]:
        short = min(self.long, nearest_multiple(self.long * min(size) / max(size), self.multiple))
        return (self.long, short) if size[0] >= size[1] else (short, self.long)


@dataclass(frozen=True, slots=True)
class Stretch(Resized):
    """The whole image as a square, whatever its proportions."""

    side: int
    bilinear: bool = False  # triangle filter, antialiased when it shrinks, instead of bicubic

    def scaled(self, input_size: int, multiple: int) -> "Stretch":
        return replace(self, side=nearest_multiple(self.side * input_size / REFERENCE_SIZE, multiple))

    @property
    def resize(self) -> Resize:
        return BILINEAR if self.bilinear else BICUBIC

    def _resized(self, size: tuple[int, int]) -> tuple[int, int]:
        return self.side, self.side


@dataclass(frozen=True, slots=True)
class LoweredSquare(Stretch):
    """The whole image as a square whose side is lowered to a multiple: 504 of 512 for patches of 14 pixels.

    Source: the public evaluation of Balazevic et al., Towards In-Context Scene Understanding, NeurIPS 2023
    (open-hummingbird-eval, commit 5e79da2).
    """

    def scaled(self, input_size: int, multiple: int) -> "LoweredSquare":
        side = self.side * input_size // REFERENCE_SIZE
        return replace(self, side=max(multiple, side - side % multiple))


@dataclass(frozen=True, slots=True)
class Letterbox(Resized):
    """Longer side to ``side``, centred on a black square; scale is the same on both axes.

    The shorter side is rounded to whole pixels, half to even, while coordinates use the exact scale, as
    SPair-71k's public evaluations do; the two differ by at most half a pixel.
    """

    side: int
    lanczos: bool = False  # instead of bicubic

    def scaled(self, input_size: int, multiple: int) -> "Letterbox":
        return replace(self, side=nearest_multiple(self.side * input_size / REFERENCE_SIZE, multiple))

    @property
    def resize(self) -> Resize:
        return LANCZOS if self.lanczos else BICUBIC

    def _resized(self, size: tuple[int, int]) -> tuple[int, int]:
        long = max(size)
        # one division, as in the published code: with a rounded scale, halves such as 115.5 may go either way
        return max(1, round(self.side * size[0] / long)), max(1, round(self.side * size[1] / long))

    def _frame(self, resized: tuple[int, int]) -> tuple[tuple[int, int], tuple[int, int]]:
        left, top = ((self.side - side) // 2 for side in resized)
        return (self.side, self.side), (left, top)

    def geometry(self, size: tuple[int, int], box: Box | None = None) -> Geometry:
        cropped, (left, top) = cropped_size(size, box)
        rounded, scale = Resized.geometry(self, size, box), self.side / max(cropped)
        x, y, *_ = rounded.content
        return replace(rounded, scale=(scale, scale), offset=(x - left * scale, y - top * scale))


@dataclass(frozen=True, slots=True)
class WholeFrame(Resized):
    """Shorter side near ``short``, both sides rounded to the nearest multiple; nothing is cropped."""

    short: int
    multiple: int = 1

    def scaled(self, input_size: int, multiple: int) -> "WholeFrame":
        return WholeFrame(nearest_multiple(self.short * input_size / REFERENCE_SIZE, multiple), multiple)

    def _resized(self, size: tuple[int, int]) -> tuple[int, int]:
        scale = self.short / min(size)
        width, height = (nearest_multiple(side * scale, self.multiple) for side in size)
        return width, height


@dataclass(frozen=True, slots=True)
class RaisedFrame(Resized):
    """Shorter side to ``short``, both sides raised to the next multiple, the longer one in proportion.

    Source: the tracking notebook of DINOv3 (facebookresearch/dinov3, commit 6876159).
    """

    short: int
    multiple: int = 1

    def scaled(self, input_size: int, multiple: int) -> "RaisedFrame":
        return RaisedFrame(self.short, multiple)

    def _resized(self, size: tuple[int, int]) -> tuple[int, int]:
        short = self.multiple * ceil(self.short / self.multiple)
        # a product of whole numbers may be off by rounding
        long = self.multiple * ceil(round(max(size) * short / min(size) / self.multiple, 9))
        return (long, short) if size[0] >= size[1] else (short, long)


@dataclass(frozen=True, slots=True)
class Tiles(Resized):
    """Shorter side to ``short``, the other floored to the multiple, cut into ``tile`` x ``tile`` squares.

    The last tile of a row or column starts earlier instead of being padded; where tiles overlap, the first
    one (in row-major order) counts. Source: the code of Walmer et al., CVPR 2023.
    """

    short: int
    tile: int
    multiple: int = 1

    def scaled(self, input_size: int, multiple: int) -> "Tiles":
        tile = nearest_multiple(self.tile * input_size / REFERENCE_SIZE, multiple)
        return replace(self, short=tile * self.short // self.tile, tile=tile, multiple=multiple)

    def _resized(self, size: tuple[int, int]) -> tuple[int, int]:
        long = self.multiple * int(self.short * max(size) / min(size) / self.multiple)
        return (self.short, long) if size[0] < size[1] else (long, self.short)

    def corners(self, resized: tuple[int, int]) -> tuple[tuple[int, int], ...]:
        """(left, top) of every tile in row-major order, for a resized image of (width, height)."""
        lefts, tops = (
            [min(index * self.tile, side - self.tile) for index in range(ceil(side / self.tile))]
            for side in resized
        )
        return tuple((left, top) for top in tops for left in lefts)

    def render(self, image: Image.Image, box: Box | None = None, resize: Resize | None = None) -> Tensor:
        (pixels,) = Resized.render(self, image, box, resize)
        corners, tile = self.corners((pixels.shape[2], pixels.shape[1])), self.tile
        return torch.stack([pixels[:, top : top + tile, left : left + tile] for left, top in corners])

    def assemble(self, grids: Tensor, resized: tuple[int, int]) -> Tensor:
        """One grid [height width dim] of the resized image from its tiles' grids [tiles height width dim]."""
        cells = grids.shape[1]
        stride = self.tile // cells
        out = grids.new_empty(resized[1] // stride, resized[0] // stride, grids.shape[-1])
        for grid, (left, top) in reversed(list(zip(grids, self.corners(resized), strict=True))):
            row, column = top // stride, left // stride
            out[row : row + cells, column : column + cells] = grid
        return out


def tiles_of(view: View) -> Tiles | None:
    """The tiles of a view, if it cuts images into tiles, however it resizes them."""
    view = view.view if isinstance(view, FastResized) else view
    return view if isinstance(view, Tiles) else None


def view_size(view: View, size: tuple[int, int], box: Box | None = None) -> ViewSize:
    """How large a view shows an image of that width and height, cropped to ``box`` before anything else."""
    tiles = tiles_of(view)
    return ViewSize(*view.geometry(size, box).size, tiles.tile if tiles else 0)
