"""The report's charts as data: Vega-Lite specifications in which the rows and a few words are still open.

The page fills them in the reader's browser, `leaderboards.report.figures` for files: what is drawn is the
same. Open places are those of `leaderboards.report.parts`.
"""

from leaderboards.charts.style import Spec
from leaderboards.report.parts import ACCENT, INK, chart, floor, others, ramp, text

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
_VALUE = {"field": "value", "type": "quantitative", "title": "{axis}", "scale": {"zero": False}}
_LOW = _VALUE | {"field": "ci_low"}
_ROW = {"y": {"field": "backbone", "type": "nominal", "sort": "{order}", "title": None}}


def _by_backbone(values: str, **legend: object) -> Spec:
    """A channel in which each backbone has one value whatever else is shown, its legend above the chart."""
    style = {"orient": "top", "columns": "{columns}", "symbolOpacity": 1, "labelLimit": 220}
    field = {"field": "backbone", "type": "nominal", "title": None}
    return field | {"scale": {"domain": "{backbones}", "range": values}, "legend": style | legend}


def ranking() -> Spec:
    """The best layer of each backbone of one task with its interval, grouped by what the data can tell.

    Rows: `leaderboards.report.frames.BEST` and ``label``, what stands beside the point; rows whose ``group``
    is ``published`` are numbers of others.
    """
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
    measured = {"filter": "datum.group != 'published'"}
    layers = [
        floor("x"),
        {"transform": [measured],
         "mark": {"type": "rule", "strokeWidth": 2.5, "opacity": 0.55, "aria": False},
         "encoding": _ROW | {"x": _LOW, "x2": {"field": "ci_high"}, "color": colour}},
        {"transform": [measured], "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
         "encoding": _ROW | {"x": _VALUE, "color": colour, "tooltip": tips}},
        {"transform": [measured], "mark": text(align="left", dx=8),
         "encoding": _ROW | {"x": {"value": "width"}, "text": {"field": "label"}}},
        others("group", _ROW | {"x": _VALUE}),
    ]  # fmt: skip
    return chart(layers, height="{height}", transform=[_SURE, _LAYER])


def curves() -> Spec:
    """The scores of every layer of some backbones in one task, with bands of their intervals.

    Rows: `leaderboards.report.frames.LAYERS` with ``x``, the layer or its share of the depth; rows whose
    ``place`` is ``published`` are numbers of others.
    """
    across = {"field": "x", "type": "quantitative", "title": "{depth}", "axis": {"tickMinStep": "{step}"}}
    across |= {"scale": {"zero": False, "nice": False, "padding": 12}}
    colour, shape, dash = (
        _by_backbone(values, symbolSize=70) for values in ("{colours}", "{shapes}", "{dashes}")
    )
    measured = {"filter": "datum.place != 'published'"}
    tips = [*_SCORE_TIPS, {"field": "chosen", "title": "chosen on random halves", "format": ".0%"}]
    layers = [
        floor("y"),
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
        others("place", {"x": across, "y": _VALUE}),
    ]  # fmt: skip
    return chart(layers, height=340, transform=[_SURE, _LAYER])


def depth_map() -> Spec:
    """The scores of all layers of many backbones in a task (`LAYERS`), as colours over the depth's share."""
    start = {"calculate": "(datum.layer - 1) / datum.depth", "as": "from"}
    end = {"calculate": "datum.layer / datum.depth", "as": "to"}
    share: Spec = {"field": "from", "type": "quantitative", "title": "share of the depth"}
    share |= {"scale": {"domain": [0, 1], "nice": False}}
    share |= {"axis": {"grid": False, "format": ".2~f", "tickCount": 5}}
    across = {"x": share, "x2": {"field": "to"}}
    cells = {"mark": {"type": "rect", "aria": False}, "encoding": _ROW | across | {
        "color": ramp("value", "{axis}"), "tooltip": _SCORE_TIPS}}  # fmt: skip
    chosen = {"transform": [{"filter": "datum.place == 'best'"}],
              "mark": {"type": "rect", "filled": False, "stroke": ACCENT, "strokeWidth": 2, "aria": False},
              "encoding": _ROW | across}  # fmt: skip
    return chart([cells, chosen], height="{height}", transform=[_SURE, _LAYER, start, end])


def task_map() -> Spec:
    """The scores of every layer of one backbone in every task, each as a share of the best layer's there.

    Rows: `LAYERS`, ``share`` in percent, and ``text``, the score.
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
         "encoding": places | {"color": ramp("share", "% of the best layer's score"), "tooltip": tips}},
        {"transform": [{"filter": "datum.place == 'best'"}],
         "mark": {"type": "rect", "filled": False, "stroke": ACCENT, "strokeWidth": 2.5, "aria": False},
         "encoding": places},
        {"mark": {"type": "text", "fontSize": 10, "aria": False}, "encoding": places | {
            "text": {"field": "text"},
            "color": {"condition": {"test": "datum.dark", "value": "#ffffff"}, "value": "#101418"}}},
    ]  # fmt: skip
    return chart(layers, height="{height}", transform=[_SURE, _LAYER])


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
        {"transform": [{"filter": "datum.label"}], "mark": text(align="left", dx=9, dy=12),
         "encoding": places | {"text": {"field": "label"}}},
    ]  # fmt: skip
    return chart(layers, height=340, transform=[_SURE, _LAYER])


def alike() -> Spec:
    """CKA of every block of one backbone with every block of another: ``row``, ``column`` and ``value``."""
    places = {
        "x": {"field": "column", "type": "ordinal", "title": "layer of {second}", "axis": {"labelAngle": 0}},
        "y": {"field": "row", "type": "ordinal", "title": "layer of {first}", "sort": "descending"},
    }
    tips = [{"field": "row", "title": "layer of {first}"}, {"field": "column", "title": "layer of {second}"},
            {"field": "value", "title": "CKA", "format": ".3f"}]  # fmt: skip
    colour = ramp("value", "CKA") | {"scale": {"domain": [0, 1], "clamp": True}}
    cells = {"mark": {"type": "rect", "aria": False}, "encoding": places | {"color": colour, "tooltip": tips}}
    sides = {"width": {"step": 24}, "height": {"step": 24}, "autosize": {"type": "pad"}}
    return chart([cells], height=None) | sides


def all_charts() -> dict[str, Spec]:
    """Every chart by the name of its view."""
    return {each.__name__: each() for each in (ranking, curves, depth_map, task_map, tradeoff, alike)}
