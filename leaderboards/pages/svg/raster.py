"""Maps and images as embedded PNG data, small and the same for the same numbers."""

import base64
import io
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from leaderboards.pages.svg.colours import LEVELS, steps
from tasks.blocks import Numbers2D, Rgb, Span, own_span

MOST_CELLS = 32
"""Cells along a side of a map that is drawn; larger ones are averaged."""

MOST_PIXELS = 96
"""Pixels along a side of an image that is drawn; larger ones are made smaller."""

GAP = 4
"""Pixels between the cells of a sheet."""

_DARKEST = 205
"""How much of an image the lowest number of a map hides, of 255."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """Cells in rows and columns that one picture holds, with holes between them.

    Attributes:
        rows: How many rows of cells.
        columns: How many columns.
        cell: Height and width of a cell in pixels of the picture.
    """

    rows: int
    columns: int
    cell: tuple[int, int]

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width of the picture."""
        height, width = self.cell
        return self.rows * (height + GAP) - GAP, self.columns * (width + GAP) - GAP

    def place(self, row: int, column: int) -> tuple[slice, slice]:
        """The pixels of a cell."""
        (height, width), step = self.cell, GAP
        top, left = row * (height + step), column * (width + step)
        return slice(top, top + height), slice(left, left + width)


def map_png(values: Numbers2D, span: Span | None = None, most: int = MOST_CELLS) -> str:
    """A map in colours as a data address; holes where a number is NaN or infinite.

    Args:
        values: Numbers [height width].
        span: Numbers of the first and the last colour; None for the map's own. Equal ones give the middle.
        most: Cells along a side; a larger map is averaged.
    """
    return _indexed(levels(smaller(values, most), span), steps(), opacity=[255] * LEVELS)


def sheet_png(
    maps: Mapping[tuple[int, int], Numbers2D], sheet: Sheet, span: Span | None, *, veil: bool = False
) -> str:
    """Maps by row and column on one sheet as a data address, in colours or as black veils.

    A veil is thick where a map is low, by the root of its numbers, and none where it has a hole. Maps of any
    shape fill their cells.
    """
    indexes = np.zeros(sheet.shape, np.uint8)
    for spot, values in maps.items():
        indexes[sheet.place(*spot)] = _stretched(levels(smaller(values), span), sheet.cell)
    if not veil:
        return _indexed(indexes, steps(), opacity=[255] * LEVELS)
    opacity = np.rint(_DARKEST * (1 - np.sqrt(np.linspace(0, 1, LEVELS)))).astype(int).tolist()
    return _indexed(indexes, np.zeros((LEVELS, 3), np.uint8), opacity)


def colours_png(images: Mapping[tuple[int, int], Rgb], sheet: Sheet) -> str:
    """Small images [height width 3] by row and column on one sheet as a data address."""
    pixels = np.zeros((*sheet.shape, 3), np.uint8)
    seen = np.zeros(sheet.shape, bool)
    for spot, values in images.items():
        pixels[sheet.place(*spot)] = _stretched(values, sheet.cell)
        seen[sheet.place(*spot)] = True
    few = Image.fromarray(pixels).quantize(LEVELS, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    colours = np.array(few.getpalette(), np.uint8).reshape(-1, 3)
    return _indexed(np.where(seen, np.asarray(few) + 1, 0).astype(np.uint8), colours, [255] * len(colours))


def image_png(pixels: Rgb) -> str:
    """An image [height width 3] as a data address, made smaller where it is large."""
    image = Image.fromarray(np.ascontiguousarray(pixels))
    image.thumbnail((MOST_PIXELS, MOST_PIXELS), Image.Resampling.BOX)
    return _address(image.quantize(LEVELS, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE))


def levels(values: Numbers2D, span: Span | None) -> NDArray[np.uint8]:
    """Numbers as steps from 1 to `LEVELS`; 0 is a hole."""
    there = np.isfinite(values)
    low, high = span or own_span([values]) or (0.0, 0.0)
    share = np.full(values.shape, 0.5)
    if high > low:
        share[there] = np.clip((values[there] - low) / (high - low), 0, 1)
    return np.where(there, np.minimum(share * LEVELS, LEVELS - 1).astype(np.uint8) + 1, 0).astype(np.uint8)


def merged(side: int, most: int = MOST_CELLS) -> int:
    """How many cells along a side become one where at most so many are drawn."""
    return max(1, -(-side // most))


def smaller(values: Numbers2D, most: int = MOST_CELLS) -> Numbers2D:
    """A map of at most so many cells a side, each the mean of whole ones; the last may be of fewer."""
    factors = [merged(side, most) for side in values.shape]
    if max(factors) == 1:
        return values
    height, width = (-(-side // factor) * factor for side, factor in zip(values.shape, factors, strict=True))
    padded = np.full((height, width), np.nan)
    padded[: values.shape[0], : values.shape[1]] = values
    blocks = padded.reshape(height // factors[0], factors[0], width // factors[1], factors[1])
    count = np.isfinite(blocks).sum(axis=(1, 3))
    total = np.where(np.isfinite(blocks), blocks, 0.0).sum(axis=(1, 3))
    return np.where(count, total / np.maximum(count, 1), np.nan)


def _stretched(values: NDArray[np.uint8], size: tuple[int, int]) -> NDArray[np.uint8]:
    """An image [height width ...] at another size, each pixel that of the nearest."""
    rows, columns = (np.arange(new) * old // new for new, old in zip(size, values.shape, strict=False))
    stretched: NDArray[np.uint8] = values[rows[:, None], columns]
    return stretched


def _indexed(indexes: NDArray[np.uint8], colours: NDArray[np.uint8], opacity: list[int]) -> str:
    """A picture of steps; step 0 cannot be seen."""
    image = Image.fromarray(indexes)
    image.putpalette([0, 0, 0, *colours.flatten().tolist()])
    return _address(image, bytes([0, *opacity]) if min(opacity) < 255 else 0)


def _address(image: Image.Image, transparency: bytes | int | None = None) -> str:
    """A picture as a data address."""
    file = io.BytesIO()
    clear = {} if transparency is None else {"transparency": transparency}
    image.save(file, "PNG", optimize=True, **clear)
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
