"""The report's charts as files, in a style fit for papers: small, on white, in one type size."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from leaderboards.charts import engine
from leaderboards.charts.style import SCHEMA, Spec, looks
from leaderboards.display import page_name, score_text
from leaderboards.report import charts, parts
from leaderboards.report.cka import BlockCka
from leaderboards.report.content import Content
from leaderboards.report.frames import ReportFrames
from leaderboards.scores.costs import pareto_front
from tasks.blocks import slug
from zoo.atomic import whole_file

FORMATS = ("svg", "pdf")

WIDTH = 420  # width of a figure's plot, in points
SERIES = 8  # backbones that one figure of lines shows at most: the best of the task
INK = "#1b2026"
FONT = "Helvetica, Arial, sans-serif"


def write_figures(content: Content, folder: Path, formats: Sequence[str]) -> list[Path]:
    """Write every figure of one suite; gives the files.

    Args:
        content: What is said of the suite.
        folder: Made where it does not exist.
        formats: Of `FORMATS`.
    """
    written = []
    for name, spec in figures_of(content):
        for ending in formats:
            path = folder / page_name(content.suite) / f"{slug(name.replace(' ', '-'))}.{ending}"
            with whole_file(path) as temporary:
                if ending == "svg":
                    temporary.write_text(engine.svg(spec), encoding="utf-8", newline="\n")
                else:
                    temporary.write_bytes(engine.pdf(spec))
            written.append(path)
    return written


def figures_of(content: Content) -> Iterator[tuple[str, Spec]]:
    """The name and the whole specification of each figure: for each task, for each backbone, for each CKA."""
    board, costs = content.frames, content.costs
    for column in board.columns.to_dict("records"):
        name = str(column["column"])
        best, layers = (frame[frame["column"] == name] for frame in (board.best, board.layers))
        if best.empty:
            continue
        words = _words(column, best)
        yield f"best.{name}", _ranking(board, best, words)
        yield f"layers.{name}", _curves(content, layers, best, words)
        yield f"depth.{name}", _map("depth_map", layers, words)
        for axis, title in costs.axes:
            yield f"cost-{axis}.{name}", _tradeoff(content, (axis, title), layers, best, words)
    for backbone, layers in board.layers.groupby("backbone", sort=False):
        yield f"tasks.{backbone}", _tasks(board, layers)
    for table, matrices in _own(content.cka.matrices).items():
        yield f"cka.{table}", _alike(matrices)


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """A frame as rows in which None stands where there is no number."""
    return [
        {str(key): None if isinstance(value, float) and isnan(value) else value for key, value in row.items()}
        for row in frame.to_dict("records")
    ]


def _words(column: Mapping[Hashable, Any], best: pd.DataFrame) -> dict[str, Any]:
    """What fills the open places of all charts of a task."""
    floor = float(column["floor"])
    return {
        "metric": column["metric"],
        "axis": f"{column['task']} {column['metric']}, %",
        "floor": [] if isnan(floor) else [{"floor": floor}],
        "order": [str(name) for name in best["backbone"]],
        "ink": INK,
        "font": FONT,
    }


def _drawn(view: str, rows: list[dict[str, Any]], words: dict[str, Any], width: object = WIDTH) -> Spec:
    """A chart with its rows, of a fixed size, on white."""
    height = parts.height(view, len(words.get("order", ())))
    spec: Spec = parts.filled(charts.all_charts()[view], {"height": height, "ink": INK, "font": FONT} | words)
    style = spec["config"] | {"background": "#ffffff", "padding": 8}
    return spec | {
        "data": {"values": rows},
        "width": width,
        "autosize": {"type": "pad"},
        "config": style,
    }


def _others(board: ReportFrames, column: str, key: str) -> list[dict[str, Any]]:
    """Numbers of others, marked as such."""
    rows = board.published[board.published["column"] == column]
    return rows_of(rows.assign(**{key: "published"}))


def _ranking(board: ReportFrames, best: pd.DataFrame, words: dict[str, Any]) -> Spec:
    """Who may be the best."""
    spreads = (best["ci_high"] - best["ci_low"]) / 2
    places = zip(best["value"], spreads, best["layer"], best["depth"], strict=True)
    labels = [f"{score_text(value, spread)}, layer {layer}/{depth}" for value, spread, layer, depth in places]
    rows = rows_of(best.assign(label=labels)) + _others(board, str(best["column"].iloc[0]), "group")
    groups = [name for name in parts.GROUPS if name in set(best["group"])]
    return _drawn(
        "ranking", rows, words | {"groups": groups, "tones": [parts.GROUPS[name] for name in groups]}
    )


def _series(names: Sequence[str], content: Content) -> dict[str, Any]:
    """Colours, shapes and dashes of backbones."""
    series = looks(names, content.labels).values()
    return {
        "backbones": [*names],
        "colours": [look.color for look in series],
        "shapes": [look.shape for look in series],
        "dashes": [look.strokeDash for look in series],
        "columns": max(1, WIDTH // (46 + 7 * max(map(len, names), default=0))),
    }


def _curves(content: Content, layers: pd.DataFrame, best: pd.DataFrame, words: dict[str, Any]) -> Spec:
    """The lines of the best backbones of a task."""
    names = [str(name) for name in best["backbone"]][:SERIES]
    rows_of_backbones = layers[layers["backbone"].isin(names)]
    alike = len(set(rows_of_backbones["depth"])) <= 1
    others = pd.DataFrame(_others(content.frames, str(best["column"].iloc[0]), "place"))
    if len(others):
        others = others[others["backbone"].isin(names) & others["layer"].notna()]
    both = [
        part.assign(x=part["layer"] / (1 if alike else part["depth"]))
        for part in (rows_of_backbones, others)
        if len(part)
    ]
    rows = [row for part in both for row in rows_of(part)]
    depth = {"depth": "layer (block)" if alike else "share of the depth", "step": 1 if alike else 0.1}
    return _drawn("curves", rows, words | _series(names, content) | depth) | {"height": 260}


def _map(view: str, layers: pd.DataFrame, words: dict[str, Any]) -> Spec:
    """A heat map of one task."""
    return _drawn(view, rows_of(layers), words)


def _tradeoff(
    content: Content, axis: tuple[str, str], layers: pd.DataFrame, best: pd.DataFrame, words: dict[str, Any]
) -> Spec:
    """Quality and one cost; the best backbones have colours."""
    names = [str(name) for name in best["backbone"]][:SERIES]
    name, title = axis
    costs = content.costs.layers[["backbone", "layer", name]]
    rows = layers.merge(costs, on=["backbone", "layer"]).dropna(subset=[name])
    rows = rows.assign(cost=rows[name] / (1e6 if name == "parameters" else 1))
    ahead = pareto_front(rows, "cost")
    indices = set(ahead.index)
    wide = bool((rows["cost"] > 0).all()) and rows["cost"].max() > 20 * rows["cost"].min()
    labels = _front_labels(ahead, np.log(rows["cost"]) if wide else rows["cost"])
    rows = rows.assign(
        shown=rows["backbone"].isin(names),
        front=[index in indices for index in rows.index],
        label=[labels.get(index, "") for index in rows.index],
    )
    scale = {"nice": False, "padding": 14} | ({"type": "log"} if wide else {"zero": False})
    said = words | _series(names, content) | {"cost": title, "scale": scale}
    return _drawn("tradeoff", rows_of(rows), said) | {"height": 260}


def _front_labels(ahead: pd.DataFrame, places: "pd.Series[float]") -> dict[Any, str]:
    """Names at the points of a front, as far as they have room: where the backbone changes, and apart.

    Args:
        ahead: The points of the front in order.
        places: Where every point of the chart lies on the axis of costs, by the same index.
    """
    labels, before, last = dict[Any, str](), "", -np.inf
    width = float(places.max() - places.min()) or 1.0
    for point, backbone, layer in zip(ahead.index, ahead["backbone"], ahead["layer"], strict=True):
        if backbone != before and (places[point] - last) / width >= parts.APART:
            labels[point], last = f"{backbone}, {layer}", places[point]
        before = backbone
    return labels


def _tasks(board: ReportFrames, layers: pd.DataFrame) -> Spec:
    """One backbone in every task."""
    most = layers.groupby("column")["value"].transform("max")
    share = np.where(most > 0, 100 * layers["value"] / most, 0.0)
    least = share.min()
    rows = layers.assign(
        share=share,
        text=[f"{value:.0f}" for value in layers["value"]],
        dark=share < least + 0.62 * (100 - least),
    )
    order = [name for name in board.columns["column"] if name in set(layers["column"])]
    return _drawn("task_map", rows_of(rows), {"order": order}, max(WIDTH, 26 * int(layers["layer"].max())))


def _own(matrices: Sequence[BlockCka]) -> dict[str, list[BlockCka]]:
    """The matrices of backbones with themselves, by table."""
    by_table: dict[str, list[BlockCka]] = {}
    for matrix in matrices:
        if matrix.first == matrix.second:
            by_table.setdefault(matrix.table, []).append(matrix)
    return by_table


def _alike(matrices: Sequence[BlockCka]) -> Spec:
    """Matrices side by side."""
    panels = []
    for matrix in matrices:
        rows = [
            {"row": row + 1, "column": column + 1, "value": float(value)}
            for (row, column), value in np.ndenumerate(matrix.values)
            if not isnan(value)
        ]
        spec = _drawn("alike", rows, {"first": "", "second": ""}, {"step": 9})
        style = spec.pop("config")
        panels.append(
            {key: value for key, value in spec.items() if key not in ("$schema", "autosize")}
            | {"height": {"step": 9}, "title": matrix.first}
        )
    few = style | {
        "axis": style["axis"] | {"labelFontSize": 8, "labelOverlap": "greedy", "labelSeparation": 4}
    }
    return {"$schema": SCHEMA, "concat": panels, "columns": 4, "config": few}
