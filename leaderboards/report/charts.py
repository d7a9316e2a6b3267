"""The report's charts as data: Vega-Lite specifications with placeholders for the rows and a few words.

The page fills them in the reader's browser, `leaderboards.report.figures` does for files; the drawings are
the same. A placeholder is a string ``{name}``; one that is the whole string is replaced by any value, such as
a list.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from layerboard.leaderboards.charts.style import SCHEMA, Spec, config
from layerboard.leaderboards.report.content import FIRST, MAYBE, UNTESTED

ROWS = "rows"  # name of the data that a chart draws
ACCENT = "#d55e00"  # colour of fronts, floors and published numbers

# height of a row in pixels in charts with few rows, and with more than `FEW`
STEPS = {"ranking": (24, 14), "depth_map": (18, 12), "task_map": (26, 20)}
FEW = 40

LABEL = 13  # minimum distance in pixels of labels at the ends of lines
NEAR = 0.25  # share of the horizontal axis within which labels can overlap
BANDS = 3  # maximum number of lines that have interval bands
INK = "{ink}"  # colour of text and axes, that of the paper or of the reader's theme
CELL = {"type": "rect", "aria": False}  # a filled cell of a map
IS_BEST = "datum.place == 'best'"  # whether a row is of the best layer of its backbone


def _tip(field: str, title: str = "", form: str = "") -> Spec:
    return {"field": field} | ({"title": title} if title else {}) | ({"format": form} if form else {})


_SURE = {
    "calculate": "isValid(datum.ci_low) ? format(datum.ci_low, '.1f') + ' to ' + format(datum.ci_high, '.1f')"
    " : 'none'",
    "as": "sure",
}
_LAYER = {
    "calculate": "datum.layer + ' of ' + datum.depth + (datum.place == 'best' ? ', its best layer' :"
    " datum.place == 'tied' ? ', tied with its best layer' : '')",
    "as": "where",
}
_SCORE = _tip("value", "{metric}", ".1f")
_SCORE_TIPS = [_tip("backbone", "backbone"), _tip("where", "layer"), _SCORE, _tip("sure", "95 % interval")]
_VALUE = {"field": "value", "type": "quantitative", "title": "{axis}", "scale": {"zero": False}}
_LOW = _VALUE | {"field": "ci_low"}
_ROW = {"y": {"field": "backbone", "type": "nominal", "sort": "{order}", "title": None}}


def fill_placeholders(spec: Any, words: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON of any depth
    """A specification with its placeholders filled."""
    if isinstance(spec, dict):
        return {key: fill_placeholders(value, words) for key, value in spec.items()}
    if isinstance(spec, list):
        return [fill_placeholders(value, words) for value in spec]
    if not isinstance(spec, str):
        return spec
    if whole := re.fullmatch(r"\{(\w+)\}", spec):
        return words[whole[1]]
    return re.sub(r"\{(\w+)\}", lambda found: str(words[found[1]]), spec)


def height(view: str, rows: int) -> int:
    """Height in pixels of a chart with rows; 0 for others."""
    return max(2, rows) * STEPS.get(view, (0, 0))[rows > FEW]


def spaced_labels(ends: Sequence[tuple[float, float]], gap: float) -> list[float]:
    """Heights of labels at the ends of lines, without overlap and as close to the ends as that allows.

    An end is a share of the horizontal axis and a height; the page's script does the same.
    """
    heights = [height for _, height in ends]
    placed: list[int] = []
    for index in sorted(range(len(ends)), key=lambda index: -heights[index]):
        above = [heights[other] for other in placed if abs(ends[other][0] - ends[index][0]) < NEAR]
        heights[index] = min([heights[index], *(height - gap for height in above)])
        placed.append(index)
    return heights


def _chart(layers: list[Spec], height: object, *transform: Spec) -> Spec:
    """A layered chart of the rows, as wide as its container."""
    size = {"width": "container", "height": height, "autosize": {"type": "fit-x", "contains": "padding"}}
    return _open(*transform) | size | {"layer": layers}


def _open(*transform: Spec) -> Spec:
    """Parameters of every chart: its rows, the highlighted backbone and the hovered place."""
    params = [{"name": "mark", "value": "{mark}"}, {"name": "at", "value": None}]
    data = {"data": {"name": ROWS}, "transform": [_SURE, _LAYER, *transform]}
    return {"$schema": SCHEMA, "params": params, "config": config(INK, "{font}")} | data


def _ramp(field: str, title: str) -> Spec:
    legend = {"orient": "top", "gradientLength": 180, "titleLimit": 400}
    return {"field": field, "type": "quantitative", "title": title, "legend": legend}


def _floor(side: str) -> Spec:
    """The dashed line of the random floor; none if its list of numbers is empty."""
    mark = {"type": "rule", "strokeDash": [5, 4], "color": INK, "opacity": 0.6}
    tips = [_tip("floor", "random floor", ".1f")]
    encoding: Spec = {side: {"field": "floor", "type": "quantitative"}, "tooltip": tips}
    return {"data": {"values": "{floor}"}, "mark": mark, "encoding": encoding}


def _plotted(mark: Spec, encoding: Spec, *only: str) -> Spec:
    """A mark for each row, or for those of which some expressions hold."""
    rows = {"transform": [{"filter": each} for each in only]} if only else {}
    return rows | {"mark": mark, "encoding": encoding}


def _name(distance: int) -> Spec:
    """A text that begins that many pixels to the right of its place."""
    style = {"type": "text", "color": INK, "fontSize": 10.5, "opacity": 1, "aria": False}
    return style | {"align": "left", "dx": distance}


def _others(field: str, places: Spec) -> Spec:
    """A diamond for each published number, whose rows have ``published`` in a field."""
    mark = {"type": "point", "shape": "diamond", "size": 90, "filled": False}
    mark |= {"color": ACCENT, "strokeWidth": 2}
    tips = [_tip("backbone"), _tip("source", "published in"), _SCORE, _tip("verdict")]
    return _plotted(mark, places | {"tooltip": tips}, f"datum.{field} == 'published'")


def _by_backbone(values: str) -> Spec:
    """A channel in which each backbone has one value, whatever else is shown."""
    field = {"field": "backbone", "type": "nominal", "title": None, "legend": "{legend}"}
    return field | {"scale": {"domain": "{backbones}", "range": values}}


def _marked(usual: float, faint: float = 0.15) -> Spec:
    """The opacity of a backbone's marks: faint if another one is highlighted."""
    lit = {"test": "mark == '' || datum.backbone == mark", "value": usual}
    return {"opacity": {"condition": lit, "value": faint}}


_COLOUR, _SHAPE, _DASH = (_by_backbone(values) for values in ("{colours}", "{shapes}", "{dashes}"))
_BAND: Spec = {"mark": {"type": "area", "aria": False}}
_BAND |= {"encoding": {"y": _LOW, "y2": {"field": "ci_high"}, "color": _COLOUR}}


def _names(places: Spec) -> list[Spec]:
    """A mark and a name where a line ends, at the height of the field ``end``."""
    places = places | {"y": {"field": "end", "type": "quantitative"}}
    point = {"type": "point", "filled": True, "size": 45, "xOffset": 10, "aria": False}
    name = {"text": {"field": "name"}}
    return [
        _plotted(point, places | _marked(1) | {"color": _COLOUR, "shape": _SHAPE}, "isValid(datum.end)"),
        _plotted(_name(18), places | _marked(1, faint=0.6) | name, "isValid(datum.end)"),
    ]


def ranking() -> Spec:
    """The best layer of each backbone in one task with its interval, filled if it may be the best.

    Rows: `leaderboards.report.content.BEST` and ``label``, the text beside the point; rows whose ``group`` is
    ``published`` are published numbers.
    """
    tips = [_tip("backbone"), *_SCORE_TIPS[1:], _tip("group", "as far as the data tell")]
    good = f"(datum.group == '{FIRST}' || datum.group == '{MAYBE}')"
    measured = "datum.group != 'published'"
    dash = {"condition": {"test": f"datum.group == '{UNTESTED}'", "value": [3, 3]}, "value": [1, 0]}
    points = _ROW | _marked(1) | {"x": _VALUE, "color": _COLOUR, "shape": _SHAPE, "tooltip": tips}
    interval = {"x": _LOW, "x2": {"field": "ci_high"}, "color": _COLOUR, "strokeDash": dash}
    rule = {"type": "rule", "strokeWidth": 2.5, "aria": False}
    hollow = {"type": "point", "filled": True, "size": 60, "fill": "{ground}", "strokeWidth": 1.8}
    label = {"x": {"value": "width"}, "text": {"field": "label"}}
    layers = [
        _floor("x"),
        _plotted(rule, _ROW | _marked(0.55) | interval, measured),
        _plotted({"type": "point", "filled": True, "size": 80}, points, good),
        _plotted(hollow, points | {"stroke": _COLOUR}, measured, f"!{good}"),
        _plotted(_name(8), _ROW | _marked(1, faint=0.6) | label, measured),
        _others("group", _ROW | {"x": _VALUE}),
    ]
    return _chart(layers, "{height}")


_ACROSS: Spec = {"field": "x", "type": "quantitative", "title": "{depth}", "axis": {"tickMinStep": "{step}"}}
_ACROSS |= {"scale": {"zero": False, "nice": False, "padding": 12}}


def _lines(places: Spec) -> list[Spec]:
    """A line per backbone, with a ring around its best layer."""
    large = {"condition": {"test": IS_BEST, "value": 130}, "value": 28}
    ring = {"type": "point", "size": 330, "strokeWidth": 1.4, "filled": False, "aria": False}
    line = {"type": "line", "strokeWidth": 1.8, "aria": False}
    points = {"color": _COLOUR, "shape": _SHAPE, "size": large}
    return [
        _plotted(line, places | _marked(1) | {"color": _COLOUR, "strokeDash": _DASH}),
        _plotted({"type": "point", "filled": True}, places | _marked(1) | points),
        _plotted(ring, places | _marked(0.9) | {"color": _COLOUR}, IS_BEST),
    ]


def curves() -> Spec:
    """The scores of every layer of some backbones in one task, with their names where the lines end.

    Rows: `leaderboards.report.content.LAYERS` with ``x``, the layer or its share of the depth, and in one row
    of each backbone ``end``, the height of its ``name``; rows whose ``place`` is ``published`` are published
    numbers. If there are at most `BANDS` lines, each has an interval band, and so has the highlighted one.
    """
    places = {"x": _ACROSS, "y": _VALUE}
    measured = {"transform": [{"filter": "datum.place != 'published'"}]}
    lit = {"test": "datum.backbone == mark || (mark == '' && {few})", "value": 0.16}
    band = _BAND | {"encoding": _BAND["encoding"] | {"x": _ACROSS, "opacity": {"condition": lit, "value": 0}}}
    cursor: Spec = {"data": {"values": [{}]}}
    cursor |= {"transform": [{"calculate": "at", "as": "x"}, {"filter": "isValid(datum.x)"}]}
    rule = {"type": "rule", "color": INK, "opacity": 0.5, "aria": False}
    layers = [
        _floor("y"),
        measured | {"layer": [band, *_lines(places)]},
        _others("place", places),
        cursor | _plotted(rule, {"x": _ACROSS}),
        *_names({"x": {"value": "width"}}),
    ]
    return _chart(layers, 340)


def panels() -> Spec:
    """Scores of every layer in one task with intervals, in a panel for each backbone.

    Rows: those of `curves` and ``panel``, the backbone of the panel; the line of another backbone is grey.
    """
    places = {"x": _ACROSS, "y": _VALUE}
    own = {"transform": [{"filter": "datum.backbone == datum.panel"}]}
    band = _BAND | {"encoding": _BAND["encoding"] | {"x": _ACROSS, "opacity": {"value": 0.2}}}
    line, points, _ = _lines(places)
    tips = {"encoding": points["encoding"] | {"tooltip": _SCORE_TIPS}}
    grey = {"type": "line", "color": "#8c959f", "strokeWidth": 1, "aria": False}
    other = _plotted(grey, places, "datum.backbone != datum.panel")
    field = {"field": "panel", "type": "nominal", "title": None, "sort": "{backbones}"}
    header = {"labelAnchor": "start", "labelFontWeight": 600, "labelLimit": "{width}"}
    facet = {"facet": field | {"header": header}}
    layers = [_floor("y"), other, own | {"layer": [band, line, points | tips]}]
    inner = {"width": "{width}", "height": 110, "layer": layers}
    return _open() | facet | {"columns": "{columns}", "spec": inner}


def depth_map() -> Spec:
    """The scores of all layers of many backbones in a task (`LAYERS`), as colours over relative depth."""
    start = {"calculate": "(datum.layer - 1) / datum.depth", "as": "from"}
    end = {"calculate": "datum.layer / datum.depth", "as": "to"}
    share: Spec = {"field": "from", "type": "quantitative", "title": "share of the depth"}
    share |= {"scale": {"domain": [0, 1], "nice": False}}
    share |= {"axis": {"grid": False, "format": ".2~f", "tickCount": 5}}
    across = {"x": share, "x2": {"field": "to"}}
    colour = {"color": _ramp("value", "{axis}"), "tooltip": _SCORE_TIPS}
    cells = _plotted(CELL, _ROW | across | colour)
    frame = {"type": "rect", "filled": False, "stroke": ACCENT, "strokeWidth": 2, "aria": False}
    return _chart([cells, _plotted(frame, _ROW | across, IS_BEST)], "{height}", start, end)


def task_map() -> Spec:
    """Scores of one backbone's layers by task: `LAYERS`, ``text``, ``share`` of the best in percent."""
    places = {
        "x": {"field": "layer", "type": "ordinal", "title": "layer", "axis": {"labelAngle": 0}},
        "y": {"field": "column", "type": "nominal", "sort": "{order}", "title": None},
    }
    tips = [_tip("column", "task"), _tip("where", "layer"), _tip("value", "score", ".1f")]
    tips += [_tip("sure", "95 % interval"), _tip("share", "share of the best layer's, %", ".1f")]
    colour = {"color": _ramp("share", "% of the best layer's score"), "tooltip": tips}
    frame = {"type": "rect", "filled": False, "stroke": ACCENT, "strokeWidth": 2.5, "aria": False}
    ink = {"condition": {"test": "datum.dark", "value": "#ffffff"}, "value": "#101418"}
    text = {"type": "text", "fontSize": 10, "aria": False}
    layers = [
        _plotted(CELL, places | colour),
        _plotted(frame, places, IS_BEST),
        _plotted(text, places | {"text": {"field": "text"}, "color": ink}),
    ]
    return _chart(layers, "{height}")


def tradeoff() -> Spec:
    """Scores over a cost: a point for each depth at which a backbone may be cut, and the Pareto front.

    Rows: `LAYERS`, ``cost``, ``shown``: whether the backbone is selected, ``front``: whether none is better
    at the same or less cost, and in one row of each line ``end``, the height of its ``name``.
    """
    across: Spec = {"field": "cost", "type": "quantitative", "title": "{cost}"}
    across |= {"scale": "{scale}", "axis": {"format": ".3~r", "tickCount": 6}}
    tips = [*_SCORE_TIPS, {"field": "cost", "title": "{cost}", "format": ".3~r"}]
    places = {"x": across, "y": _VALUE}
    grey = {"type": "point", "filled": True, "size": 22, "color": "#8c959f", "opacity": 0.45}
    thin = {"type": "line", "strokeWidth": 1, "aria": False}
    line = {"color": _COLOUR, "order": {"field": "layer"}}
    points = {"color": _COLOUR, "shape": _SHAPE, "tooltip": tips}
    stairs = {"type": "line", "interpolate": "step-after", "color": INK, "strokeWidth": 1.4, "aria": False}
    ring = {"type": "point", "size": 110, "color": INK, "strokeWidth": 1.6, "filled": False}
    layers = [
        _plotted(grey, places | {"tooltip": tips}, "!datum.shown"),
        _plotted(thin, places | _marked(0.5) | line, "datum.shown"),
        _plotted(
            {"type": "point", "filled": True, "size": 34}, places | _marked(0.9) | points, "datum.shown"
        ),
        _plotted(stairs, places, "datum.front"),
        _plotted(ring, places | {"tooltip": tips}, "datum.front"),
        *_names({"x": across}),
    ]
    return _chart(layers, 340)


def alike() -> Spec:
    """CKA of every block of one backbone with every block of another: ``row``, ``column`` and ``value``."""
    places = {
        "x": {"field": "column", "type": "ordinal", "title": "layer of {second}", "axis": {"labelAngle": 0}},
        "y": {"field": "row", "type": "ordinal", "title": "layer of {first}", "sort": "descending"},
    }
    tips = [_tip("row", "row: layer of {first}"), _tip("column", "column: layer of {second}")]
    tips.append(_tip("value", "CKA", ".3f"))
    colour = _ramp("value", "CKA") | {"scale": {"domain": [0, 1], "clamp": True}}
    cells = _plotted(CELL, places | {"color": colour, "tooltip": tips})
    sides = {"width": {"step": 24}, "height": {"step": 24}, "autosize": {"type": "pad"}}
    return _chart([cells], height=None) | sides | {"transform": []}


def all_charts() -> dict[str, Spec]:
    """Every chart by the name of its view."""
    views = (ranking, curves, panels, depth_map, task_map, tradeoff, alike)
    return {each.__name__: each() for each in views}
