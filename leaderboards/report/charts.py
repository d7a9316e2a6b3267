"""The report's charts as data: Vega-Lite specifications in which the rows and a few words are still open.

The page fills them in the reader's browser, `leaderboards.report.figures` for files: what is drawn is the
same. An open place is a string ``{name}``; one that is the whole string takes whatever is given, as lists.
"""

import re
from collections.abc import Mapping
from typing import Any

from layerboard.leaderboards.charts.style import SCHEMA, Spec, config
from layerboard.leaderboards.report.content import FIRST, MAYBE, UNTESTED, WORSE

ROWS = "rows"  # name of the data that a chart draws
GROUPS = {FIRST: "#0072b2", MAYBE: "#56b4e9", WORSE: "#8c959f", UNTESTED: "#e69f00"}  # of backbones
ACCENT = "#d55e00"  # colour of fronts, floors and numbers of others

# height of a row in pixels, of charts that have rows: of a few, and of more than `FEW`
STEPS = {"ranking": (24, 14), "depth_map": (18, 12), "task_map": (26, 20)}
FEW = 40

APART = 0.1  # share of the axis of costs by which names at a front are apart at least
INK = "{ink}"  # colour of text and axes, that of the paper or of the reader's theme


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


def filled(spec: Any, words: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON of any depth
    """A specification with its open places filled."""
    if isinstance(spec, dict):
        return {key: filled(value, words) for key, value in spec.items()}
    if isinstance(spec, list):
        return [filled(value, words) for value in spec]
    if not isinstance(spec, str):
        return spec
    if whole := re.fullmatch(r"\{(\w+)\}", spec):
        return words[whole[1]]
    return re.sub(r"\{(\w+)\}", lambda found: str(words[found[1]]), spec)


def height(view: str, rows: int) -> int:
    """Height in pixels of a chart that has rows; 0 of others."""
    return max(2, rows) * STEPS.get(view, (0, 0))[rows > FEW]


def _chart(layers: list[Spec], height: object, *transform: Spec) -> Spec:
    """A chart of layers over the open rows, as wide as its place."""
    return {
        "$schema": SCHEMA,
        "data": {"name": ROWS},
        "width": "container",
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "transform": [_SURE, _LAYER, *transform],
        "layer": layers,
        "config": config(INK, "{font}"),
    }


def _ramp(field: str, title: str) -> Spec:
    legend = {"orient": "top", "gradientLength": 180, "titleLimit": 400}
    return {"field": field, "type": "quantitative", "title": title, "legend": legend}


def _floor(side: str) -> Spec:
    """The dashed line of the random floor; none where the open list of numbers is empty."""
    mark = {"type": "rule", "strokeDash": [5, 4], "color": INK, "opacity": 0.6}
    tips = [_tip("floor", "random floor", ".1f")]
    encoding: Spec = {side: {"field": "floor", "type": "quantitative"}, "tooltip": tips}
    return {"data": {"values": "{floor}"}, "mark": mark, "encoding": encoding}


def _text(**changes: object) -> Spec:
    return {"type": "text", "color": INK, "fontSize": 10.5, "opacity": 0.85, "aria": False} | changes


def _others(field: str, places: Spec) -> Spec:
    """A diamond for each number of others, whose rows say ``published`` in a field."""
    mark = {"type": "point", "shape": "diamond", "size": 90, "filled": False}
    mark |= {"color": ACCENT, "strokeWidth": 2}
    tips = [_tip("backbone"), _tip("source", "published in"), _SCORE, _tip("verdict")]
    chosen = {"transform": [{"filter": f"datum.{field} == 'published'"}], "mark": mark}
    return chosen | {"encoding": places | {"tooltip": tips}}


def _by_backbone(values: str, **legend: object) -> Spec:
    """A channel in which each backbone has one value whatever else is shown, its legend above the chart."""
    style = {"orient": "top", "columns": "{columns}", "symbolOpacity": 1, "labelLimit": 220}
    field = {"field": "backbone", "type": "nominal", "title": None}
    return field | {"scale": {"domain": "{backbones}", "range": values}, "legend": style | legend}


def ranking() -> Spec:
    """The best layer of each backbone of one task with its interval, grouped by what the data can tell.

    Rows: `leaderboards.report.content.BEST` and ``label``, what stands beside the point; rows whose ``group``
    is ``published`` are numbers of others.
    """
    colour: Spec = {"field": "group", "type": "nominal", "title": None}
    colour |= {"scale": {"domain": "{groups}", "range": "{tones}"}}
    colour |= {"legend": {"orient": "top", "symbolType": "circle", "symbolOpacity": 1}}
    tips = [_tip("backbone"), *_SCORE_TIPS[1:], _tip("group", "as far as the data tell")]
    measured = {"filter": "datum.group != 'published'"}
    layers = [
        _floor("x"),
        {"transform": [measured],
         "mark": {"type": "rule", "strokeWidth": 2.5, "opacity": 0.55, "aria": False},
         "encoding": _ROW | {"x": _LOW, "x2": {"field": "ci_high"}, "color": colour}},
        {"transform": [measured], "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
         "encoding": _ROW | {"x": _VALUE, "color": colour, "tooltip": tips}},
        {"transform": [measured], "mark": _text(align="left", dx=8),
         "encoding": _ROW | {"x": {"value": "width"}, "text": {"field": "label"}}},
        _others("group", _ROW | {"x": _VALUE}),
    ]  # fmt: skip
    return _chart(layers, "{height}")


def curves() -> Spec:
    """The scores of every layer of some backbones in one task, with bands of their intervals.

    Rows: `leaderboards.report.content.LAYERS` with ``x``, the layer or its share of the depth; rows whose
    ``place`` is ``published`` are numbers of others.
    """
    across = {"field": "x", "type": "quantitative", "title": "{depth}", "axis": {"tickMinStep": "{step}"}}
    across |= {"scale": {"zero": False, "nice": False, "padding": 12}}
    ranges = ("{colours}", "{shapes}", "{dashes}")
    colour, shape, dash = (_by_backbone(values, symbolSize=70) for values in ranges)
    measured = {"filter": "datum.place != 'published'"}
    tips = [*_SCORE_TIPS, _tip("chosen", "chosen on random halves", ".0%")]
    layers = [
        _floor("y"),
        {"transform": [measured], "mark": {"type": "area", "opacity": 0.14, "aria": False},
         "encoding": {"x": across, "y": _LOW, "y2": {"field": "ci_high"}, "color": colour}},
        {"transform": [measured], "mark": {"type": "line", "strokeWidth": 1.8, "aria": False},
         "encoding": {"x": across, "y": _VALUE, "color": colour, "strokeDash": dash}},
        {"transform": [measured], "mark": {"type": "point", "filled": True, "opacity": 1},
         "encoding": {"x": across, "y": _VALUE, "color": colour, "shape": shape,
                      "size": {"condition": {"test": "datum.place == 'best'", "value": 130}, "value": 28},
                      "tooltip": tips}},
        {"transform": [measured, {"filter": "datum.place == 'best'"}],
         "mark": {"type": "point", "size": 330, "strokeWidth": 1.4, "filled": False, "opacity": 0.9,
                  "aria": False},
         "encoding": {"x": across, "y": _VALUE, "color": colour}},
        _others("place", {"x": across, "y": _VALUE}),
    ]  # fmt: skip
    return _chart(layers, 340)


def depth_map() -> Spec:
    """The scores of all layers of many backbones in a task (`LAYERS`), as colours over the depth's share."""
    start = {"calculate": "(datum.layer - 1) / datum.depth", "as": "from"}
    end = {"calculate": "datum.layer / datum.depth", "as": "to"}
    share: Spec = {"field": "from", "type": "quantitative", "title": "share of the depth"}
    share |= {"scale": {"domain": [0, 1], "nice": False}}
    share |= {"axis": {"grid": False, "format": ".2~f", "tickCount": 5}}
    across = {"x": share, "x2": {"field": "to"}}
    cells = {"mark": {"type": "rect", "aria": False}, "encoding": _ROW | across | {
        "color": _ramp("value", "{axis}"), "tooltip": _SCORE_TIPS}}  # fmt: skip
    chosen = {"transform": [{"filter": "datum.place == 'best'"}],
              "mark": {"type": "rect", "filled": False, "stroke": ACCENT, "strokeWidth": 2, "aria": False},
              "encoding": _ROW | across}  # fmt: skip
    return _chart([cells, chosen], "{height}", start, end)


def task_map() -> Spec:
    """Scores of one backbone's layers by task: `LAYERS`, ``text``, ``share`` of the best in percent."""
    places = {
        "x": {"field": "layer", "type": "ordinal", "title": "layer", "axis": {"labelAngle": 0}},
        "y": {"field": "column", "type": "nominal", "sort": "{order}", "title": None},
    }
    tips = [_tip("column", "task"), _tip("where", "layer"), _tip("value", "score", ".1f")]
    tips += [_tip("sure", "95 % interval"), _tip("share", "share of the best layer's, %", ".1f")]
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
    return _chart(layers, "{height}")


def tradeoff() -> Spec:
    """Scores over a cost: a point for each depth at which a backbone may be cut, and the Pareto front.

    Rows: `LAYERS`, ``cost``, ``shown``: whether the backbone is picked out, ``front``: whether none is better
    at the same cost or less, and ``label``, what stands there.
    """
    across: Spec = {"field": "cost", "type": "quantitative", "title": "{cost}"}
    across |= {"scale": "{scale}", "axis": {"format": ".3~r", "tickCount": 6}}
    colour = _by_backbone("{colours}", symbolType="circle")
    tips = [*_SCORE_TIPS, {"field": "cost", "title": "{cost}", "format": ".3~r"}]
    picked = {"filter": "datum.shown"}
    places = {"x": across, "y": _VALUE}
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
    cells = {"mark": {"type": "rect", "aria": False}, "encoding": places | {"color": colour, "tooltip": tips}}
    sides = {"width": {"step": 24}, "height": {"step": 24}, "autosize": {"type": "pad"}}
    return _chart([cells], height=None) | sides | {"transform": []}


def all_charts() -> dict[str, Spec]:
    """Every chart by the name of its view."""
    return {each.__name__: each() for each in (ranking, curves, depth_map, task_map, tradeoff, alike)}
