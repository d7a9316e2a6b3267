"""What all pictures have in common: their frame, their words, legends and bars of colours."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from leaderboards.pages.svg.colours import LEVELS, SERIES
from leaderboards.pages.svg.raster import map_png

WIDTH = 720
"""Width of a page's pictures, in units of the drawing, which are pixels at full size."""

LETTER, LEGEND_LINE, MARGIN = 6.6, 20, 14
BAR_WIDTH, BAR_HEIGHT = 150, 10

SHAPES = (
    "M-3.2 0a3.2 3.2 0 1 0 6.4 0a3.2 3.2 0 1 0-6.4 0z",
    "M-3-3h6v6h-6z",
    "M0-4l3.8 6.6h-7.6z",
    "M0-4.2l4.2 4.2l-4.2 4.2l-4.2-4.2z",
    "M0 4l3.8-6.6h-7.6z",
)
"""Paths of the markers, around the origin: circle, square, triangle, diamond, triangle on its tip."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """The inside of a picture and how large it is."""

    parts: Sequence[str]
    height: float
    width: float = WIDTH


def words(x: float, y: float, text: str, anchor: str = "start", more: str = "") -> str:
    """A line of text, escaped, with its base line at ``y``."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(text)}</text>'


def upright(x: float, y: float, text: str) -> str:
    """A line of text that is read from below, its middle at a place."""
    place = f"translate({x:g} {y:g}) rotate(-90)"
    return f'<text transform="{place}" text-anchor="middle">{escape(text)}</text>'


def fitting(text: str, width: float) -> str:
    """Text that is cut where it is wider than there is room."""
    most = max(2, int(width / LETTER))
    return text if len(text) <= most else f"{text[: most - 1]}…"


def image(x: float, y: float, size: tuple[float, float], address: str, more: str = "") -> str:
    """An embedded picture of that width and height whose pixels stay squares."""
    return (
        f'<image{more} x="{x:.1f}" y="{y:.1f}" width="{size[0]:.1f}" height="{size[1]:.1f}" '
        f'preserveAspectRatio="none" image-rendering="pixelated" href="{address}"/>'
    )


def legend(
    names: Sequence[str], left: float, top: float, shown: Collection[str] | None = None
) -> tuple[list[str], float]:
    """The names of series with their markers, in lines as wide as the drawing, and where they end.

    Args:
        names: In the order of their colours.
        left: Where lines begin.
        top: Where the first one is.
        shown: Those that are named; None for all.
    """
    parts = []
    x, y = left, top + LEGEND_LINE / 2
    for place, name in enumerate(names):
        if shown is not None and name not in shown:
            continue
        width = 26 + LETTER * len(name)
        if x > left and x + width > WIDTH - MARGIN:
            x, y = left, y + LEGEND_LINE
        parts.append(
            f'<path d="{SHAPES[place % len(SHAPES)]}" transform="translate({x + 5:.1f} {y - 4:.1f})" '
            f'fill="{SERIES[place % len(SERIES)]}"/>'
            f'<text x="{x + 14:.1f}" y="{y:.1f}">{escape(name)}</text>'
        )
        x += width
    return parts, y + LEGEND_LINE / 2


def colour_bar(top: float, ends: tuple[str, str], unit: str) -> list[str]:
    """What colours say, below a picture: the lowest, the bar, the highest, and of what."""
    address = map_png(np.arange(float(LEVELS))[None])
    left = MARGIN + LETTER * len(ends[0]) + 6
    right = left + BAR_WIDTH
    return [
        words(left - 6, top + BAR_HEIGHT, ends[0], "end"),
        image(left, top, (BAR_WIDTH, BAR_HEIGHT), address).replace("pixelated", "auto"),
        words(right + 6, top + BAR_HEIGHT, ends[1]),
        words(right + 18 + LETTER * len(ends[1]), top + BAR_HEIGHT, unit),
    ]
