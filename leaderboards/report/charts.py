"""The report's charts: Vega-Lite specifications with placeholders for the rows and a few words.

The page fills them in the reader's browser, `leaderboards.report.figures` does for files. Whatever is
computed from the rows is a transform here, so that both draw the same numbers. A placeholder is a string
``{name}``; one that is the whole string is replaced by any value, such as a list. ``{=name}`` is replaced by
the literal of an expression.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from layerboard.leaderboards.blocks.display import NOT_WORSE
from layerboard.leaderboards.charts.style import SCHEMA, Spec, config
from layerboard.leaderboards.report.content import FIRST, MAYBE, OTHERS, UNTESTED

ACCENT = "#d55e00"  # colour of fronts, floors and published numbers

LINES = 340  # height of a chart of lines in pixels
LABEL = 13  # minimum distance in pixels of labels at the ends of lines
NEAR = 0.5  # share of the horizontal axis within which labels can overlap
BANDS = 3  # maximum number of lines that have interval bands
DARK = 0.62  # share of the colours, from the lowest, on which text is white
INK = "{ink}"  # colour of text and axes, that of the paper or of the reader's theme
GREY = {"type": "line", "color": "#8c959f", "strokeWidth": 1, "aria": False}  # a line behind others
CELL = {"type": "rect", "aria": False}  # a filled cell of a map
FRAME = CELL | {"filled": False, "stroke": ACCENT, "strokeWidth": 2.5}  # around the cell of a best layer
IS_BEST = "datum.place == 'best'"  # whether a row is of the best layer of its backbone
MEASURED = f"datum.place != '{OTHERS}'"
IS_PICKED = "indexof({=picked}, datum.backbone) >= 0"


def _tip(field: str, title: str = "", form: str = "") -> Spec:
    return {"field": field} | ({"title": title} if title else {}) | ({"format": form} if form else {})


def _calculate(field: str, expression: str) -> Spec:
    return {"calculate": expression, "as": field}


def _joined(groupby: Sequence[str] = (), **fields: tuple[str, str]) -> Spec:
    """Aggregates of a group as fields of all of its rows: name, operation and aggregated field."""
    names = [{"op": operation, "field": field, "as": name} for name, (operation, field) in fields.items()]
    return {"joinaggregate": names, "groupby": [*groupby]}


def _window(field: str, operation: str, of: str, order: Sequence[Spec], by: Sequence[str] = ()) -> Spec:
    """A field from the rows up to each one in an order, in groups: a running aggregate, or a rank."""
    window = {"window": [{"op": operation, "field": of, "as": field}], "frame": [None, 0]}
    return window | {"ignorePeers": True, "sort": [*order], "groupby": [*by]}


_HIGHEST = {"field": "value", "order": "descending"}
_SURE = _calculate(
    "sure",
    "isValid(datum.ci_low) ? format(datum.ci_low, '.1f') + ' to ' + format(datum.ci_high, '.1f') : 'none'",
)
_BELOW = _calculate(
    "below",
    "isValid(datum.loss) ? 'at most ' + format(ceil(10 * datum.loss - 1e-6) / 10, '.1f')"
    " + ' points (95 %)' : 'not compared'",
)
_WHERE = _calculate(
    "where",
    "datum.layer + ' of ' + datum.depth + (isValid(datum.pooling) ? ', ' + datum.pooling : '')"
    " + (datum.place == 'best' ? ', its best layer' :"
    f" datum.place == 'maybe' ? ', {NOT_WORSE} than its best layer' : '')",
)
_SCORE = _tip("value", "{metric}", ".1f")
_SCORE_TIPS = [
    *(_tip("backbone", "backbone"), _tip("where", "layer"), _tip("score", "{metric}")),
    _tip("sure", "95 % interval"),
    _tip("below", "below the best"),
]
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
    forms: dict[str, Callable[[object], str]] = {"": str, "=": json.dumps}
    return re.sub(r"\{(=?)(\w+)\}", lambda found: forms[found[1]](words[found[2]]), spec)


def spaced_labels(
    height: int | str, by: Sequence[str] = (), low: str = "value", high: str = "value"
) -> list[Spec]:
    """Transforms to the last row of each line, with ``end``: the height of its label.

    The vertical axis of so many pixels reaches from the least ``low`` to the greatest ``high`` of the rows.
    Labels in one place, or in each group ``by`` some fields, do not overlap, and are as close below the ends
    as that allows: from the highest one on, the running minimum of the heights after a shift by the distance
    `LABEL` for each label above.
    """
    gap, order = f"{LABEL} / {height} * (datum.high - datum.low)", [{"field": "across"}]
    apart = f"isValid(datum.left) && datum.across - datum.left > {NEAR} * datum.width ? 1 : 0"
    near = [_window("left", "lag", "across", order), _calculate("apart", apart)]
    near += [_window("near", "sum", "apart", order)]  # groups of labels by their place on an axis
    return [
        {"filter": MEASURED},
        _joined(high=("max", high), low=("min", low)),
        _joined(["backbone"], last=("max", "layer")),
        {"filter": "datum.layer == datum.last"},
        *(near if "near" in by else ()),
        _window("above", "row_number", "", [_HIGHEST], by),
        _calculate("shifted", f"datum.value + datum.above * {gap}"),
        _window("least", "min", "shifted", [{"field": "above"}], by),
        _calculate("end", f"datum.least - datum.above * {gap}"),
    ]


def _chart(layers: list[Spec], height: object, *transform: Spec) -> Spec:
    """A layered chart of the rows, as wide as its container."""
    size = {"width": "container", "height": height, "autosize": {"type": "fit-x", "contains": "padding"}}
    return _open(*transform) | size | {"layer": layers}


def _open(*transform: Spec) -> Spec:
    """Parameters of every chart: its rows, the highlighted backbone and the hovered place."""
    params = [{"name": "mark", "value": "{mark}"}, {"name": "at", "value": None}]
    data = {"data": {"values": "{rows}"}, "transform": [_SURE, _BELOW, _WHERE, *transform]}
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


def _others(places: Spec) -> Spec:
    """A diamond for each published number."""
    mark = {"type": "point", "shape": "diamond", "size": 90, "filled": False}
    mark |= {"color": ACCENT, "strokeWidth": 2}
    tips = [_tip("backbone"), _tip("source", "published in"), _SCORE, _tip("verdict")]
    return _plotted(mark, places | {"tooltip": tips}, f"datum.place == '{OTHERS}'")


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


def _names(places: Spec, height: int, by: Sequence[str] = ()) -> list[Spec]:
    """A mark and a name where each line ends, at the height of ``end``."""
    places = places | {"y": {"field": "end", "type": "quantitative"}}
    point = {"type": "point", "filled": True, "size": 45, "xOffset": 10, "aria": False}
    drawn = [
        _plotted(point, places | _marked(1) | {"color": _COLOUR, "shape": _SHAPE}),
        _plotted(_name(18), places | _marked(1, faint=0.6) | {"text": {"field": "backbone"}}),
    ]
    return [{"transform": spaced_labels(height, by), "layer": drawn}]


def ranking() -> Spec:
    """The best layer of each backbone in one task with its interval, filled if it may be the best.

    Rows whose ``place`` is ``published`` are published numbers.
    """
    tips = [_tip("backbone"), *_SCORE_TIPS[1:], _tip("group", "as far as the data tell")]
    good = f"(datum.group == '{FIRST}' || datum.group == '{MAYBE}')"
    dash = {"condition": {"test": f"datum.group == '{UNTESTED}'", "value": [3, 3]}, "value": [1, 0]}
    points = _ROW | _marked(1) | {"x": _VALUE, "color": _COLOUR, "shape": _SHAPE, "tooltip": tips}
    interval = {"x": _LOW, "x2": {"field": "ci_high"}, "color": _COLOUR, "strokeDash": dash}
    rule = {"type": "rule", "strokeWidth": 2.5, "aria": False}
    hollow = {"type": "point", "filled": True, "size": 60, "fill": "{ground}", "strokeWidth": 1.8}
    label = {"x": {"value": "width"}, "text": {"field": "label"}}
    said = "{=narrow} ? '' : datum.score + ', layer ' + datum.layer + '/' + datum.depth + ' ' + datum.pooling"
    layers = [
        _floor("x"),
        _plotted(rule, _ROW | _marked(0.55) | interval, MEASURED),
        _plotted({"type": "point", "filled": True, "size": 80}, points, good),
        _plotted(hollow, points | {"stroke": _COLOUR}, MEASURED, f"!{good}"),
        _plotted(_name(8), _ROW | _marked(1, faint=0.6) | label, MEASURED),
        _others(_ROW | {"x": _VALUE}),
    ]
    return _chart(layers, "{height}", _calculate("label", said))


_ACROSS: Spec = {"field": "x", "type": "quantitative", "title": "{depth}", "axis": {"tickMinStep": "{tick}"}}
_ACROSS |= {"scale": {"zero": False, "nice": False, "padding": 12}}
_PLACE = _calculate("x", "datum[{=across}]")


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

    Rows whose ``place`` is ``published`` are published numbers.
    If there are at most `BANDS` lines, each has an interval band, and so has the highlighted one.
    """
    places = {"x": _ACROSS, "y": _VALUE}
    measured = {"transform": [{"filter": MEASURED}, _joined(lines=("distinct", "backbone"))]}
    few = f"(mark == '' && datum.lines <= {BANDS})"
    lit = {"test": f"datum.backbone == mark || {few}", "value": 0.16}
    band = _BAND | {"encoding": _BAND["encoding"] | {"x": _ACROSS, "opacity": {"condition": lit, "value": 0}}}
    cursor: Spec = {"data": {"values": [{}]}}
    cursor |= {"transform": [_calculate("x", "at"), {"filter": "isValid(datum.x)"}]}
    rule = {"type": "rule", "color": INK, "opacity": 0.5, "aria": False}
    layers = [
        _floor("y"),
        measured | {"layer": [band, *_lines(places)]},
        _others(places),
        cursor | _plotted(rule, {"x": _ACROSS}),
        *_names({"x": {"value": "width"}}, LINES),
    ]
    return _chart(layers, LINES, {"filter": "isValid(datum.layer)"}, _PLACE)


def panels() -> Spec:
    """Scores of every layer in one task with intervals, in a panel for each backbone.

    The grey line is that of the backbone with the highest score.
    """
    places = {"x": _ACROSS, "y": _VALUE}
    band = _BAND | {"encoding": _BAND["encoding"] | {"x": _ACROSS, "opacity": {"value": 0.2}}}
    line, points, _ = _lines(places)
    tips = {"encoding": points["encoding"] | {"tooltip": _SCORE_TIPS}}
    highest = [_joined(["backbone"], top=("max", "value")), _joined(most=("max", "value"))]
    first: Spec = {"data": {"values": "{rows}"}}
    first |= {"transform": [_PLACE, *highest, {"filter": "datum.top == datum.most"}]}
    field = {"field": "backbone", "type": "nominal", "title": None, "sort": "{order}"}
    signs = "regexp('(.{1,' + {letters} + '}[-_/:. ]|.{' + {letters} + '})(?=.)', 'g')"
    lines = f"split(replace(datum.value, {signs}, '$1\\n'), '\\n')"  # a name is read to its end
    header = {"labelAnchor": "start", "labelFontWeight": 600, "labelLimit": 0}
    header |= {"labelExpr": f"length(datum.value) > {{letters}} ? {lines} : datum.value"}
    facet = {"facet": field | {"header": header}}
    layers = [_floor("y"), first | _plotted(GREY, places), {"layer": [band, line, points | tips]}]
    inner = {"width": "{width}", "height": 110, "layer": layers}
    return _open(_PLACE) | facet | {"columns": "{columns}", "spec": inner}


# after what is advised, its ``own`` lines, so many of the highest lines of a panel have names
_WHICH_NAMED = [
    _joined(["column", "backbone"], peak=("max", "value")),
    _window("nth", "dense_rank", "", [_HIGHEST | {"field": name} for name in ("own", "peak")], ["column"]),
    _calculate("named", "{=beside} && datum.nth <= {names} + 1 && (!datum.own || {names} > 1)"),
]


def _names_beside(colour: str) -> Spec:
    """The names of ``named`` lines beside their panel, at their ends; that of what is advised in a colour."""
    name = _name(4) | {"fontSize": 9.5, "limit": "{beside}", "baseline": "middle"}
    label = {"x": {"value": "width"}, "y": _VALUE | {"field": "end"}, "text": {"field": "backbone"}}
    label["color"] = {"condition": {"test": "datum.own", "value": colour}, "value": INK}
    ends = {"from": "ci_low", "to": "ci_high"}  # of the panel, whose band may reach beyond all lines
    spaced = [_calculate(end, f"isValid(datum.{ci}) ? datum.{ci} : datum.value") for end, ci in ends.items()]
    spaced += spaced_labels("{panel_height}", ["column"], *ends)
    return {"transform": [{"filter": "datum.named"}, *spaced], **_plotted(name, label)}


def advised_curves() -> Spec:
    """Curves over layers, a panel a task; what is advised is blue with a ring at its layer, all others grey.

    ``role`` says which rows are of the advised backbone, in the advised vectors. Where there is room beside
    panels, the highest of the others have names where they end, and in a single panel so has what is advised.
    """
    bare = {"title": "{panel_across}", "axis": {"tickMinStep": "{tick}", "tickCount": 4}}
    places = {"x": _ACROSS | bare, "y": _VALUE | {"title": "{panel_score}", "axis": {"tickCount": 3}}}
    band = places | {"y": places["y"] | {"field": "ci_low"}, "y2": {"field": "ci_high"}}
    ring = {"type": "point", "size": 230, "strokeWidth": 1.6, "aria": False}
    faint: Spec = {"opacity": {"condition": {"test": "datum.named", "value": 1}, "value": 0.45}}
    tips = [_tip("backbone"), _tip("where", "layer"), _tip("score", "score"), *_SCORE_TIPS[3:]]
    marks: list[tuple[Spec, Spec, str]] = [
        ({"type": "area", "opacity": 0.2, "aria": False}, band, "datum.own"),
        ({"type": "line", "strokeWidth": 1.8, "aria": False}, places, "datum.own"),
        ({"type": "point", "filled": True, "size": 22}, places | {"tooltip": tips}, "datum.own"),
        (ring, places, "datum.role == 'advised'"),
    ]
    blue = {"color": "var(--accent, #0072b2)"}
    layers = [_plotted(GREY, places | faint | {"detail": {"field": "backbone"}}, "!datum.own")]
    layers += [_plotted(mark | blue, encoding, only) for mark, encoding, only in marks]
    layers.append(_names_beside(blue["color"]))
    header = {"labelAnchor": "start", "labelFontWeight": 600, "labelFontSize": 11, "labelLimit": 0}
    header |= {"labelExpr": "{=advice}[datum.value].lines", "labelPadding": 4}
    field = {"field": "column", "type": "nominal", "title": None, "sort": "{advised_tasks}", "header": header}
    inner = {"width": "{width}", "height": "{panel_height}", "layer": layers}
    apart = {"scale": {"y": "independent"}, "axis": {"x": "independent"}}
    transforms = [
        _calculate("advice", "{=advice}[datum.column]"),
        _calculate("own", "datum.backbone == datum.advice.backbone"),
        {"filter": "datum.measure == datum.column"},
        {"filter": "datum.vectors == (datum.own ? datum.advice.vectors : '')"},
        _calculate("role", "datum.own ? datum.layer == datum.advice.layer ? 'advised' : 'own' : 'other'"),
        *_WHICH_NAMED,
    ]
    spec = {"facet": field, "spec": inner, "columns": "{columns}", "spacing": 10, "resolve": apart}
    return _open(_PLACE, *transforms) | spec


def depth_map() -> Spec:
    """The scores of all layers of many backbones in a task as colours over relative depth."""
    start = _calculate("from", "(datum.layer - 1) / datum.depth")
    end = _calculate("to", "datum.layer / datum.depth")
    share: Spec = {"field": "from", "type": "quantitative", "title": "share of the depth"}
    share |= {"scale": {"domain": [0, 1], "nice": False}}
    share |= {"axis": {"grid": False, "format": ".2~f", "tickCount": 5}}
    across = {"x": share, "x2": {"field": "to"}}
    colour = {"color": _ramp("value", "{axis}"), "tooltip": _SCORE_TIPS}
    cells = _plotted(CELL, _ROW | across | colour)
    return _chart([cells, _plotted(FRAME, _ROW | across, IS_BEST)], "{height}", start, end)


def task_map() -> Spec:
    """Scores of one backbone's layers by task; ``share`` is in percent."""
    axis = {"labelAngle": 0, "labelOverlap": "parity", "labelSeparation": 4}
    places = {
        "x": {"field": "layer", "type": "ordinal", "title": "layer", "axis": axis},
        "y": {"field": "column", "type": "nominal", "sort": "{tasks}", "title": None},
    }
    tips = [_tip("column", "task"), _tip("where", "layer"), _tip("score", "score")]
    tips += [_tip("sure", "95 % interval"), _tip("share", "share of the best layer's, %", ".1f")]
    colour = {"color": _ramp("share", "% of the best layer's score"), "tooltip": tips}
    ink = {"condition": {"test": "datum.dark", "value": "#ffffff"}, "value": "#101418"}
    text = {"type": "text", "fontSize": 10, "aria": False}
    layers = [
        _plotted(CELL, places | colour),
        _plotted(FRAME, places, IS_BEST),
        _plotted(text, places | {"text": {"field": "text"}, "color": ink}),
    ]
    transforms = [
        {"filter": "datum.measure == datum.column"},
        _joined(["column"], most=("max", "value")),
        _calculate("share", "datum.most > 0 ? 100 * datum.value / datum.most : 0"),
        _joined(least=("min", "share")),
        _calculate("dark", f"datum.share < datum.least + {DARK} * (100 - datum.least)"),
        _calculate("text", "{=narrow} ? '' : format(datum.value, '.0f')"),
    ]
    return _chart(layers, "{height}", *transforms)


def tradeoff() -> Spec:
    """Scores over a cost: a point for each depth at which a backbone may be cut, and the Pareto front.

    ``front`` says whether none is better at the same or less cost.
    """
    across: Spec = {"field": "cost", "type": "quantitative", "title": "{cost_title}"}
    across |= {"scale": "{cost_scale}", "axis": {"format": ".3~r", "tickCount": 6}}
    tips = [*_SCORE_TIPS, {"field": "cost", "title": "{cost_title}", "format": ".3~r"}]
    places = {"x": across, "y": _VALUE}
    grey = {"type": "point", "filled": True, "size": 22, "color": "#8c959f", "opacity": 0.45}
    thin = {"type": "line", "strokeWidth": 1, "aria": False}
    line = {"color": _COLOUR, "order": {"field": "layer"}}
    points = {"color": _COLOUR, "shape": _SHAPE, "tooltip": tips}
    stairs = {"type": "line", "interpolate": "step-after", "color": INK, "strokeWidth": 1.4, "aria": False}
    ring = {"type": "point", "size": 110, "color": INK, "strokeWidth": 1.6, "filled": False}
    picked = [
        _plotted(thin, places | _marked(0.5) | line),
        _plotted({"type": "point", "filled": True, "size": 34}, places | _marked(0.9) | points),
        *_names({"x": across}, LINES, ["near"]),
    ]
    layers = [
        _plotted(grey, places | {"tooltip": tips}, f"!({IS_PICKED})"),
        {"transform": [{"filter": IS_PICKED}], "layer": picked},
        _plotted(stairs, places, "datum.front"),
        _plotted(ring, places | {"tooltip": tips}, "datum.front"),
    ]
    cheapest = [{"field": "cost"}, _HIGHEST]
    transforms = [
        _calculate("cost", "datum[{=cost}]"),
        {"filter": "isValid(datum.cost)"},
        _window("reached", "max", "value", cheapest),
        _window("before", "lag", "reached", cheapest),
        _calculate("front", "!isValid(datum.before) || datum.value > datum.before"),
        _joined(least=("min", "cost"), most=("max", "cost")),
        _calculate("across", "{=log} ? log(datum.cost / datum.least) : datum.cost - datum.least"),
        _joined(width=("max", "across")),
    ]
    return _chart(layers, LINES, *transforms)


def alike() -> Spec:
    """CKA of every layer of one backbone, ``row``, with every layer of another, ``column``.

    A line runs through the most similar column of each row if they are two. Each two are stored once, and
    turned if the reader wants the second one's layers as rows.
    """
    axis = {"labelOverlap": "greedy", "labelFontSize": "{font_size}", "title": "layer of {second}"}
    places = {
        "x": {"field": "column", "type": "ordinal", "axis": axis | {"labelAngle": "{angle}"}},
        "y": {"field": "row", "type": "ordinal", "axis": axis | {"title": "layer of {first}"}},
    }
    places["x"]["sort"] = {"field": "column_at", "op": "min"}
    places["y"]["sort"] = {"field": "row_at", "op": "min", "order": "descending"}
    tips = [_tip("row", "row: layer of {first}"), _tip("column", "column: layer of {second}")]
    tips.append(_tip("value", "CKA", ".3f"))
    colour = _ramp("value", "CKA") | {"scale": {"domain": [0, 1], "clamp": True}}
    cells = _plotted(CELL, places | {"color": colour, "tooltip": tips})
    nearest = ("datum.first != datum.second", "datum.column_at == datum.most_similar")
    along, lines = places | {"order": {"field": "row_at"}}, list[Spec]()
    for ink, width in (("#000000", 3.2), ("#ffffff", 1.4)):
        line = {"type": "line", "color": ink, "strokeWidth": width, "aria": False}
        lines.append(_plotted(line, along, *nearest))
    transforms: list[Spec] = [
        _calculate("turned", "datum.first != {=first}"),
        {"filter": "(datum.turned ? datum.second : datum.first) == {=first}"},
        {"filter": "(datum.turned ? datum.first : datum.second) == {=second}"},
        {"flatten": ["numbers"], "as": ["value"]},
        {"window": [{"op": "row_number", "as": "index"}]},
        _calculate("places", "[floor((datum.index - 1) / datum.columns), (datum.index - 1) % datum.columns]"),
        _calculate("row_at", "datum.places[datum.turned ? 1 : 0]"),
        _calculate("column_at", "datum.places[datum.turned ? 0 : 1]"),
        _calculate("row", "(datum.turned ? datum.second_layers : datum.first_layers)[datum.row_at]"),
        _calculate("column", "(datum.turned ? datum.first_layers : datum.second_layers)[datum.column_at]"),
        _calculate("most_similar", "(datum.turned ? datum.turned_nearest : datum.nearest)[datum.row_at]"),
        _calculate("first", "{=first}"),
        _calculate("second", "{=second}"),
        {"filter": "isValid(datum.value)"},
    ]
    size = {"width": {"step": "{cell}"}, "height": {"step": "{cell}"}}
    return _open(*transforms) | size | {"layer": [cells, *lines]}
