"""The report's charts as data: Vega-Lite specifications in which the rows and a few words are still open.

The page fills them in the reader's browser, `leaderboards.report.figures` for files: what is drawn is the
same. An open place is a string ``{name}``; one that is the whole string takes whatever is given, as lists.
"""

import re
from collections.abc import Mapping
from typing import Any

from leaderboards.pages.svg.colours import SERIES
from leaderboards.report.board import FIRST, MAYBE, UNTESTED, WORSE

Spec = dict[str, Any]

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
"""The grammar's name; nothing is read from there."""

ROWS = "rows"
"""Name of the data that a chart draws."""

SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "triangle-right")
GROUPS = {FIRST: "#0072b2", MAYBE: "#56b4e9", WORSE: "#8c959f", UNTESTED: "#e69f00"}
"""Colour of each group of backbones in a column."""

ACCENT = "#d55e00"
"""Of fronts, floors and numbers of others."""

STEPS = {"ranking": (24, 14), "depth_map": (18, 12), "task_map": (26, 20)}
"""Height of a row in pixels, of charts that have rows: of a few, and of more than `FEW`."""

FEW = 40

APART = 0.1
"""Share of the axis of costs by which names at a front are apart at least."""

RAMP = "viridis"
"""Colours of heat maps: of growing lightness, so that any colour vision can read them, and grey print."""

INK = "{ink}"
"""Colour of text and axes, that of the paper or of the reader's theme."""

_SURE = {
    "calculate": "isValid(datum.ci_low) ? format(datum.ci_low, '.1f') + ' to ' + format(datum.ci_high, '.1f')"
    " : 'none'",
    "as": "sure",
}
_LAYER = {
    "calculate": "datum.layer + ' of ' + datum.depth + (datum.place == 'best' ? ', best score' :"
    " datum.place == 'tied' ? ', may be the best' : '')",
    "as": "where",
}
_SCORE_TIPS = [
    {"field": "backbone", "title": "backbone"},
    {"field": "where", "title": "layer"},
    {"field": "value", "title": "{metric}", "format": ".1f"},
    {"field": "sure", "title": "95 % interval"},
]


def ranking() -> Spec:
    """The best layer of each backbone of one task with its interval, grouped by what the data can tell.

    Rows: `leaderboards.report.board.BEST` and ``label``, what stands beside the point; rows whose ``group``
    is ``published`` are numbers of others. Open: metric, order (backbones), floor (a list of numbers), axis,
    groups (those that there are), tones (their colours) and height.
    """
    shared = {"y": {"field": "backbone", "type": "nominal", "sort": "{order}", "title": None}}
    colour = {
        "field": "group",
        "type": "nominal",
        "title": None,
        "scale": {"domain": "{groups}", "range": "{tones}"},
        "legend": {"orient": "top", "symbolType": "circle", "symbolOpacity": 1},
    }
    tips = [
        {"field": "backbone"},
        {"field": "where", "title": "layer"},
        {"field": "value", "title": "{metric}", "format": ".1f"},
        {"field": "sure", "title": "95 % interval"},
        {"field": "group", "title": "as far as the data tell"},
    ]
    measured, others = {"filter": "datum.group != 'published'"}, {"filter": "datum.group == 'published'"}
    value = {"field": "value", "type": "quantitative", "title": "{axis}", "scale": {"zero": False}}
    low = value | {"field": "ci_low"}
    layers = [
        _floor("x"),
        {"transform": [measured],
         "mark": {"type": "rule", "strokeWidth": 2.5, "opacity": 0.55, "aria": False},
         "encoding": shared | {"x": low, "x2": {"field": "ci_high"}, "color": colour}},
        {"transform": [measured], "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
         "encoding": shared | {"x": value, "color": colour, "tooltip": tips}},
        {"transform": [measured], "mark": _text(align="left", dx=8),
         "encoding": shared | {"x": value | {"field": "end"}, "text": {"field": "label"}}},
        {"transform": [others], "mark": _diamond(), "encoding": shared | {"x": value, "tooltip": _others()}},
    ]  # fmt: skip
    end = {"calculate": "isValid(datum.ci_high) ? datum.ci_high : datum.value", "as": "end"}
    return _chart(layers, height="{height}", transform=[_SURE, _LAYER, end])


def curves() -> Spec:
    """The scores of every layer of some backbones in one task, with bands of their intervals.

    Rows: `leaderboards.report.board.LAYERS` with ``x``, the layer or its share of the depth; rows whose
    ``place`` is ``published`` are numbers of others. Open: metric, backbones (labels in the order of their
    colours), colours, shapes, floor, axis, depth (name of the axis of layers).
    """
    place = {"field": "x", "type": "quantitative", "title": "{depth}", "axis": {"tickMinStep": "{step}"}}
    place |= {"scale": {"zero": False, "nice": False, "padding": 12}}
    value = {"field": "value", "type": "quantitative", "title": "{axis}", "scale": {"zero": False}}
    colour = {"field": "backbone", "type": "nominal", "title": None, "scale": _fixed("{colours}")}
    shape = {"field": "backbone", "type": "nominal", "title": None, "scale": _fixed("{shapes}")}
    legend = {
        "orient": "top",
        "columns": "{columns}",
        "symbolOpacity": 1,
        "symbolSize": 70,
        "labelLimit": 220,
    }
    colour, shape = colour | {"legend": legend}, shape | {"legend": legend}
    own, others = {"filter": "datum.place != 'published'"}, {"filter": "datum.place == 'published'"}
    tips = [*_SCORE_TIPS, {"field": "chosen", "title": "chosen on random halves", "format": ".0%"}]
    low = value | {"field": "ci_low"}
    layers = [
        _floor("y"),
        {"transform": [own], "mark": {"type": "area", "opacity": 0.14, "aria": False},
         "encoding": {"x": place, "y": low, "y2": {"field": "ci_high"}, "color": colour}},
        {"transform": [own], "mark": {"type": "line", "strokeWidth": 1.8, "aria": False},
         "encoding": {"x": place, "y": value, "color": colour}},
        {"transform": [own], "mark": {"type": "point", "filled": True, "opacity": 1},
         "encoding": {"x": place, "y": value, "color": colour, "shape": shape,
                      "size": {"condition": {"test": "datum.place == 'best'", "value": 130}, "value": 28},
                      "tooltip": tips}},
        {"transform": [own, {"filter": "datum.place == 'best'"}],
         "mark": {"type": "point", "size": 330, "strokeWidth": 1.4, "filled": False, "opacity": 0.9,
                  "aria": False},
         "encoding": {"x": place, "y": value, "color": colour}},
        {"transform": [others], "mark": _diamond(),
         "encoding": {"x": place, "y": value, "tooltip": _others()}},
    ]  # fmt: skip
    return _chart(layers, height=340, transform=[_SURE, _LAYER])


def depth_map() -> Spec:
    """The scores of every layer of many backbones in one task, as colours over the share of the depth.

    Rows: `leaderboards.report.board.LAYERS`. Open: metric, order (backbones), axis, height.
    """
    transform = [
        _SURE,
        _LAYER,
        {"calculate": "(datum.layer - 1) / datum.depth", "as": "from"},
        {"calculate": "datum.layer / datum.depth", "as": "to"},
    ]
    row = {"y": {"field": "backbone", "type": "nominal", "sort": "{order}", "title": None}}
    place = {
        "x": {
            "field": "from",
            "type": "quantitative",
            "title": "share of the depth",
            "scale": {"domain": [0, 1], "nice": False},
            "axis": {"grid": False, "format": ".2~f", "tickCount": 5},
        },
        "x2": {"field": "to"},
    }
    cells = {"mark": {"type": "rect", "aria": False}, "encoding": row | place | {
        "color": _ramp("value", "{axis}"), "tooltip": _SCORE_TIPS}}  # fmt: skip
    chosen = {"transform": [{"filter": "datum.place == 'best'"}],
              "mark": {"type": "rect", "filled": False, "stroke": ACCENT, "strokeWidth": 2, "aria": False},
              "encoding": row | place}  # fmt: skip
    return _chart([cells, chosen], height="{height}", transform=transform)


def task_map() -> Spec:
    """The scores of every layer of one backbone in every task, each as a share of the best layer's there.

    Rows: `leaderboards.report.board.LAYERS` and ``share``, in percent, and ``text``, the score. Open: order
    (columns) and height.
    """
    places = {
        "x": {"field": "layer", "type": "ordinal", "title": "layer", "axis": {"labelAngle": 0}},
        "y": {"field": "column", "type": "nominal", "sort": "{order}", "title": None},
    }
    tips = [{"field": "column", "title": "task"}, {"field": "where", "title": "layer"},
            {"field": "value", "title": "score", "format": ".1f"},
            {"field": "sure", "title": "95 % interval"},
            {"field": "share", "title": "share of the best layer's, %", "format": ".1f"}]  # fmt: skip
    layers: list[Spec] = [
        {"mark": {"type": "rect", "aria": False},
         "encoding": places | {"color": _ramp("share", "% of the best layer's score"), "tooltip": tips}},
        {"transform": [{"filter": "datum.place == 'best'"}],
         "mark": {"type": "rect", "filled": False, "stroke": ACCENT, "strokeWidth": 2.5, "aria": False},
         "encoding": places},
        {"mark": {"type": "text", "fontSize": 10, "aria": False}, "encoding": places | {
            "text": {"field": "text"},
            "color": {"condition": {"test": "datum.dark", "value": "#ffffff"}, "value": "#101418"}}},
    ]  # fmt: skip
    return _chart(layers, height="{height}", transform=[_SURE, _LAYER])


def tradeoff() -> Spec:
    """Scores over a cost: a point for each depth at which a backbone may be cut, and the Pareto front.

    Rows: `leaderboards.report.board.LAYERS` and ``cost``; ``shown`` says whether the backbone is one of those
    picked out, ``front`` whether none is better at the same cost or less. Open: metric, axis, cost, scale,
    backbones, colours, label (what stands at the front's points).
    """
    place: Spec = {"field": "cost", "type": "quantitative", "title": "{cost}"}
    place |= {"scale": "{scale}", "axis": {"format": ".3~r", "tickCount": 6}}
    value = {"field": "value", "type": "quantitative", "title": "{axis}", "scale": {"zero": False}}
    colour = {"field": "backbone", "type": "nominal", "title": None, "scale": _fixed("{colours}")}
    colour |= {
        "legend": {
            "orient": "top",
            "columns": "{columns}",
            "symbolType": "circle",
            "symbolOpacity": 1,
            "labelLimit": 220,
        }
    }
    tips = [*_SCORE_TIPS, {"field": "cost", "title": "{cost}", "format": ".3~r"}]
    picked = {"filter": "datum.shown"}
    places = {"x": place, "y": value}
    layers: list[Spec] = [
        {"transform": [{"filter": "!datum.shown"}],
         "mark": {"type": "point", "filled": True, "size": 22, "color": "#8c959f", "opacity": 0.45},
         "encoding": places | {"tooltip": tips}},
        {"transform": [picked], "mark": {"type": "line", "strokeWidth": 1, "opacity": 0.5, "aria": False},
         "encoding": places | {"color": colour, "order": {"field": "layer"}}},
        {"transform": [picked], "mark": {"type": "point", "filled": True, "size": 34, "opacity": 0.9},
         "encoding": places | {"color": colour, "tooltip": tips}},
        {"transform": [{"filter": "datum.front"}],
         "mark": {"type": "line", "interpolate": "step-after", "color": INK, "strokeWidth": 1.4,
                  "aria": False},
         "encoding": places},
        {"transform": [{"filter": "datum.front"}],
         "mark": {"type": "point", "size": 110, "color": INK, "strokeWidth": 1.6, "filled": False},
         "encoding": places | {"tooltip": tips}},
        {"transform": [{"filter": "datum.label"}], "mark": _text(align="left", dx=9, dy=12),
         "encoding": places | {"text": {"field": "label"}}},
    ]  # fmt: skip
    return _chart(layers, height=340, transform=[_SURE, _LAYER])


def alike() -> Spec:
    """CKA of every block of one backbone with every block of another.

    Rows: ``row`` and ``column`` (blocks), ``value``. Open: first, second (backbones).
    """
    places = {
        "x": {"field": "column", "type": "ordinal", "title": "layer of {second}", "axis": {"labelAngle": 0}},
        "y": {"field": "row", "type": "ordinal", "title": "layer of {first}", "sort": "descending"},
    }
    tips = [{"field": "row", "title": "layer of {first}"}, {"field": "column", "title": "layer of {second}"},
            {"field": "value", "title": "CKA", "format": ".3f"}]  # fmt: skip
    colour = _ramp("value", "CKA") | {"scale": {"scheme": RAMP, "domain": [0, 1], "clamp": True}}
    cells = {"mark": {"type": "rect", "aria": False}, "encoding": places | {"color": colour, "tooltip": tips}}
    sides = {"width": {"step": 24}, "height": {"step": 24}, "autosize": {"type": "pad"}}
    return _chart([cells], height=None) | sides


def all_charts() -> dict[str, Spec]:
    """Every chart by the name of its view."""
    return {
        "ranking": ranking(),
        "curves": curves(),
        "depth_map": depth_map(),
        "task_map": task_map(),
        "tradeoff": tradeoff(),
        "alike": alike(),
    }


def filled(spec: Any, words: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON of any depth
    """A specification with its open places filled."""
    if isinstance(spec, dict):
        return {key: filled(value, words) for key, value in spec.items()}
    if isinstance(spec, list):
        return [filled(value, words) for value in spec]
    if not isinstance(spec, str):
        return spec
    whole = re.fullmatch(r"\{(\w+)\}", spec)
    if whole:
        return words[whole[1]]
    return re.sub(r"\{(\w+)\}", lambda found: str(words[found[1]]), spec)


def height(view: str, rows: int) -> int:
    """Height in pixels of a chart that has rows; 0 of others."""
    few, many = STEPS.get(view, (0, 0))
    return max(2, rows) * (few if rows <= FEW else many)


def colours(count: int) -> list[str]:
    """So many colours of series, which start again after the last."""
    return [SERIES[place % len(SERIES)] for place in range(count)]


def shapes(count: int) -> list[str]:
    """So many shapes of points; none stands twice with one colour before the 49th."""
    return [SHAPES[(place + place // len(SERIES)) % len(SHAPES)] for place in range(count)]


def config() -> Spec:
    """The style of all charts: quiet axes, the reader's text colour, no frame."""
    text = {"labelColor": INK, "titleColor": INK, "labelFontSize": 12, "titleFontSize": 12}
    axis = {"domain": False, "ticks": False, "gridColor": INK, "gridOpacity": 0.13, "labelPadding": 6}
    return {
        "background": None,
        "font": "{font}",
        "view": {"stroke": None},
        "axis": text | axis | {"titleFontWeight": "normal", "labelLimit": 230, "titlePadding": 8},
        "legend": text | {"titleFontWeight": "normal", "labelLimit": 230},
        "header": text,
        "title": {"color": INK, "anchor": "start", "fontSize": 13, "fontWeight": 600},
    }


def _chart(layers: list[Spec], height: object, transform: list[Spec] | None = None) -> Spec:
    """A chart of layers over the open rows, as wide as its place."""
    return {
        "$schema": SCHEMA,
        "data": {"name": ROWS},
        "width": "container",
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "transform": transform or [],
        "layer": layers,
        "config": config(),
    }


def _fixed(values: str) -> Spec:
    """A scale that gives each backbone the same colour or shape whatever else is shown."""
    return {"domain": "{backbones}", "range": values}


def _ramp(field: str, title: str) -> Spec:
    """Colours of a heat map."""
    legend = {"orient": "top", "gradientLength": 180, "titleLimit": 400}
    return {
        "field": field,
        "type": "quantitative",
        "title": title,
        "scale": {"scheme": RAMP},
        "legend": legend,
    }


def _floor(side: str) -> Spec:
    """The dashed line of the random floor; none where the open list of numbers is empty."""
    return {
        "data": {"values": "{floor}"},
        "mark": {"type": "rule", "strokeDash": [5, 4], "color": INK, "opacity": 0.6},
        "encoding": {
            side: {"field": "floor", "type": "quantitative"},
            "tooltip": [{"field": "floor", "title": "random floor", "format": ".1f"}],
        },
    }


def _text(**changes: object) -> Spec:
    """Small words beside marks."""
    return {"type": "text", "color": INK, "fontSize": 10.5, "opacity": 0.85, "aria": False} | changes


def _diamond() -> Spec:
    """The mark of a number of others."""
    return {
        "type": "point",
        "shape": "diamond",
        "size": 90,
        "filled": False,
        "color": ACCENT,
        "strokeWidth": 2,
    }


def _others() -> list[Spec]:
    """What is told of a number of others."""
    return [
        {"field": "backbone"},
        {"field": "source", "title": "published in"},
        {"field": "value", "title": "{metric}", "format": ".1f"},
        {"field": "verdict"},
    ]
