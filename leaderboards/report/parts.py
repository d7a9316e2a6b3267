"""What the report's charts share: marks, scales, colours, sizes, and the places in them that are open.

An open place is a string ``{name}``; one that is the whole string takes whatever is given, as lists.
"""

import re
from collections.abc import Mapping
from typing import Any

from leaderboards.charts.style import SCHEMA, Spec, config
from leaderboards.report.frames import FIRST, MAYBE, UNTESTED, WORSE

ROWS = "rows"  # name of the data that a chart draws
GROUPS = {FIRST: "#0072b2", MAYBE: "#56b4e9", WORSE: "#8c959f", UNTESTED: "#e69f00"}  # of backbones
ACCENT = "#d55e00"  # colour of fronts, floors and numbers of others

# height of a row in pixels, of charts that have rows: of a few, and of more than `FEW`
STEPS = {"ranking": (24, 14), "depth_map": (18, 12), "task_map": (26, 20)}
FEW = 40

APART = 0.1  # share of the axis of costs by which names at a front are apart at least
INK = "{ink}"  # colour of text and axes, that of the paper or of the reader's theme


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
    few, many = STEPS.get(view, (0, 0))
    return max(2, rows) * (few if rows <= FEW else many)


def chart(layers: list[Spec], height: object, transform: list[Spec] | None = None) -> Spec:
    """A chart of layers over the open rows, as wide as its place."""
    return {
        "$schema": SCHEMA,
        "data": {"name": ROWS},
        "width": "container",
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "transform": transform or [],
        "layer": layers,
        "config": config(INK, "{font}"),
    }


def ramp(field: str, title: str) -> Spec:
    """Colours of a heat map."""
    legend = {"orient": "top", "gradientLength": 180, "titleLimit": 400}
    return {"field": field, "type": "quantitative", "title": title, "legend": legend}


def floor(side: str) -> Spec:
    """The dashed line of the random floor; none where the open list of numbers is empty."""
    return {
        "data": {"values": "{floor}"},
        "mark": {"type": "rule", "strokeDash": [5, 4], "color": INK, "opacity": 0.6},
        "encoding": {
            side: {"field": "floor", "type": "quantitative"},
            "tooltip": [{"field": "floor", "title": "random floor", "format": ".1f"}],
        },
    }


def text(**changes: object) -> Spec:
    """Small words beside marks."""
    return {"type": "text", "color": INK, "fontSize": 10.5, "opacity": 0.85, "aria": False} | changes


def others(field: str, places: Spec) -> Spec:
    """A diamond for each number of others, whose rows say ``published`` in a field."""
    mark = {"type": "point", "shape": "diamond", "size": 90, "filled": False}
    mark |= {"color": ACCENT, "strokeWidth": 2}
    tips = [
        {"field": "backbone"},
        {"field": "source", "title": "published in"},
        {"field": "value", "title": "{metric}", "format": ".1f"},
        {"field": "verdict"},
    ]
    chosen = {"transform": [{"filter": f"datum.{field} == 'published'"}], "mark": mark}
    return chosen | {"encoding": places | {"tooltip": tips}}
