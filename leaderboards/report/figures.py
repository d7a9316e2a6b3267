"""The report's charts as files, in a style for papers: small, on white, in one font size."""

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from layerboard.leaderboards.blocks.display import plain_name, score_text
from layerboard.leaderboards.board.costs import pareto_front
from layerboard.leaderboards.board.frames import half_widths
from layerboard.leaderboards.charts import engine
from layerboard.leaderboards.charts.style import FONT, SCHEMA, Spec, looks
from layerboard.leaderboards.report import charts
from layerboard.leaderboards.report.content import Report
from layerboard.leaderboards.sections.similarity import BlockCka
from layerboard.zoo.atomic import write_whole

FORMATS = ("svg", "pdf")

WIDTH = 420  # width of a figure's plot, in points
SERIES = 8  # maximum backbones in a figure of lines: the best of the task
HEIGHT = 260  # height of a figure of lines
LOOK = {"ink": "#1b2026", "ground": "#ffffff", "font": FONT, "legend": None}

Row = dict[str, Any]  # also the words that fill placeholders of a chart


def write_figures(report: Report, folder: Path, formats: Sequence[str]) -> list[Path]:
    """Write every figure of one suite in some of the `FORMATS`; returns the files."""
    written: list[Path] = []
    for name, spec in figures_of(report):
        for ending in formats:
            path = folder / report.board.page / f"{name}.{ending}"
            write_whole(path, engine.render_chart(spec, ending))
            written.append(path)
    return written


def figures_of(report: Report) -> Iterator[tuple[str, Spec]]:
    """Name and specification of each figure: for each task, each backbone and each CKA matrix.

    Names consist of letters, digits, dots and hyphens and are unique; they contain no digest, so that those
    of a later run are the same.
    """
    names: Counter[str] = Counter()
    for name, spec in _figures(report):
        plain = re.sub(r"[^\w.-]+", "-", name)[:80].strip(".-")
        names[plain] += 1
        yield plain if names[plain] == 1 else f"{plain}-{names[plain]}", spec


def _figures(report: Report) -> Iterator[tuple[str, Spec]]:
    row, tasks = [], report.columns["task"].value_counts()
    for column in report.columns.to_dict("records"):
        best, layers = (frame[frame["column"] == column["column"]] for frame in (report.best, report.layers))
        if best.empty:
            continue
        words = _words(report, column, best)
        task = str(column["task"])
        task += "" if tasks[task] == 1 else f"-{plain_name(str(column['dataset']))}-{column['protocol']}"
        yield f"{task}-best", _ranking(report, best, words)
        yield f"{task}-layers", _curves(report, layers, best, words)
        yield f"{task}-panels", _panels(layers, words)
        yield f"{task}-depth", _drawn("depth_map", _rows(layers), words)
        for axis, title in report.axes:
            yield f"{task}-cost-{axis}", _tradeoff(report, axis, layers, words | {"cost": title})
        row.append((layers, words))
    if row:
        yield "layers", _row(report, row)
    for backbone, layers in report.layers.groupby("backbone", sort=False):
        yield f"{backbone}-tasks", _tasks(report, layers)
    own = [matrix for matrix in report.cka[0] if matrix.first == matrix.second]
    for table in dict.fromkeys(matrix.table for matrix in own):
        yield f"cka-{table}", _alike([matrix for matrix in own if matrix.table == table])


def _rows(frame: pd.DataFrame) -> list[Row]:
    """A frame as rows, with None for missing numbers."""
    return frame.astype(object).where(frame.notna(), None).to_dict("records")  # type: ignore[return-value]


def _words(report: Report, column: Mapping[Hashable, Any], best: pd.DataFrame) -> Row:
    floor = float(column["floor"])
    order = [str(name) for name in best["backbone"]]
    return _series(_lines(order, report), report) | {
        "metric": column["metric"],
        "axis": f"{column['task']} {column['metric']}, %",
        "title": column["column"],
        "floor": [] if isnan(floor) else [{"floor": floor}],
        "order": order,
    }


def _lines(order: Sequence[str], report: Report) -> list[str]:
    """The backbones whose lines are drawn: the first of an order, and the highlighted one."""
    first = [name for name in order if name == report.highlight][:1]
    return [*first, *(name for name in order if name not in first)][:SERIES]


def _series(names: Sequence[str], report: Report) -> Row:
    """The looks of backbones, and which of them is highlighted."""
    series = looks(names, report.labels).values()
    return {
        "backbones": [*names],
        "colours": [look["color"] for look in series],
        "shapes": [look["shape"] for look in series],
        "dashes": [look["strokeDash"] for look in series],
        "mark": report.highlight if report.highlight in names else "",
        "few": str(len(names) <= charts.BANDS).lower(),
    }


def _drawn(view: str, rows: list[Row], words: Row, width: object = WIDTH) -> Spec:
    """A chart with its rows, of a fixed size, on white."""
    height = charts.height(view, len(words.get("order", ())))
    spec: Spec = charts.fill_placeholders(
        charts.all_charts()[view], {"height": height, "mark": ""} | LOOK | words
    )
    style = spec["config"] | {"background": "#ffffff", "padding": 8}
    if "layer" in spec:
        spec |= {"width": width, "autosize": {"type": "pad"}}
    return spec | {"data": {"values": rows}, "config": style}


def _others(report: Report, best: pd.DataFrame, key: str) -> pd.DataFrame:
    rows: pd.DataFrame = report.published[report.published["column"] == best["column"].iloc[0]]
    return rows.assign(**{key: "published"})


def _ranking(report: Report, best: pd.DataFrame, words: Row) -> Spec:
    places = zip(best["value"], half_widths(best), best["layer"], best["depth"], strict=True)
    labels = [f"{score_text(value, spread)}, layer {layer}/{depth}" for value, spread, layer, depth in places]
    rows = _rows(best.assign(label=labels)) + _rows(_others(report, best, "group"))
    return _drawn("ranking", rows, words | _series(words["order"], report))


def _curves(report: Report, layers: pd.DataFrame, best: pd.DataFrame, words: Row) -> Spec:
    drawn, depth = _placed(layers, words)
    others = _others(report, best, "place")
    others = others[others["backbone"].isin(words["backbones"]) & others["layer"].notna()]
    others = others.assign(x=others["layer"] / (1 if depth["step"] == 1 else others["depth"]))
    drawn = _with_ends(drawn, "x", 0.0)
    return _drawn("curves", _rows(drawn) + _rows(others), words | depth) | {"height": HEIGHT}


def _placed(layers: pd.DataFrame, words: Row) -> tuple[pd.DataFrame, Row]:
    """The layers of backbones whose lines are drawn, with their position ``x``, and the title of the axis."""
    drawn = layers[layers["backbone"].isin(words["backbones"])]
    if len(set(drawn["depth"])) <= 1:
        return drawn.assign(x=drawn["layer"]), {"depth": "layer (block)", "step": 1}
    return drawn.assign(x=drawn["layer"] / drawn["depth"]), {"depth": "share of the depth", "step": 0.1}


def _with_ends(rows: pd.DataFrame, axis: str, width: float) -> pd.DataFrame:
    """Rows with ``end``, the height of each backbone's ``name``, in its last row; NaN in others.

    Names are at the ends of lines along an axis of that width, or all in one place for 0.
    """
    last = rows.groupby("backbone")["layer"].idxmax()
    ends = rows.loc[last, [axis, "value"]].astype(float).itertuples(index=False, name=None)
    places = [(at / width if width else 1.0, value) for at, value in ends]
    gap = charts.LABEL / HEIGHT * float(rows["value"].max() - rows["value"].min())
    heights = pd.Series(charts.spaced_labels(places, gap), index=last.to_numpy())
    return rows.assign(end=heights, name=rows["backbone"])


def _panels(layers: pd.DataFrame, words: Row) -> Spec:
    """A panel for each of some backbones, with the line of the best one in grey."""
    drawn, depth = _placed(layers, words)
    top = drawn[drawn["backbone"] == words["order"][0]]
    rows = [row for name in words["backbones"] for row in _rows(top.assign(panel=name))]
    rows += _rows(drawn[drawn["backbone"] != words["order"][0]].assign(panel=drawn["backbone"]))
    return _drawn("panels", rows, words | depth | {"width": 110, "columns": 4})


def _row(report: Report, row: Sequence[tuple[pd.DataFrame, Row]]) -> Spec:
    """The curves of all tasks in a row of panels with one legend, for the backbones with the best ranks."""
    names = sorted(report.ranks, key=lambda name: report.ranks[name].value) or [*report.backbones["backbone"]]
    series = _series(_lines(names, report), report)
    style = {"orient": "bottom", "columns": SERIES, "symbolOpacity": 1}
    panels: list[Spec] = []
    for layers, words in row:
        drawn, depth = _placed(layers, words | series)
        more = {"legend": None if panels else style, "axis": ""}
        spec = _drawn("curves", _rows(drawn), words | series | depth | more)
        floor, lines = spec["layer"][:2]
        lines |= {"layer": lines["layer"][1:3]}
        panel = {"title": words["title"], "width": 110, "height": 100}
        panels.append(panel | {"data": spec["data"], "layer": [floor, lines]})
    return {"$schema": SCHEMA, "params": spec["params"], "hconcat": panels, "config": spec["config"]}


def _tradeoff(report: Report, name: str, layers: pd.DataFrame, words: Row) -> Spec:
    costs = report.costs[["backbone", "layer", name]]
    rows = layers.merge(costs, on=["backbone", "layer"]).dropna(subset=[name])
    rows = rows.assign(cost=rows[name] / (1e6 if name == "parameters" else 1))
    front = pareto_front(rows, "cost").index
    wide = bool((rows["cost"] > 0).all()) and rows["cost"].max() > 20 * rows["cost"].min()
    along = np.log(rows["cost"]) if wide else rows["cost"]
    shown = rows["backbone"].isin(words["backbones"])
    named = _with_ends(rows.assign(along=along)[shown], "along", float(along.max() - along.min()))
    rows = rows.assign(shown=shown, front=rows.index.isin(front), name=rows["backbone"], end=named["end"])
    scale = {"nice": False, "padding": 14} | ({"type": "log"} if wide else {"zero": False})
    return _drawn("tradeoff", _rows(rows), words | {"scale": scale}) | {"height": HEIGHT}


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
