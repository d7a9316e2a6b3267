"""Series of numbers over one axis, alone or as small panels side by side.

Series differ by colour and by the shape of their markers, so that nobody needs to tell the colours apart;
lines and words take the colour of the text around the figure.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import pandas as pd

from leaderboards.pages.pictures import Facets, Figure, Kind
from leaderboards.pages.svg.colours import SERIES
from leaderboards.pages.svg.frame import MARGIN, SHAPES, WIDTH, Drawn, fitting, legend, upright, words
from leaderboards.pages.svg.scales import Scale, across, upward

LEFT, TOP, PLOT_HEIGHT, BOTTOM = 62, 12, 250, 46
MOST_TIPS = 300
"""Markers of a figure that say their number to who points at them; of more, none does."""

PANEL_HEIGHT, PANEL_GAP, PANEL_HEAD = 120, 16, 18
MOST_PANELS = 3
"""Panels in a line."""


@dataclass(frozen=True, slots=True)
class _Area:
    """Where numbers are drawn, and their scales."""

    across: Scale
    up: Scale

    @property
    def left(self) -> float:
        return self.across.start

    @property
    def right(self) -> float:
        return self.across.stop

    @property
    def bottom(self) -> float:
        return self.up.start

    @property
    def top(self) -> float:
        return self.up.stop


def figure_parts(figure: Figure, *, tips: bool = True) -> Drawn:
    """A figure with its axes and its legend; tips name each marker's numbers."""
    points = figure.frame.dropna(subset=["x", "y"])
    names = _names(figure.frame)
    area = _Area(
        across(points["x"].tolist(), LEFT, WIDTH - MARGIN),
        upward([*points["y"].tolist(), *figure.span], TOP + PLOT_HEIGHT, TOP),
    )
    axes = (figure.x, figure.y) if tips and len(points) <= MOST_TIPS else None
    drawn = _all_series(figure.frame, figure.kind, names, area, axes)
    below, height = legend(names, LEFT, area.bottom + BOTTOM)
    middle = (area.left + area.right) / 2
    parts = [
        *_grid(area),
        words(middle, area.bottom + 36, figure.x, "middle"),
        upright(14, (area.top + area.bottom) / 2, figure.y),
        *drawn,
        *below,
    ]
    return Drawn(parts, height)


def facets_parts(facets: Facets) -> Drawn:
    """Small panels in lines of three, each with its name above and its axes, and one legend below all."""
    frame = facets.frame
    panels = [str(name) for name in dict.fromkeys(frame["panel"])]
    names = [*dict.fromkeys([*facets.order, *_names(frame)])]
    there = frame.dropna(subset=["x", "y"])
    columns = min(MOST_PANELS, max(1, len(panels)))
    width = (WIDTH - MARGIN - columns * (LEFT - 8)) / columns
    parts = []
    for place, panel in enumerate(panels):
        own = frame[frame["panel"].astype(str) == panel]
        left = (place % columns) * (width + LEFT - 8) + LEFT - 8
        top = (place // columns) * (PANEL_HEIGHT + BOTTOM + PANEL_HEAD) + PANEL_HEAD + 4
        shown = there if facets.shared else own.dropna(subset=["x", "y"])
        area = _Area(
            across(there["x"].tolist(), left, left + width - 8, most=8),
            upward(shown["y"].tolist(), top + PANEL_HEIGHT, top, count=4),
        )
        parts += [
            words(left, top - 7, fitting(panel, width), more=' font-weight="600"'),
            *_grid(area),
            *_all_series(own, facets.kind, names, area, None),
            words(left + width / 2, area.bottom + 33, facets.x, "middle", ' font-size="11"'),
        ]
    bottom = -(-len(panels) // columns) * (PANEL_HEIGHT + BOTTOM + PANEL_HEAD)
    below, height = legend(names, LEFT - 8, bottom + 12, set(_names(there)))
    parts.append(upright(11, bottom / 2, facets.y))
    return Drawn([*parts, *below], height)


def _names(frame: pd.DataFrame) -> list[str]:
    """The series in order."""
    return [str(name) for name in dict.fromkeys(frame["series"])]


def _grid(area: _Area) -> list[str]:
    """Grid lines, their numbers, and both axes."""
    parts = []
    for tick in area.up.ticks:
        place = f"{area.up(tick):.1f}"
        parts.append(
            f'<path d="M{area.left:g} {place}H{area.right:g}" stroke="currentColor" stroke-opacity="0.15"/>'
            f'<text x="{area.left - 8:g}" y="{place}" dy="4" text-anchor="end">{tick:g}</text>'
        )
    for tick in area.across.ticks:
        place = f"{area.across(tick):.1f}"
        parts.append(
            f'<path d="M{place} {area.bottom:g}v5" stroke="currentColor"/>'
            f'<text x="{place}" y="{area.bottom + 18:g}" text-anchor="middle">{tick:g}</text>'
        )
    axes = f"M{area.left:g} {area.top:g}V{area.bottom:g}H{area.right:g}"
    return [*parts, f'<path d="{axes}" fill="none" stroke="currentColor"/>']


def _all_series(
    frame: pd.DataFrame, kind: Kind, names: Sequence[str], area: _Area, axes: tuple[str, str] | None
) -> list[str]:
    """Every series; its markers say their numbers where the axes' names are given."""
    drawn = []
    for place, name in enumerate(names):
        own = frame[frame["series"].astype(str) == name]
        points = [(float(x), float(y)) for x, y in own[["x", "y"]].itertuples(index=False, name=None)]
        colour = SERIES[place % len(SERIES)]
        dash = ' stroke-dasharray="5 3"' if place >= len(SERIES) else ""
        path = _line(points, area) if kind == "lines" else ""
        line = f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.8"{dash}/>' if path else ""
        seen = [(x, y) for x, y in points if not (math.isnan(x) or math.isnan(y))]
        markers = _markers(seen, SHAPES[place % len(SHAPES)], area, name, axes)
        drawn.append(f'<g fill="{colour}">{line}{markers}</g>')
    return drawn


def _line(points: Sequence[tuple[float, float]], area: _Area) -> str:
    """A path through points, broken where a number is missing."""
    path, pen = "", "M"
    for x, y in points:
        if math.isnan(x) or math.isnan(y):
            pen = "M"
            continue
        path += f"{pen}{area.across(x):.1f} {area.up(y):.1f}"
        pen = "L"
    return path


def _markers(
    points: Sequence[tuple[float, float]], shape: str, area: _Area, name: str, axes: tuple[str, str] | None
) -> str:
    """A marker a point: with its numbers where axes have names, else all as one path."""
    if axes is None:
        start, rest = _start(shape)
        path = "".join(
            f"M{area.across(x) + start[0]:.1f} {area.up(y) + start[1]:.1f}{rest}" for x, y in points
        )
        return f'<path d="{path}"/>' if path else ""
    markers = ""
    for x, y in points:
        spot = f"{area.across(x):.1f} {area.up(y):.1f}"
        tip = escape(f"{name}: {axes[0]} {x:g}, {axes[1]} {y:.4g}")
        markers += f'<path d="{shape}" transform="translate({spot})"><title>{tip}</title></path>'
    return markers


def _start(shape: str) -> tuple[tuple[float, float], str]:
    """Where a marker's path begins, and the rest of it, which goes on from there."""
    end = min(shape.index(letter) for letter in "ahl" if letter in shape)
    x, y = shape[1:end].replace("-", " -").split()
    return (float(x), float(y)), shape[end:]
