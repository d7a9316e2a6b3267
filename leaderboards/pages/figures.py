"""A figure as SVG text that needs no script, no font file and no style sheet.

Series differ by colour and by the shape of their markers, so that nobody needs to tell the colours apart;
lines and words take the colour of the text around the figure.
"""

import math
from dataclasses import dataclass
from html import escape

from leaderboards.pages.blocks import Figure

PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#888888")
"""Colours that people with any colour vision can tell apart (Okabe and Ito), the last one grey."""

SHAPES = (
    "M-3.2 0a3.2 3.2 0 1 0 6.4 0a3.2 3.2 0 1 0-6.4 0z",
    "M-3-3h6v6h-6z",
    "M0-4l3.8 6.6h-7.6z",
    "M0-4.2l4.2 4.2l-4.2 4.2l-4.2-4.2z",
    "M0 4l3.8-6.6h-7.6z",
)
"""Paths of the markers, around the origin: circle, square, triangle, diamond, triangle on its tip."""

WIDTH, PLOT_HEIGHT = 720, 250
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 12, 46
LEGEND_LINE, LETTER = 20, 6.6
MOST_BLOCKS = 26


@dataclass(frozen=True, slots=True)
class Scale:
    """How numbers of one axis become places on the drawing, with round numbers to write beside it."""

    ticks: tuple[float, ...]
    low: float
    high: float
    start: float
    stop: float

    def __call__(self, value: float) -> float:
        """The place of a number, in units of the drawing."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.stop - self.start)


def draw(figure: Figure) -> str:
    """The figure as an ``<svg>`` element; its text is escaped, and its title names it for screen readers."""
    points = figure.frame.dropna(subset=["x", "y"])
    names = [str(name) for name in dict.fromkeys(figure.frame["series"])]
    across = _across(points["x"].tolist())
    ticks = _ticks([*points["y"].tolist(), *figure.span])
    up = Scale(ticks, ticks[0], ticks[-1], TOP + PLOT_HEIGHT, TOP)
    legend, height = _legend(names)
    drawn = [_series(figure, name, place, across, up) for place, name in enumerate(names)]
    title = escape(figure.title)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
            f'aria-label="{title}" font-family="sans-serif" font-size="12" fill="currentColor">',
            f"<title>{title}</title>",
            *_axes(figure, across, up),
            *drawn,
            *legend,
            "</svg>",
        ]
    )


def round_ticks(low: float, high: float, count: int = 6) -> tuple[float, ...]:
    """About so many round numbers, from at most ``low`` to at least ``high``.

    Steps are 1, 2 or 5 times a power of ten; equal ends are moved apart.
    """
    if high <= low:
        low, high = low - (abs(low) or 1.0) / 2, high + (abs(high) or 1.0) / 2
    raw = (high - low) / (count - 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return tuple(round(number * step, 12) for number in range(first, last + 1))


def _ticks(values: list[float]) -> tuple[float, ...]:
    """Round numbers around all values; 0 to 1 where there are none."""
    return round_ticks(min(values, default=0.0), max(values, default=1.0))


def _across(values: list[float]) -> Scale:
    """The horizontal scale: each whole number where there are only few, as of blocks, else round numbers."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    if all(value == int(value) for value in values) and high - low <= MOST_BLOCKS:
        ticks, low, high = tuple(map(float, range(int(low), int(high) + 1))), low - 0.5, high + 0.5
    else:
        ticks = _ticks(values)
        low, high = ticks[0], ticks[-1]
    return Scale(ticks, low, high, LEFT, WIDTH - RIGHT)


def _axes(figure: Figure, across: Scale, up: Scale) -> list[str]:
    """Grid lines, their numbers and the names of both axes."""
    bottom, middle = TOP + PLOT_HEIGHT, TOP + PLOT_HEIGHT / 2
    parts = []
    for tick in up.ticks:
        place = f"{up(tick):.1f}"
        parts.append(
            f'<path d="M{LEFT} {place}H{WIDTH - RIGHT}" stroke="currentColor" stroke-opacity="0.15"/>'
            f'<text x="{LEFT - 8}" y="{place}" dy="4" text-anchor="end">{tick:g}</text>'
        )
    for tick in across.ticks:
        place = f"{across(tick):.1f}"
        parts.append(
            f'<path d="M{place} {bottom}v5" stroke="currentColor"/>'
            f'<text x="{place}" y="{bottom + 18}" text-anchor="middle">{tick:g}</text>'
        )
    return [
        *parts,
        f'<path d="M{LEFT} {TOP}V{bottom}H{WIDTH - RIGHT}" fill="none" stroke="currentColor"/>',
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{bottom + 36}" text-anchor="middle">'
        f"{escape(figure.x)}</text>",
        f'<text transform="translate(14 {middle}) rotate(-90)" text-anchor="middle">'
        f"{escape(figure.y)}</text>",
    ]


def _series(figure: Figure, name: str, place: int, across: Scale, up: Scale) -> str:
    """One series: its lines, broken where a number is missing, and its markers with their numbers."""
    own = figure.frame[figure.frame["series"].astype(str) == name]
    color, shape = PALETTE[place % len(PALETTE)], SHAPES[place % len(SHAPES)]
    path, pen, markers = "", "M", ""
    for x, y in own[["x", "y"]].itertuples(index=False, name=None):
        if math.isnan(x) or math.isnan(y):
            pen = "M"
            continue
        spot = f"{across(x):.1f} {up(y):.1f}"
        path += f"{pen}{spot}"
        pen = "L"
        words = escape(f"{name}: {figure.x} {x:g}, {figure.y} {y:.4g}")
        markers += f'<path d="{shape}" transform="translate({spot})"><title>{words}</title></path>'
    dash = ' stroke-dasharray="5 3"' if place >= len(PALETTE) else ""
    line = f'<path d="{path}" fill="none" stroke="{color}" stroke-width="1.8"{dash}/>'
    return f'<g fill="{color}">{line if path and figure.kind == "lines" else ""}{markers}</g>'


def _legend(names: list[str]) -> tuple[list[str], int]:
    """The names of the series below the axes, in lines as wide as the drawing, and the drawing's height."""
    parts = []
    x, y = float(LEFT), float(TOP + PLOT_HEIGHT + BOTTOM + LEGEND_LINE / 2)
    for place, name in enumerate(names):
        width = 26 + LETTER * len(name)
        if x > LEFT and x + width > WIDTH - RIGHT:
            x, y = float(LEFT), y + LEGEND_LINE
        color, shape = PALETTE[place % len(PALETTE)], SHAPES[place % len(SHAPES)]
        parts.append(
            f'<path d="{shape}" transform="translate({x + 5:.1f} {y - 4:.1f})" fill="{color}"/>'
            f'<text x="{x + 14:.1f}" y="{y:.1f}">{escape(name)}</text>'
        )
        x += width
    return parts, int(y + LEGEND_LINE / 2)
