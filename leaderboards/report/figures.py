"""The report's charts as files, in a style for papers: small, on white, in one font size."""

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from layerboard.leaderboards.blocks.blocks import Picture, Plot
from layerboard.leaderboards.blocks.display import plain_name
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.charts import engine
from layerboard.leaderboards.charts.chart import Chart
from layerboard.leaderboards.charts.pictures import picture_spec
from layerboard.leaderboards.charts.style import FONT, SCHEMA, Spec, looks
from layerboard.leaderboards.report import charts
from layerboard.leaderboards.report.choices import (
    ACROSS,
    Words,
    cost_words,
    measure_words,
    series_words,
    task_words,
)
from layerboard.leaderboards.report.content import Report
from layerboard.leaderboards.report.views import view_named
from layerboard.leaderboards.sections.layer_cka import map_pictures
from layerboard.zoo.atomic import write_whole

FORMATS = ("svg", "pdf")

WIDTH = 420  # width of a figure's plot, in points
SERIES = 8  # maximum backbones in a figure of lines: the best of the task
LOOK = {"ink": "#1b2026", "ground": "#ffffff", "font": FONT, "legend": None, "mark": "", "narrow": False}


def write_figures(report: Report, folder: Path, formats: Sequence[str]) -> list[Path]:
    """Write every figure of one suite in some of the `FORMATS`; returns the files."""
    written: list[Path] = []
    for name, spec in figures_of(report):
        for ending in formats:
            path = folder / report.board.page / f"{name}.{ending}"
            write_whole(path, engine.render_chart(spec, ending))
            written.append(path)
    return written


def without_figure(report: Report) -> list[str]:
    """What a suite has numbers of, but no figure, in sentences."""
    drawn, lines = set(report.best["column"]), []
    for column in report.board.columns:
        if column.heading not in drawn:
            there = ", ".join(sorted({*map(str, column.rows["tap"])}))
            lines.append(
                f"{column.heading} has no figure: curves are of blocks, and only {there} has a score"
            )
    if report.board.analyses:
        lines.append(f"analyses have their figures beside the page {report.board.analyses.page}.md")
    return [f"{report.board.suite}: {line}" for line in lines]


def charts_of(report: Report, usual: Sequence[str] = ()) -> list[Chart]:
    """The figures of a suite, the usual one first: it fits the first of the patterns that fits any."""
    figures = dict(figures_of(report))
    if len(report.columns) == 1:
        figures.pop("layers", None)  # the curves of all tasks in a row
    fitting = (name for pattern in usual for name in figures if fnmatchcase(name, pattern))
    first = next(fitting, "")
    return [Chart(name, figures[name]) for name in sorted(figures, key=lambda name: name != first)]


def charts_of_pages(board: Board) -> Iterator[Chart]:
    """The figures beside the pages of a suite."""
    from layerboard.leaderboards.writers.build import pages_of  # imports scipy

    for page in pages_of(board):
        for block in page.blocks:
            if isinstance(block, Picture) and block.name:
                yield Chart(block.name, _on_paper(picture_spec(block, page.backbones)))


def figures_of(report: Report) -> Iterator[tuple[str, Spec]]:
    """Name and specification of each figure: for each task, each backbone and each CKA matrix.

    Names consist of letters, digits, dots and hyphens and are unique; they contain no digest, so that those
    of a later run are the same.
    """
    names: Counter[str] = Counter()
    every = (_task_figures(report), _backbone_figures(report), _cka_figures(report), _cost_figures(report))
    for name, spec in chain.from_iterable(every):
        plain = re.sub(r"[^\w.-]+", "-", name)[:80].strip(".-")
        names[plain] += 1
        yield plain if names[plain] == 1 else f"{plain}-{names[plain]}", spec


def _task_figures(report: Report) -> Iterator[tuple[str, Spec]]:
    row: list[tuple[pd.DataFrame, Words]] = []
    tasks, costs = report.columns["task"].value_counts(), cost_words(report)
    measures = measure_words(report)
    for (name, chosen), column in zip(
        task_words(report).items(), report.columns.to_dict("records"), strict=True
    ):
        frames = (report.best, report.layers, report.published)
        best, layers, others = (frame[frame["column"] == name] for frame in frames)
        if best.empty:
            continue
        task, every = str(column["task"]), chosen["order"]
        words = (
            chosen
            | {"axis": f"{task} {chosen['metric']}, %", "title": name}
            | _series(_lines(every, report), report)
        )
        lines = layers[layers["backbone"].isin(words["backbones"])]
        words |= _across(lines) | measures[name] | {"by_axis": words["axis"]}
        task += "" if tasks[task] == 1 else f"-{plain_name(str(column['dataset']))}-{column['protocol']}"
        yield f"{task}-best", _drawn("ranking", [best, others], words | _series(every, report))
        beside = others[others["backbone"].isin(words["backbones"])]
        yield f"{task}-layers", _drawn("curves", [lines, beside], words)
        for measure in chosen["measure"][1:]:
            rows, by = report.by_metrics, measures[measure]["by"]
            rows = rows[(rows["measure"] == measure) & rows["backbone"].isin(words["backbones"])]
            of_metric = measures[measure] | {"by_axis": f"{column['task']} {by}, %"}
            yield f"{task}-layers-{by}", _drawn("curves", [rows], words | of_metric)
        yield f"{task}-panels", _drawn("panels", [lines], words | {"width": 110, "columns": 4})
        yield f"{task}-depth", _drawn("depth_map", [layers], words)
        for axis, of_cost in costs.items():
            yield f"{task}-cost-{axis}", _drawn("tradeoff", [layers], words | of_cost | {"cost": axis})
        row.append((lines, words))
    if row:
        yield "layers", _row(report, row)


def _backbone_figures(report: Report) -> Iterator[tuple[str, Spec]]:
    for backbone, layers in report.layers.groupby("backbone", sort=False):
        order = [name for name in report.columns["column"] if name in set(layers["column"])]
        wide = max(WIDTH, 26 * int(layers["layer"].max()))
        yield f"{backbone}-tasks", _drawn("task_map", [layers], {"tasks": order, "order": order}, wide)


def _cka_figures(report: Report) -> Iterator[tuple[str, Spec]]:
    for cka in report.cka:
        for picture, kind in zip(map_pictures(cka), ("", "-pairs"), strict=False):
            spec = picture_spec(picture, report.labels)
            yield f"cka-{cka.table.title}{kind}", _on_paper(spec)


def _cost_figures(report: Report) -> Iterator[tuple[str, Spec]]:
    """What each backbone costs up to each layer, as measured."""
    costs = report.measured_costs.assign(parameters=report.measured_costs["parameters"] / 1e6)
    for axis, title in report.axes:
        measured = costs.dropna(subset=[axis])
        own = measured.groupby("backbone")["timed_at"].transform("first")  # the size that it was made for
        lines = measured[measured["timed_at"] == own].rename(
            columns={"backbone": "series", "layer": "x", axis: "y"}
        )
        if len(lines):
            cost = title.replace("as the task shows it", "up to the layer")
            plot = Plot(lines, "lines", f"Cost: {cost}", "layer (block)", cost)
            yield f"cost-{axis}", _on_paper(picture_spec(plot, report.labels))


def _on_paper(spec: Spec) -> Spec:
    return spec | {"background": LOOK["ground"]}


def _rows(frame: pd.DataFrame) -> list[dict[Hashable, Any]]:
    """A frame as rows, with None for missing numbers."""
    return frame.astype(object).where(frame.notna(), None).to_dict("records")


def _lines(order: Sequence[str], report: Report) -> list[str]:
    """The backbones whose lines are drawn: the first of an order, and the highlighted one."""
    first = [name for name in order if name == report.highlight][:1]
    return [*first, *(name for name in order if name not in first)][:SERIES]


def _series(names: Sequence[str], report: Report) -> Words:
    """The looks of backbones, and which of them is highlighted."""
    mark = report.highlight if report.highlight in names else ""
    return series_words(looks(names, report.labels)) | {"picked": [*names], "mark": mark}


def _across(lines: pd.DataFrame) -> Words:
    """The horizontal axis of some lines: layers if all have the same number of them."""
    return ACROSS["layer" if len(set(lines["depth"])) <= 1 else "relative"]


def _drawn(name: str, frames: Sequence[pd.DataFrame], words: Words, width: object = WIDTH) -> Spec:
    """A chart with its rows, of a fixed size, on white."""
    view = view_named(name)
    rows = [row for frame in frames for row in _rows(frame)]
    height = view.row(len(words.get("order", ()))) * max(2, len(words.get("order", ())))
    spec: Spec = charts.fill_placeholders(view.spec, LOOK | {"rows": rows, "height": height} | words)
    style = spec["config"] | {"background": "#ffffff", "padding": 8}
    if "layer" in spec:
        spec |= {"width": width, "autosize": {"type": "pad"}}
    return spec | {"config": style}


def _row(report: Report, row: Sequence[tuple[pd.DataFrame, Words]]) -> Spec:
    """The curves of all tasks in a row of panels with one legend, for the backbones with the best ranks."""
    names = sorted(report.ranks, key=report.ranks.__getitem__) or [*report.backbones["backbone"]]
    series = _series(_lines(names, report), report)
    style = {"orient": "bottom", "columns": SERIES, "symbolOpacity": 1}
    panels: list[Spec] = []
    for lines, words in row:
        spec = _drawn(
            "curves", [lines], words | series | {"legend": None if panels else style, "by_axis": ""}
        )
        floor, measured = spec["layer"][:2]
        measured |= {"layer": measured["layer"][1:3]}
        size = {"title": words["title"], "width": 110, "height": 100}
        panels.append(
            size | {"data": spec["data"], "transform": spec["transform"], "layer": [floor, measured]}
        )
    return {"$schema": SCHEMA, "params": spec["params"], "hconcat": panels, "config": spec["config"]}
