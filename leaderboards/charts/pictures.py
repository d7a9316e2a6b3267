"""The figures of pages as Vega-Lite specifications."""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import TextWrapper

import numpy as np
import pandas as pd

from layerboard.leaderboards.blocks.blocks import HeatMap, Maps, Matrix, Picture, Plot, SmallMap, Span
from layerboard.leaderboards.charts.raster import Sheet, Spot, cells_to_merge, map_png, own_span
from layerboard.leaderboards.charts.style import FONT, SCHEMA, Spec, config, kind_colours, looks

WIDTH = 720  # approximate width of a figure in pixels at full size
LETTER = 6.6  # approximate width of a letter
MARGIN = 20  # least width in pixels of the labels beside a panel, above which its title begins
# heights of a single plot and of one among several, and the maximum number of plots per line
PLOT_HEIGHT, PANEL_HEIGHT, MOST_PLOTS = 250, 120, 3
HEIGHTS = ("y", "low", "high")  # columns of a plot's frame along the vertical axis
MOST_BLOCKS = 26  # up to so many whole numbers, an axis extends half a step beyond them
SHORTEST, TALLEST, MOST_HEATS = 110.0, 200.0, 4  # heights of a matrix, and the maximum number per line
MOST_CELLS = 256  # maximum rows and columns of a matrix that are drawn individually
# matrices with names: pixels beside one, least height of a name, of one among blocks, largest cell; number up
# to which each has a line of its own
NAMES, SMALLEST_NAME, LABEL_ROOM, LARGEST_CELL, MOST_LARGE = 95.0, 8.0, 13.0, 24.0, 2
SMALLEST, LARGEST, MOST_GROUPS = 52.0, 96.0, 4  # sides of a small map; maximum groups of maps per line
# smallest side of a map among many, in panels of many rows and of at most so few
DENSE, DENSE_FEW, FEW_ROWS = 18.0, 32.0, 4
CELL, IMAGE = 32, 96  # minimum width of a small map on its sheet, and maximum width of an image, in pixels
DENSE_CELL = 16  # minimum width of a map among many on its sheet
LABELS = 170.0  # maximum width of the names of rows
NO_MARK: Spec = {"data": {"values": []}, "mark": "point"}  # of axes and a colour bar


def picture_spec(picture: Picture, backbones: Sequence[str]) -> Spec:
    """A figure as a whole specification; backbones have their colours by their order."""
    if isinstance(picture, Plot):
        spec = _plot(picture, backbones)
    elif isinstance(picture, HeatMap):
        spec = _heat_map(picture)
    else:
        spec = _over_images(picture) if picture.images else _maps(picture)
    style = config("currentColor", FONT)
    style["axis"] |= {"labelFontSize": 11, "titleFontSize": 11, "labelPadding": 4, "titlePadding": 9}
    style["legend"] |= {"orient": "bottom", "symbolOpacity": 1, "symbolSize": 55, "columnPadding": 16}
    style["legend"]["symbolStrokeWidth"] = 0  # dashes would cut the outline of a symbol into pieces
    style["legend"] |= {"labelLimit": WIDTH - 30, "layout": {"bottom": {"margin": 30}}}
    style["title"] |= {"fontSize": 12, "offset": 6}
    padding = {"left": 10, "right": 16, "top": 4, "bottom": 4}
    return {"$schema": SCHEMA, "padding": padding, "config": style} | spec


def _beside(panels: Sequence[Spec], columns: int) -> Spec:
    shared = {"scale": dict.fromkeys(("color", "shape", "strokeDash", "stroke"), "shared")}
    nothing = NO_MARK | {"width": WIDTH, "height": 1}
    return {"concat": [*panels] or [nothing], "columns": columns, "spacing": 12, "resolve": shared}


def _panel(name: str, width: float, height: float, layers: Sequence[Spec]) -> Spec:
    title = {"title": {"text": _broken(name, width + MARGIN)}} if name else {}
    return title | {"width": round(width, 1), "height": round(height, 1), "layer": [*layers]}


def _broken(text: str, width: float) -> list[str]:
    """A text in lines of about so many pixels; a name is broken, after a sign, only where it is longer."""
    most = max(5, int(width / LETTER))
    wrapper = TextWrapper(most, break_on_hyphens=max(map(len, text.split()), default=0) > most)
    wrapper.wordsep_re = re.compile(r"(\s+|[^\W_]+[^\s\w]*_*)")
    return [part for line in text.split("\n") for part in wrapper.wrap(line)]


# ---- lines and points ---------------------------------------------------------------------------


def _plot(plot: Plot, backbones: Sequence[str]) -> Spec:
    frame, there = plot.frame, plot.frame.dropna(subset=["x", "y"])
    series = _series(plot, [str(name) for name in dict.fromkeys(there["series"])], backbones)
    if "panel" not in frame:
        places = {"x": _across(there["x"], plot, MOST_BLOCKS), "y": _up(there, plot.y, 6)}
        return _panel("", WIDTH - 80, PLOT_HEIGHT, _lines(frame, plot.kind, places, series))
    names = [str(name) for name in dict.fromkeys(frame["panel"])]
    unit = "scale" if "scale" in frame else "panel"
    columns = min(MOST_PLOTS, max(1, len(names)))
    panels = []
    for position, name in enumerate(names):
        rows = frame[frame["panel"].astype(str) == name]
        drawn = there if plot.shared else there[there[unit].isin(rows[unit])]
        places = {"x": _across(there["x"], plot, 8)}
        places["y"] = _up(drawn, plot.y if position % columns == 0 else "", 4)
        lines = _lines(rows, plot.kind, places, series)
        panels.append(_panel(name, (WIDTH - 30) / columns - 44, PANEL_HEIGHT, lines))
    return _beside(panels, columns)


def _lines(frame: pd.DataFrame, kind: str, places: Spec, series: Spec) -> list[Spec]:
    """Each series of a panel: a line, broken at missing numbers, and a marker for each number."""
    heights = [name for name in HEIGHTS if name in frame]
    rows = [
        {"series": str(name), "x": float(x)}
        | {key: float(y) if math.isfinite(y) else None for key, y in zip(heights, ys, strict=True)}
        for name, x, *ys in frame[["series", "x", *heights]].itertuples(index=False, name=None)
        if math.isfinite(x)
    ]
    marks = [("strokeDash", {"type": "line", "strokeWidth": 1.8})] if kind == "lines" else []
    marks += [("shape", {"type": "point", "filled": True, "opacity": 1, "size": 34})]
    drawn: list[Spec] = [
        {"mark": mark, "encoding": places | {name: series[name] for name in ("color", channel)}}
        for channel, mark in marks
    ]
    if "low" in frame:
        ends = {"y": places["y"] | {"field": "low"}, "y2": {"field": "high"}, "color": series["color"]}
        interval = {"mark": {"type": "rule", "strokeWidth": 1.2, "opacity": 0.55}, "encoding": places | ends}
        drawn.insert(0, interval | {"transform": [{"filter": "isValid(datum.low) && isValid(datum.high)"}]})
    return [{"data": {"values": rows}, "layer": drawn}]


def _series(plot: Plot, drawn: Sequence[str], backbones: Sequence[str]) -> Spec:
    """Colour, shape and dash of the drawn series, with one legend."""
    every = looks([*plot.order, *plot.frame["series"].astype(str)], backbones)
    names = [name for name in every if name in drawn]
    columns = max(1, int(WIDTH // (30 + LETTER * max(map(len, names), default=1))))
    shared = {"field": "series", "type": "nominal", "title": None, "legend": {"columns": columns}}
    return {
        channel: shared | {"scale": {"domain": names, "range": [every[name][channel] for name in names]}}
        for channel in ("color", "shape", "strokeDash")
    }


def _across(values: "pd.Series[float]", plot: Plot, most: int) -> Spec:
    """The horizontal axis: whole numbers if there are few, such as blocks, else round ones."""
    low, high = (values.min(), values.max()) if len(values) else (0, 1)
    more = {"grid": False, "ticks": True, "domain": True}
    if plot.log:
        scale = {"type": "log", "domain": [float(low) / 1.2, float(high) * 1.2]}
        return _axis("x", plot.x, scale, more | {"values": [4**power for power in range(16)]})
    if (values == values.round()).all() and high - low <= MOST_BLOCKS:
        scale = {"domain": [float(low) - 0.5, float(high) + 0.5]}
        return _axis("x", plot.x, scale, more | {"values": whole_ticks(int(low), int(high), most)})
    ticks = min(most, 6)
    return _axis("x", plot.x, {"domain": [*_ends(values)], "nice": ticks}, more | {"tickCount": ticks})


def _up(rows: pd.DataFrame, title: str, ticks: int) -> Spec:
    """The vertical axis of all numbers of rows, with the ends of intervals."""
    heights = [rows[name].astype(float) for name in HEIGHTS if name in rows]
    values = pd.concat(heights, ignore_index=True).dropna()
    low, high = _ends(values)
    axis: Spec = {"tickCount": ticks}
    if high - low <= ticks and values.any() and (values % 1 == 0).all():  # there is no block 1.5
        axis = {"values": whole_ticks(math.ceil(low), math.floor(high), ticks + 1), "format": ",d"}
    return _axis("y", title, {"domain": [low, high], "nice": ticks if "tickCount" in axis else False}, axis)


def _axis(field: str, title: str, scale: Spec, axis: Spec) -> Spec:
    shown = {"field": field, "type": "quantitative", "title": title or None}
    return shown | {"scale": scale | {"zero": False}, "axis": axis}


def whole_ticks(low: int, high: int, most: int) -> list[int]:
    """At most ``most`` evenly spaced whole numbers between two ends: all, or multiples of a round step."""
    step = next(
        factor * 10**power
        for power in range(10)
        for factor in (1, 2, 5)
        if high // (factor * 10**power) - (low - 1) // (factor * 10**power) <= most
    )
    return list(range(-(-low // step) * step, high + 1, step))


def _ends(values: "pd.Series[float]") -> Span:
    """The lowest and the highest number, rounded, so that a CKA of 1.0000001 ends at 1; 0 and 1 if none."""
    low, high = (float(f"{end:.5g}") for end in (values.min(), values.max())) if len(values) else (0.0, 1.0)
    if low < high:
        return low, high
    return (low - abs(low) / 2, high + abs(high) / 2) if low else (0.0, 1.0)


# ---- matrices and maps --------------------------------------------------------------------------


def _image(address: str, width: float, height: float) -> Spec:
    """An embedded image that fills its panel, with square pixels."""
    mark = {"type": "image", "width": width, "height": height, "aspect": False, "smooth": False}
    middle = {"x": {"value": width / 2}, "y": {"value": height / 2}}
    encoding = middle | {"url": {"field": "address", "type": "nominal"}}
    return {"data": {"values": [{"address": address}]}, "mark": mark, "encoding": encoding}


def _bar(ends: tuple[str, str], unit: str) -> Spec:
    low, high = map(json.dumps, ends)
    length = max(150.0, 1.2 * LETTER * len(unit))  # as long as its title in any font: a legend may follow
    legend = {"direction": "horizontal", "gradientLength": length, "gradientThickness": 10}
    legend |= {"gradientOpacity": 1, "labelOverlap": False, "titleLimit": WIDTH}
    legend |= {"values": [0, 1], "labelExpr": f"datum.value < 0.5 ? {low} : {high}"}
    field = {"field": "colour", "type": "quantitative", "title": unit or None}
    return field | {"scale": {"domain": [0, 1]}, "legend": legend}


def _heat_map(heat: HeatMap) -> Spec:
    """Matrices in lines of up to four, each with its axes, and one colour bar."""
    span = heat.span or own_span([matrix.values for matrix in heat.panels])
    named = any(matrix.names[0] for matrix in heat.panels)
    columns = min(3 if named else MOST_HEATS, max(1, len(heat.panels)))
    most = max((max(matrix.values.shape) for matrix in heat.panels), default=0)
    if named and len(heat.panels) <= MOST_LARGE and most > MOST_BLOCKS:  # their names can be read only so
        columns = 1
    width = min(WIDTH / columns - 60, 2 * TALLEST)
    shapes = [matrix.values.shape for matrix in heat.panels if matrix.values.size]
    ratio = max((rows / columns for rows, columns in shapes), default=1.0)
    height = min(max(ratio * width, SHORTEST), TALLEST)
    ends = ("", "")
    if span:  # the colour bar tells whether cells exceed its ends
        low, high = own_span([matrix.values for matrix in heat.panels]) or span
        least = 1e-5 * (span[1] - span[0])  # what is rounded in float32 exceeds no end
        beyond = "≤ " * (low < span[0] - least), "≥ " * (high > span[1] + least)
        ends = (f"{beyond[0]}{span[0]:.3g}", f"{beyond[1]}{span[1]:.3g}")
    panels = []
    for position, matrix in enumerate(heat.panels):
        if named:
            panels.append(_named_panel(matrix, WIDTH / columns - NAMES, span, _bar(ends, heat.unit)))
            continue
        axes = {"x": _numbered("x", heat.x, matrix, 1), "color": _bar(ends, heat.unit)}
        axes["y"] = _numbered("y", heat.y if position % columns == 0 else "", matrix, 0)
        drawn = _matrix_image(matrix, span, width, height)
        panels.append(_panel(matrix.title, width, height, [drawn, NO_MARK | {"encoding": axes}]))
    return _beside(panels, columns)


def _matrix_image(matrix: Matrix, span: Span | None, width: float, height: float) -> Spec:
    values = matrix.values[::-1] if matrix.upward else matrix.values
    return _image(map_png(values, span, MOST_CELLS), width, height)


def _named_panel(matrix: Matrix, width: float, span: Span | None, bar: Spec) -> Spec:
    """A matrix of square cells whose rows and columns have names, with a line through some of its cells."""
    rows, columns = matrix.values.shape
    side = min(LARGEST_CELL, width / max(rows, columns))
    wide, high = side * columns, side * rows
    axes: Spec = {"color": bar}
    for field, names, title, length in zip("yx", matrix.names, matrix.titles, (high, wide), strict=True):
        scale = {"domain": [0.5, len(names) + 0.5], "nice": False}
        scale |= {"reverse": field == "y" and not matrix.upward}
        # each name if there is room; else the first of each block has a name, and the others a tick
        shown = [*names] if side >= SMALLEST_NAME else _blocks_of(names, side)
        axis: Spec = {"values": [*range(1, len(names) + 1)]}
        axis |= {"labelExpr": f"{json.dumps(shown)}[datum.value - 1]"}
        axis |= {"labelFontSize": min(11, max(8, side - 1)), "labelOverlap": False, "grid": False}
        axis |= {"ticks": True, "tickSize": 3, "tickOpacity": 0.5, "labelPadding": 2}
        axis |= {"labelAngle": -90, "labelBaseline": "middle"} if field == "x" and side < LARGEST_CELL else {}
        axes[field] = _axis(field, "", scale, axis) | {"title": _broken(title, max(length, SHORTEST))}
    drawn = [_matrix_image(matrix, span, wide, high), NO_MARK | {"encoding": axes}]
    places = [{"x": at + 1, "y": row} for row, at in enumerate(matrix.line, start=1) if math.isfinite(at)]
    thin = min(1.5, max(0.7, side / 5))
    for colour, stroke in (("#000000", 2 * thin + 0.6), ("#ffffff", thin)) if places else ():
        mark = {"type": "line", "color": colour, "strokeWidth": stroke}
        line = {"x": axes["x"], "y": axes["y"], "order": {"field": "y"}}
        drawn.append({"data": {"values": places}, "mark": mark, "encoding": line})
    return _panel(matrix.title, wide, high, drawn)


def _blocks_of(names: Sequence[str], side: float) -> list[str]:
    """For each layer in forward order its block, ``3`` of ``3.norm1``, if it is the first of that block.

    Blocks are round numbers if there is no room for all; of other names only a star at their end is left.
    """
    blocks = [name.partition(".")[0].rstrip("*") for name in names]
    numbers = [int(block) for block in blocks if block.isdecimal()]
    room = max(1, int(len(names) * side / LABEL_ROOM))
    shown = {str(tick) for tick in whole_ticks(min(numbers), max(numbers), room)} if numbers else set()
    firsts = {block: at for at, block in reversed([*enumerate(blocks)])}
    stars = ("*" * name.endswith("*") for name in names)
    pairs = enumerate(zip(blocks, stars, strict=True))
    return [f"{block if block in shown and firsts[block] == at else ''}{star}" for at, (block, star) in pairs]


def _numbered(field: str, title: str, matrix: Matrix, side: int) -> Spec:
    """The axis of the columns (side 1) or rows of a matrix."""
    first, count = matrix.first[side], matrix.values.shape[side]
    scale = {"domain": [first - 0.5, first + count - 0.5], "nice": False}
    scale |= {"reverse": side == 0 and not matrix.upward}
    return _axis(field, title, scale, {"values": whole_ticks(first, first + count - 1, 7), "grid": False})


@dataclass(frozen=True, slots=True)
class _Layout:
    """Positions of small maps; ``side`` is a map's width in pixels, ``sheet`` holds the maps of a group."""

    groups: tuple[str, ...]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    sheet: Sheet
    label: float  # width of the names of rows
    side: float
    in_line: int

    def spot(self, small: SmallMap) -> Spot:
        return self.rows.index(small.row), self.columns.index(small.column)

    def panel(self, group: str, addresses: Sequence[str], legends: Sequence[Spec]) -> Spec:
        """Layered sheets with the names of their rows and columns, and legends."""
        height, width = (side * (self.side / self.sheet.cell[1]) for side in self.sheet.shape)
        gap = self.sheet.gap
        label = {"labelFontSize": 10, "labelAngle": 0, "labelLimit": 1.2 * (self.side + gap)}
        down, across = (gap / (gap + side) for side in self.sheet.cell)
        axes = {"x": _names("column", self.columns, across, label | {"orient": "top"})}
        lines = {name: _broken(name, LABELS) for name in self.rows}
        room: Spec = {"labelExpr": f"{json.dumps(lines)}[datum.value]"}
        room |= {"minExtent": 1.15 * self.label}  # in any font
        axes["y"] = _names("row", self.rows, down, room)
        drawn = [_image(address, width, height) for address in addresses]
        # one layer each: a mark has one colour
        drawn += [NO_MARK | {"encoding": axes | each} for each in legends or [{}]]
        return _panel(group, width, height, drawn)


def _names(field: str, names: Sequence[str], gap: float, axis: Spec) -> Spec:
    scale = {"domain": [*names], "paddingInner": round(gap, 4), "paddingOuter": 0}
    return {"field": field, "type": "nominal", "title": None, "scale": scale, "axis": axis | {"grid": False}}


def _layout(
    maps: Sequence[SmallMap], least: int = CELL, *, framed: bool = False, dense: bool = False
) -> _Layout:
    """Ordered names, and the largest maps, with cells of equal width, with which groups share a line."""
    groups, rows, columns = (
        tuple(dict.fromkeys(getattr(small, name) for small in maps)) for name in ("panel", "row", "column")
    )
    shapes = [small.values.shape for small in maps]
    tall = max((shape[0] / max(shape[1], 1) for shape in shapes), default=1.0)
    cells = max((-(-shape[1] // cells_to_merge(max(shape[:2]))) for shape in shapes), default=1)
    width = cells * -(-least // cells)
    sheet = Sheet(len(rows), len(columns), (max(1, round(width * tall)), width), framed)
    label = min(max((LETTER * len(row) for row in rows), default=0.0) + 8, LABELS)
    least_dense = DENSE if len(rows) > FEW_ROWS else DENSE_FEW
    smallest, largest = (least_dense, LARGEST / 2) if dense else (SMALLEST, LARGEST)
    for in_line in range(min(MOST_GROUPS, max(1, len(groups))), 0, -1):
        room = (WIDTH - in_line * 18) / in_line - label
        side = min(room / max(1, len(columns)) / (1 + sheet.gap / width), largest)
        if side >= smallest:
            break
    return _Layout(groups, rows, columns, sheet, label, side, in_line)


def _maps(maps: Maps) -> Spec:
    """Maps as colours, framed by their kinds; images as they are."""
    colours = kind_colours(maps.kinds)
    layout = _layout(maps.maps, DENSE_CELL if maps.dense else CELL, framed=bool(colours), dense=maps.dense)
    ends = ("lowest", "highest") if maps.span is None else (f"{maps.span[0]:.3g}", f"{maps.span[1]:.3g}")
    unit = f"{maps.unit}, each map by itself" if maps.span is None else maps.unit
    legends = [{"color": _bar(ends, unit)}] if any(small.values.ndim == 2 for small in maps.maps) else []
    if colours:
        legend = {"symbolType": "square", "symbolStrokeWidth": 3, "symbolFillColor": "transparent"}
        scale = {"domain": [*colours], "range": [*colours.values()]}
        frame = {"field": "kind", "type": "nominal", "title": "frame", "scale": scale, "legend": legend}
        legends.append({"stroke": frame})
    panels = []
    for group in layout.groups:
        own = {layout.spot(small): small for small in maps.maps if small.panel == group}
        numbers, images = (
            {spot: small.values for spot, small in own.items() if small.values.ndim == axes}
            for axes in (2, 3)
        )
        framed = {spot: colours[each.kind] for spot, each in own.items() if each.kind in colours}
        addresses = [layout.sheet.maps(numbers, maps.span)] if numbers else []
        addresses += [layout.sheet.images(images)] if images else []
        addresses += [layout.sheet.frames(framed)] if framed else []
        panels.append(layout.panel(group, addresses, legends))
    return _beside(panels, layout.in_line)


def _over_images(maps: Maps) -> Spec:
    """Maps as veils over the images of their groups, each image also alone in a first column."""
    firsts = {small.panel: small for small in reversed(maps.maps)}
    bare = [
        SmallMap(group, firsts[group].row, "image", np.zeros(pixels.shape[:2]))
        for group, pixels in maps.images.items()
        if group in firsts
    ]
    widest = max((pixels.shape[1] for pixels in maps.images.values()), default=CELL)
    layout, panels = _layout([*bare, *maps.maps], min(max(widest, CELL), IMAGE)), []
    for group in layout.groups:
        veiled = {layout.spot(small): small.values for small in maps.maps if small.panel == group}
        spots = [*(layout.spot(small) for small in bare if small.panel == group), *veiled]
        under = layout.sheet.images(dict.fromkeys(spots, maps.images[group]))
        panels.append(layout.panel(group, [under, layout.sheet.veils(veiled)], []))
    words = f"Bright: high; dark: low; each map by itself. {maps.unit}"
    below = {"text": words, "orient": "bottom", "fontWeight": "normal", "fontSize": 11, "limit": WIDTH}
    return _beside(panels, layout.in_line) | {"title": below}
