"""Maps and images as embedded PNG data, small and deterministic."""

import base64
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from layerboard.leaderboards.blocks.blocks import Numbers2D, Rgb, Span
from layerboard.leaderboards.charts.style import RAMP

LEVELS = 64  # levels of a map; more cannot be distinguished
FEW_LEVELS = 32  # of these, levels of the small maps of a sheet, whose pictures are a quarter smaller so
MOST_CELLS = 32  # maximum cells along a side of a drawn map; larger maps are averaged
GAP = 4  # pixels between the cells of a sheet
_DARKEST = 205  # opacity, out of 255, of the veil at the lowest number of a map
_STEP = (LEVELS - 1) / (FEW_LEVELS - 1)
# for each level, 0 and up, the nearest of `FEW_LEVELS`, among which are the lowest and the highest
_FEWER = np.append(0, 1 + np.rint(_STEP * np.rint(np.arange(LEVELS) / _STEP))).astype(np.uint8)
Spot = tuple[int, int]  # row and column of a cell


@dataclass(frozen=True, slots=True)
class Sheet:
    """One picture of cells in rows and columns, separated by gaps, all resized to the same size."""

    rows: int
    columns: int
    cell: tuple[int, int]  # height and width of a cell in pixels of the picture
    framed: bool = False  # whether there is room for frames

    @property
    def gap(self) -> int:
        """Pixels between cells."""
        return 3 * self._frame if self.framed else GAP

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width of the picture."""
        (height, width), more = self.cell, 2 * self._frame - self.gap
        return self.rows * (height + self.gap) + more, self.columns * (width + self.gap) + more

    @property
    def _frame(self) -> int:
        """Width of frames in pixels."""
        return max(2, self.cell[1] // 8) if self.framed else 0

    def maps(self, maps: Mapping[Spot, Numbers2D], span: Span | None) -> str:
        """Maps [height width] in colours as a data URL; for a span of None, each map has its own."""
        return indexed_png(self._levels(maps, span), colour_steps(), [255] * LEVELS)

    def frames(self, colours: Mapping[Spot, str]) -> str:
        """Frames around cells of a framed sheet, of colours such as ``#0072b2``."""
        indexes, every = np.zeros(self.shape, np.uint8), [*dict.fromkeys(colours.values())]
        wide = self._frame
        for spot, colour in colours.items():
            rows, columns = self._cell(spot)
            around = (slice(side.start - wide, side.stop + wide) for side in (rows, columns))
            indexes[tuple(around)] = every.index(colour) + 1
            indexes[rows, columns] = 0
        steps = [[int(colour[at : at + 2], 16) for at in (1, 3, 5)] for colour in every]
        return indexed_png(indexes, np.array(steps, np.uint8), [255] * len(steps))

    def veils(self, maps: Mapping[Spot, Numbers2D]) -> str:
        """Maps as black veils, denser where a map is low (by the root of its numbers); none over holes."""
        opacity = np.rint(_DARKEST * (1 - np.sqrt(np.linspace(0, 1, LEVELS)))).astype(int).tolist()
        return indexed_png(self._levels(maps, None), np.zeros((LEVELS, 3), np.uint8), opacity)

    def images(self, images: Mapping[Spot, Rgb]) -> str:
        """Images [height width 3] from 0 to 255 in few colours."""
        pixels, seen = np.zeros((*self.shape, 3), np.uint8), np.zeros(self.shape, bool)
        for spot, values in images.items():
            pixels[self._cell(spot)], seen[self._cell(spot)] = _stretched(values, self.cell), True
        few = Image.fromarray(pixels).quantize(LEVELS, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
        colours = np.array(few.getpalette(), np.uint8).reshape(-1, 3)
        return indexed_png(np.where(seen, np.asarray(few) + 1, 0), colours, [255] * len(colours))

    def _levels(self, maps: Mapping[Spot, Numbers2D], span: Span | None) -> NDArray[np.uint8]:
        indexes = np.zeros(self.shape, np.uint8)
        for spot, values in maps.items():
            indexes[self._cell(spot)] = _stretched(colour_levels(smaller(values), span), self.cell)
        return _FEWER[indexes]

    def _cell(self, spot: Spot) -> tuple[slice, slice]:
        (height, width), (row, column) = self.cell, spot
        top, left = self._frame + row * (height + self.gap), self._frame + column * (width + self.gap)
        return slice(top, top + height), slice(left, left + width)


def own_span(maps: Iterable[Numbers2D]) -> Span | None:
    """Minimum and maximum of the numbers of some maps; None if there are none."""
    finite = [values[np.isfinite(values)] for values in maps]
    ends = [(float(values.min()), float(values.max())) for values in finite if values.size]
    return (min(low for low, _ in ends), max(high for _, high in ends)) if ends else None


def map_png(values: Numbers2D, span: Span | None, most: int) -> str:
    """One map [height width] in colours as a data URL, with holes where it is not finite.

    ``span`` are the numbers of the first and the last colour, None for the minimum and maximum; if all
    numbers are equal, they get the middle. A map with more than ``most`` cells along a side is averaged.
    """
    return indexed_png(colour_levels(smaller(values, most), span), colour_steps(), [255] * LEVELS)


@cache
def colour_steps() -> NDArray[np.uint8]:
    """The colours of a map, [LEVELS 3], from low to high."""
    stops = np.array([[int(colour[at : at + 2], 16) for at in (1, 3, 5)] for colour in RAMP])
    places = np.linspace(0, len(RAMP) - 1, LEVELS)
    sides = [np.interp(places, np.arange(len(RAMP)), stops[:, side]) for side in range(3)]
    colours: NDArray[np.uint8] = np.rint(np.stack(sides, axis=1)).astype(np.uint8)
    return colours


def colour_levels(values: Numbers2D, span: Span | None) -> NDArray[np.uint8]:
    """Numbers as levels from 1 to `LEVELS`; 0 is a hole."""
    there = np.isfinite(values)
    low, high = span or own_span([values]) or (0.0, 0.0)
    share = np.full(values.shape, 0.5)
    if high > low:
        share[there] = np.clip((values[there] - low) / (high - low), 0, 1)
    return np.where(there, np.minimum(share * LEVELS, LEVELS - 1).astype(np.uint8) + 1, 0).astype(np.uint8)


def cells_to_merge(side: int, most: int = MOST_CELLS) -> int:
    """Number of cells along a side to merge into one, so that at most ``most`` are drawn."""
    return max(1, -(-side // most))


def smaller(values: Numbers2D, most: int = MOST_CELLS) -> Numbers2D:
    """A map of at most ``most`` cells per side, each the mean of whole cells; the last may have fewer."""
    factors = [cells_to_merge(side, most) for side in values.shape]
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
    """A map of levels or an image at another size: nearest pixels, or means if an image shrinks."""
    if values.ndim == 3 and values.shape[0] > size[0]:
        image = Image.fromarray(np.ascontiguousarray(values))
        return np.asarray(image.resize((size[1], size[0]), Image.Resampling.BOX))
    rows, columns = (np.arange(new) * old // new for new, old in zip(size, values.shape, strict=False))
    stretched: NDArray[np.uint8] = values[rows[:, None], columns]
    return stretched


def indexed_png(indexes: NDArray[Any], colours: NDArray[np.uint8], opacity: Sequence[int]) -> str:
    """A picture of levels as a data URL; level 0 is transparent, the others have colours [levels 3]."""
    image = Image.fromarray(indexes.astype(np.uint8))
    image.putpalette([0, 0, 0, *colours.flatten().tolist()])
    file = io.BytesIO()
    clear: bytes | int = bytes([0, *opacity]) if min(opacity) < 255 else 0
    image.save(file, "PNG", optimize=True, transparency=clear)
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
