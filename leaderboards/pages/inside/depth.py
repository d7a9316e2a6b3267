"""Numbers over depth: a line a backbone, or a panel a backbone or a metric."""

from collections.abc import Mapping

import pandas as pd

from leaderboards.choices.selection import BoardBackbone
from leaderboards.pages.inside.evidence import Evidence, by_layer, shown
from leaderboards.pages.layers import depth_axis
from tasks.blocks import Plot

SERIES = ["series", "x", "y"]
PANELS = ["panel", *SERIES]

HEADS = {"one head": 0, "mean over heads": -1}


def depth_lines(evidence: Evidence, rows: pd.DataFrame, title: str, y: str, what: str) -> Plot:
    """The numbers of every layer, a line a backbone.

    Args:
        evidence: What the rows are of.
        rows: At most one a backbone and layer.
        title: What is shown, without the name of the analysis.
        y: Name of the vertical axis.
        what: Last part of the name of the figure's file.
    """
    axis, points = _lines(rows)
    frame = pd.DataFrame(points, columns=SERIES)
    return Plot(frame, "lines", evidence.title(title), axis, y, name=evidence.name(what))


def depth_facets(
    evidence: Evidence, panels: Mapping[str, pd.DataFrame], title: str, y: str, what: str
) -> Plot:
    """The same for several metrics or views, each in a panel with a vertical scale of its own."""
    every = pd.concat([rows for rows in panels.values() if len(rows)] or [evidence.rows[:0]])
    axis, scale = depth_axis(shown(every))
    points = [
        (panel, *point) for panel, rows in panels.items() for point in _points(rows, shown(rows), scale)
    ]
    frame = pd.DataFrame(points, columns=PANELS)
    order = tuple(one.label for one in evidence.backbones)
    title, name = evidence.title(title), evidence.name(what)
    return Plot(frame, "lines", title, axis, y, shared=False, name=name, order=order)


def backbone_facets(
    evidence: Evidence, series: Mapping[str, pd.DataFrame], title: str, y: str, what: str
) -> Plot:
    """Several numbers of every layer, a panel a backbone, all with one vertical scale."""
    every = pd.concat([rows for rows in series.values() if len(rows)] or [evidence.rows[:0]])
    points = [
        (one.label, name, layer, value)
        for one in shown(every)
        for name, rows in series.items()
        for layer, value in by_layer(rows[rows["backbone"] == one.name])
    ]
    frame = pd.DataFrame(points, columns=PANELS)
    title, name = evidence.title(title), evidence.name(what)
    return Plot(frame, "lines", title, "block", y, name=name, order=tuple(series))


def head_facets(evidence: Evidence, metric: str, what: str, **where: str | int) -> Plot | None:
    """A point a head over depth, and their mean, a panel a backbone; None without numbers of heads."""
    heads = evidence.of_heads(metric, **where)
    if heads.empty:
        return None
    series = {"one head": heads, "mean over heads": evidence.select(metric, **where)}
    points = [
        (one.label, name, layer, value)
        for one in shown(heads)
        for name, rows in series.items()
        for layer, value in by_layer(rows[rows["backbone"] == one.name])
    ]
    frame = pd.DataFrame(points, columns=PANELS)
    title = evidence.title("Every head")
    return Plot(frame, "points", title, "block", metric, name=evidence.name(what))


def _lines(rows: pd.DataFrame) -> tuple[str, list[tuple[str, float, float]]]:
    """Name of the axis of blocks, and series, place and number of some rows."""
    axis, scale = depth_axis(shown(rows))
    return axis, _points(rows, shown(rows), scale)


def _points(
    rows: pd.DataFrame, backbones: tuple[BoardBackbone, ...], scale: Mapping[str, int]
) -> list[tuple[str, float, float]]:
    """Series, place and number of some rows, backbone by backbone."""
    return [
        (one.label, layer / scale[one.name], value)
        for one in backbones
        for layer, value in by_layer(rows[rows["backbone"] == one.name])
    ]


def views(evidence: Evidence, *metrics: str) -> dict[str, pd.DataFrame]:
    """Rows of metrics by what they look at: taps and poolings are named where there are several."""
    rows = evidence.rows[evidence.rows["metric"].isin(metrics) & (evidence.rows["layer"] >= 0)]
    keys = dict.fromkeys(zip(rows["metric"], rows["tap"], rows["pooling"], strict=True))
    several = [len({key[side] for key in keys}) > 1 for side in range(3)]
    found = {}
    for key in keys:
        name = ", ".join(part for part, named in zip(key, several, strict=True) if named) or key[0]
        found[name] = evidence.select(key[0], tap=key[1], pooling=key[2])
    return found
