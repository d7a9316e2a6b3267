"""The report's charts as files, in a style fit for papers: small, on white, in one type size."""

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from layerboard.leaderboards.charts import engine
from layerboard.leaderboards.charts.style import SCHEMA, Spec, looks
from layerboard.leaderboards.display import score_text
from layerboard.leaderboards.report import charts
from layerboard.leaderboards.report.cka import BlockCka
from layerboard.leaderboards.report.content import Report
from layerboard.leaderboards.scores.costs import pareto_front
from layerboard.zoo.atomic import write_whole

FORMATS = ("svg", "pdf")

WIDTH = 420  # width of a figure's plot, in points
SERIES = 8  # backbones that one figure of lines shows at most: the best of the task
LOOK = {"ink": "#1b2026", "font": "Helvetica, Arial, sans-serif"}

Row = dict[str, Any]  # also the words that fill the open places of a chart


def write_figures(report: Report, folder: Path, formats: Sequence[str]) -> list[Path]:
    """Write every figure of one suite in some of the `FORMATS`; gives the files."""
    written: list[Path] = []
    for name, spec in figures_of(report):
        plain = re.sub(r"[^\w.-]+", "-", name)[:80].strip(".-")
        for ending in formats:
            path = folder / report.board.page / f"{plain}.{ending}"
            if path in written:
                path = path.with_stem(f"{plain}-{len(written)}")
            write_whole(path, engine.drawn(spec, ending))
            written.append(path)
    return written


def figures_of(report: Report) -> Iterator[tuple[str, Spec]]:
    """The name and the whole specification of each figure: for each task, for each backbone, for each CKA."""
    for column in report.columns.to_dict("records"):
        name = str(column["column"])
        best, layers = (frame[frame["column"] == name] for frame in (report.best, report.layers))
        if best.empty:
            continue
        words = _words(column, best)
        yield f"best.{name}", _ranking(report, best, words)
        yield f"layers.{name}", _curves(report, layers, best, words)
        yield f"depth.{name}", _drawn("depth_map", _rows(layers), words)
        for axis, title in report.axes:
            yield f"cost-{axis}.{name}", _tradeoff(report, axis, layers, best, words | {"cost": title})
    for backbone, layers in report.layers.groupby("backbone", sort=False):
        yield f"tasks.{backbone}", _tasks(report, layers)
    own = [matrix for matrix in report.cka[0] if matrix.first == matrix.second]
    for table in dict.fromkeys(matrix.table for matrix in own):
        yield f"cka.{table}", _alike([matrix for matrix in own if matrix.table == table])


def _rows(frame: pd.DataFrame) -> list[Row]:
    """A frame as rows in which None stands where there is no number."""
    return frame.astype(object).where(frame.notna(), None).to_dict("records")  # type: ignore[return-value]


def _words(column: Mapping[Hashable, Any], best: pd.DataFrame) -> Row:
    floor = float(column["floor"])
    return {
        "metric": column["metric"],
        "axis": f"{column['task']} {column['metric']}, %",
        "floor": [] if isnan(floor) else [{"floor": floor}],
        "order": [str(name) for name in best["backbone"]],
    }


def _drawn(view: str, rows: list[Row], words: Row, width: object = WIDTH) -> Spec:
    """A chart with its rows, of a fixed size, on white."""
    height = charts.height(view, len(words.get("order", ())))
    spec: Spec = charts.filled(charts.all_charts()[view], {"height": height} | LOOK | words)
    style = spec["config"] | {"background": "#ffffff", "padding": 8}
    return spec | {"data": {"values": rows}, "width": width, "autosize": {"type": "pad"}, "config": style}


def _others(report: Report, best: pd.DataFrame, key: str) -> pd.DataFrame:
    """Numbers of others of a column, marked as such."""
    rows: pd.DataFrame = report.published[report.published["column"] == best["column"].iloc[0]]
    return rows.assign(**{key: "published"})


def _ranking(report: Report, best: pd.DataFrame, words: Row) -> Spec:
    spreads = (best["ci_high"] - best["ci_low"]) / 2
    places = zip(best["value"], spreads, best["layer"], best["depth"], strict=True)
    labels = [f"{score_text(value, spread)}, layer {layer}/{depth}" for value, spread, layer, depth in places]
    rows = _rows(best.assign(label=labels)) + _rows(_others(report, best, "group"))
    groups = {name: tone for name, tone in charts.GROUPS.items() if name in set(best["group"])}
    return _drawn("ranking", rows, words | {"groups": [*groups], "tones": [*groups.values()]})


def _series(names: Sequence[str], report: Report) -> Row:
    series = looks(names, report.labels).values()
    return {
        "backbones": [*names],
        "colours": [look.color for look in series],
        "shapes": [look.shape for look in series],
        "dashes": [look.strokeDash for look in series],
        "columns": max(1, WIDTH // (46 + 7 * max(map(len, names), default=0))),
    }


def _curves(report: Report, layers: pd.DataFrame, best: pd.DataFrame, words: Row) -> Spec:
    names = [str(name) for name in best["backbone"]][:SERIES]
    drawn, others = layers[layers["backbone"].isin(names)], _others(report, best, "place")
    others = others[others["backbone"].isin(names) & others["layer"].notna()]
    alike = len(set(drawn["depth"])) <= 1
    rows = [
        row
        for part in (drawn, others)
        for row in _rows(part.assign(x=part["layer"] / (1 if alike else part["depth"])))
    ]
    depth = {"depth": "layer (block)" if alike else "share of the depth", "step": 1 if alike else 0.1}
    return _drawn("curves", rows, words | _series(names, report) | depth) | {"height": 260}


def _tradeoff(report: Report, name: str, layers: pd.DataFrame, best: pd.DataFrame, words: Row) -> Spec:
    names = [str(name) for name in best["backbone"]][:SERIES]
    costs = report.costs[["backbone", "layer", name]]
    rows = layers.merge(costs, on=["backbone", "layer"]).dropna(subset=[name])
    rows = rows.assign(cost=rows[name] / (1e6 if name == "parameters" else 1))
    ahead = pareto_front(rows, "cost")
    wide = bool((rows["cost"] > 0).all()) and rows["cost"].max() > 20 * rows["cost"].min()
    labels = _front_labels(ahead, np.log(rows["cost"]) if wide else rows["cost"])
    rows = rows.assign(
        shown=rows["backbone"].isin(names),
        front=rows.index.isin(ahead.index),
        label=[labels.get(index, "") for index in rows.index],
    )
    scale = {"nice": False, "padding": 14} | ({"type": "log"} if wide else {"zero": False})
    words |= _series(names, report) | {"scale": scale}
    return _drawn("tradeoff", _rows(rows), words) | {"height": 260}


def _front_labels(ahead: pd.DataFrame, places: "pd.Series[float]") -> dict[Any, str]:
    """Names at points of a front, given all places along the axis: where the backbone changes, and apart."""
    labels, before, last = dict[Any, str](), "", -np.inf
    width = float(places.max() - places.min()) or 1.0
    for point, backbone, layer in zip(ahead.index, ahead["backbone"], ahead["layer"], strict=True):
        if backbone != before and (places[point] - last) / width >= charts.APART:
            labels[point], last = f"{backbone}, {layer}", places[point]
        before = backbone
    return labels


def _tasks(report: Report, layers: pd.DataFrame) -> Spec:
    most = layers.groupby("column")["value"].transform("max")
    share = np.where(most > 0, 100 * layers["value"] / most, 0.0)
    least = share.min()
    text = [f"{value:.0f}" for value in layers["value"]]
    rows = _rows(layers.assign(share=share, text=text, dark=share < least + 0.62 * (100 - least)))
    order = [name for name in report.columns["column"] if name in set(layers["column"])]
    return _drawn("task_map", rows, {"order": order}, max(WIDTH, 26 * int(layers["layer"].max())))


def _alike(matrices: Sequence[BlockCka]) -> Spec:
    panels = []
    for matrix in matrices:
        rows = [
            {"row": row + 1, "column": column + 1, "value": float(value)}
            for (row, column), value in np.ndenumerate(matrix.values)
            if not isnan(value)
        ]
        spec = _drawn("alike", rows, {"first": "", "second": ""}, {"step": 9})
        style, _, _ = (spec.pop(name) for name in ("config", "$schema", "autosize"))
        panels.append(spec | {"height": {"step": 9}, "title": matrix.first})
    axis = style["axis"] | {"labelFontSize": 8, "labelOverlap": "greedy", "labelSeparation": 4}
    return {"$schema": SCHEMA, "concat": panels, "columns": 4, "config": style | {"axis": axis}}
