"""Series of numbers over one axis, alone or as small panels side by side.

Series differ by colour and by the shape of their markers, so that nobody needs to tell the colours apart;
lines and words take the colour of the text around the figure.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import pandas as pd

from leaderboards.pages.svg.colours import SERIES
from leaderboards.pages.svg.frame import MARGIN, SHAPES, WIDTH, Drawn, fitting, legend, upright, words
from leaderboards.pages.svg.scales import Scale, across, upward
from tasks.blocks import Kind, Plot

LEFT, TOP, PLOT_HEIGHT, BOTTOM = 62, 12, 250, 46
MOST_TIPS = 300
"""Markers of a figure that say their number to who points at them; of more, none does."""

SMALL = 0.8
"""Size of markers that do not tell their numbers."""

PANEL_HEIGHT, PANEL_HEAD = 120, 18
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


def figure_parts(figure: Plot, prefix: str, *, tips: bool) -> Drawn:
    """A figure with its axes and its legend; with tips, few markers tell their numbers."""
    points = figure.frame.dropna(subset=["x", "y"])
    names = [*dict.fromkeys([*figure.order, *_names(figure.frame)])]
    area = _Area(
        across(points["x"].tolist(), LEFT, WIDTH - MARGIN),
        upward(points["y"].tolist(), TOP + PLOT_HEIGHT, TOP),
    )
    told = tips and len(points) <= MOST_TIPS
    drawn = _all_series(figure.frame, figure.kind, names, area, (figure.x, figure.y) if told else prefix)
    below, height = legend(names, LEFT, area.bottom + BOTTOM, set(_names(points)))
    middle = (area.left + area.right) / 2
    parts = [
        *([] if told else [_shapes(names, prefix)]),
        *_grid(area),
        words(middle, area.bottom + 36, figure.x, "middle"),
        upright(14, (area.top + area.bottom) / 2, figure.y),
        *drawn,
        *below,
    ]
    return Drawn(parts, height)


def facets_parts(facets: Plot, prefix: str) -> Drawn:
    """Small panels in lines of three, each with its name above and its axes, and one legend below all."""
    frame = facets.frame
    panels = [str(name) for name in dict.fromkeys(frame["panel"])]
    names = [*dict.fromkeys([*facets.order, *_names(frame)])]
    there = frame.dropna(subset=["x", "y"])
    columns = min(MOST_PANELS, max(1, len(panels)))
    width = (WIDTH - MARGIN - columns * (LEFT - 8)) / columns
    parts = [_shapes(names, prefix)]
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
            *_all_series(own, facets.kind, names, area, prefix),
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
    frame: pd.DataFrame, kind: Kind, names: Sequence[str], area: _Area, markers: str | tuple[str, str]
) -> list[str]:
    """Every series.

    Args:
        frame: Columns series, x and y.
        kind: Lines with markers, or markers alone.
        names: Series in the order of their colours.
        area: Where they are drawn.
        markers: What the shapes are called that stand for all numbers (`_shapes`), or the names of both axes,
            with which each number has a shape that tells it.
    """
    drawn = []
    for place, name in enumerate(names):
        own = frame[frame["series"].astype(str) == name]
        points = [(float(x), float(y)) for x, y in own[["x", "y"]].itertuples(index=False, name=None)]
        path = _path(points, area)
        if not path:
            continue
        colour = SERIES[place % len(SERIES)]
        dash = ' stroke-dasharray="5 3"' if place >= len(SERIES) else ""
        stroke = f'stroke="{colour}" stroke-width="1.8"{dash}' if kind == "lines" else 'stroke="none"'
        if isinstance(markers, str):
            at = "".join(f' marker-{end}="url(#{markers}{place})"' for end in ("start", "mid", "end"))
            drawn.append(f'<path d="{path}" fill="none" {stroke}{at}/>')
        else:
            line = f'<path d="{path}" fill="none" {stroke}/>' if kind == "lines" else ""
            told = _told(points, SHAPES[place % len(SHAPES)], area, name, markers)
            drawn.append(f'<g fill="{colour}">{line}{told}</g>')
    return drawn


def _shapes(names: Sequence[str], prefix: str) -> str:
    """The shape of each series, to be called by a name that begins with a prefix."""
    shapes = "".join(
        f'<marker id="{prefix}{place}" overflow="visible" markerUnits="userSpaceOnUse">'
        f'<path d="{SHAPES[place % len(SHAPES)]}" fill="{SERIES[place % len(SERIES)]}" '
        f'transform="scale({SMALL})"/></marker>'
        for place in range(len(names))
    )
    return f"<defs>{shapes}</defs>"


def _path(points: Sequence[tuple[float, float]], area: _Area) -> str:
    """A path through points, broken where a number is missing."""
    path, pen = "", "M"
    for x, y in points:
        if math.isnan(x) or math.isnan(y):
            pen = "M"
            continue
        path += f"{pen}{area.across(x):.1f} {area.up(y):.1f}"
        pen = "L"
    return path


def _told(
    points: Sequence[tuple[float, float]], shape: str, area: _Area, name: str, axes: tuple[str, str]
) -> str:
    """A shape a point that tells its numbers to who points at it."""
    told = ""
    for x, y in points:
        if not (math.isnan(x) or math.isnan(y)):
            spot = f"{area.across(x):.1f} {area.up(y):.1f}"
            tip = escape(f"{name}: {axes[0]} {x:g}, {axes[1]} {y:.4g}")
            told += f'<path d="{shape}" transform="translate({spot})"><title>{tip}</title></path>'
    return told
