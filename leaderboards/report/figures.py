"""The report's charts as files, in a style for papers: small, on white, in one font size."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path

from layerboard.leaderboards.blocks.blocks import Picture, Plot
from layerboard.leaderboards.blocks.display import plain_name
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.charts import engine
from layerboard.leaderboards.charts.engine import Chart
from layerboard.leaderboards.charts.pictures import picture_spec
from layerboard.leaderboards.charts.style import FONT, SCHEMA, Spec, looks
from layerboard.leaderboards.report import charts, views
from layerboard.leaderboards.report.content import Report
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
            why = f"curves are of blocks, and only {there} has a score"
            lines.append(f"{column.heading} has no figure: {why}")
    if report.board.analyses:
        lines.append(f"analyses have their figures beside the page {report.board.analyses.page}.md")
    return [f"{report.board.suite}: {line}" for line in lines]


def charts_of(report: Report, usual: Sequence[str] = ()) -> list[Chart]:
    """The figures of a suite, the usual one first: it fits the first of the patterns that fits any."""
    figures = dict(figures_of(report))
    if len(report.board.columns) == 1:
        figures.pop("layers", None)  # the curves of all tasks in a row
    fitting = (name for pattern in usual for name in figures if fnmatchcase(name, pattern))
    first = next(fitting, "")
    return [Chart(name, figures[name]) for name in sorted(figures, key=lambda name: name != first)]


def charts_of_pages(board: Board) -> Iterator[Chart]:
    """The figures beside the pages of a suite, without CKA, whose maps are among those of its report."""
    from layerboard.leaderboards.writers.build import pages_of  # imports scipy

    for page in pages_of(board):
        for block in page.blocks if page.name != f"{board.page}.cka" else ():
            if isinstance(block, Picture) and block.name:
                yield Chart(block.name, _on_paper(block, page.backbones))


def figures_of(report: Report) -> Iterator[tuple[str, Spec]]:
    """Name and specification of each figure: for each task, each backbone and each CKA matrix.

    Names consist of letters, digits, dots and hyphens and are unique; they contain no digest, so that those
    of a later run are the same.
    """
    names: Counter[str] = Counter()
    kinds = (_task_figures, _row_figures, _backbone_figures, _cka_figures, _cost_figures)
    for name, spec in chain.from_iterable(kind(report) for kind in kinds):
        plain = re.sub(r"[^\w.-]+", "-", name)[:80].strip(".-")
        names[plain] += 1
        yield plain if names[plain] == 1 else f"{plain}-{names[plain]}", spec


def _task_figures(report: Report) -> Iterator[tuple[str, Spec]]:
    tasks, costs = Counter(column.task for column in report.board.columns), views.cost_words(report)
    chosen, measures = views.task_words(report), views.measure_words(report)
    for column in report.board.columns:
        heading, task = column.heading, column.task
        name = task if tasks[task] == 1 else f"{task}-{plain_name(column.dataset_name)}-{column.protocol}"
        words, order = chosen[heading], chosen[heading]["order"]
        # how a name ends, the view, the metric, and further words
        figures: list[tuple[str, str, str, views.Words]] = [
            ("best", "ranking", heading, _series(order, report)),
            ("layers", "curves", heading, {}),
            *((f"layers-{measures[each]['metric']}", "curves", each, {}) for each in words["measure"][1:]),
            ("panels", "panels", heading, {"width": 110, "columns": 4, "letters": 16}),
            ("depth", "depth_map", heading, {}),
            *((f"cost-{axis}", "tradeoff", heading, costs[axis] | {"cost": axis}) for axis in costs),
        ]
        for ending, view, measure, more in figures if order else ():
            axis = {"axis": f"{task} {measures[measure]['metric']}, %"}
            every = words | _series(_lines(order, report), report) | measures[measure] | axis | more
            yield f"{name}-{ending}", _drawn(report, view, every, task=heading, measure=measure)


def _row_figures(report: Report) -> Iterator[tuple[str, Spec]]:
    """The curves of all tasks in a row of panels with one legend, for the backbones with the best ranks."""
    names = sorted(report.ranks, key=report.ranks.__getitem__) or [*report.backbones["backbone"]]
    series, measures = _series(_lines(names, report), report), views.measure_words(report)
    panels: list[Spec] = []
    for heading in dict.fromkeys(report.best["column"]):
        legend = None if panels else {"orient": "bottom", "columns": SERIES, "symbolOpacity": 1}
        words = series | measures[heading] | {"axis": "", "legend": legend}
        spec = _drawn(report, "curves", words, measure=heading)
        floor, measured = spec["layer"][:2]
        layers = [floor, measured | {"layer": measured["layer"][1:3]}]
        panel = {"title": heading, "width": 110, "height": 100, "layer": layers}
        panels.append(panel | {"data": spec["data"], "transform": spec["transform"]})
    if panels:
        shared = {key: spec[key] for key in ("params", "config")}
        yield "layers", {"$schema": SCHEMA, "hconcat": panels} | shared


def _backbone_figures(report: Report) -> Iterator[tuple[str, Spec]]:
    for backbone, rows in report.best.groupby("backbone", sort=False):
        order = [each.heading for each in report.board.columns if each.heading in set(rows["column"])]
        wide, words = max(WIDTH, 26 * int(rows["depth"].max())), {"tasks": order, "order": order}
        yield f"{backbone}-tasks", _drawn(report, "task_map", words, wide, backbone=str(backbone))


def _cka_figures(report: Report) -> Iterator[tuple[str, Spec]]:
    for cka in report.cka:
        for picture, kind in zip(map_pictures(cka), ("", "-pairs"), strict=False):
            yield f"cka-{cka.table.title}{kind}", _on_paper(picture, report.labels)


def _cost_figures(report: Report) -> Iterator[tuple[str, Spec]]:
    """What each backbone costs up to each layer, as measured."""
    costs = report.measured_costs.assign(parameters=report.measured_costs["parameters"] / 1e6)
    for axis, title in report.axes:
        measured = costs.dropna(subset=[axis])
        own = measured.groupby("backbone")["timed_at"].transform("first")  # the size that it was made for
        names = {"backbone": "series", "layer": "x", axis: "y"}
        lines = measured[measured["timed_at"] == own].rename(columns=names)
        if len(lines):
            cost = title.replace("as the task shows it", "up to the layer")
            plot = Plot(lines, "lines", f"Cost: {cost}", "layer (block)", cost)
            yield f"cost-{axis}", _on_paper(plot, report.labels)


def _on_paper(picture: Picture, backbones: Sequence[str]) -> Spec:
    return picture_spec(picture, backbones) | {"background": LOOK["ground"]}


def _lines(order: Sequence[str], report: Report) -> list[str]:
    """The backbones whose lines are drawn: the first of an order, and the highlighted one."""
    first = [name for name in order if name == report.highlight][:1]
    return [*first, *(name for name in order if name not in first)][:SERIES]


def _series(names: Sequence[str], report: Report) -> views.Words:
    """The looks of backbones, which of them is highlighted, and the axis of their depth.

    The axis has layers if all have the same number of them.
    """
    mark = report.highlight if report.highlight in names else ""
    depths = set(report.backbones.loc[report.backbones["backbone"].isin(names), "depth"])
    across = views.ACROSS["layer" if len(depths) <= 1 else "relative"]
    return across | views.series_words(looks(names, report.labels)) | {"picked": [*names], "mark": mark}


def _drawn(report: Report, name: str, words: views.Words, width: int = WIDTH, **choices: str) -> Spec:
    """The chart of a view with its rows for some choices, of a fixed size, on white."""
    view, count = views.view_named(name), len(words.get("order", ()))
    rows = view.rows(report.scores, **choices)
    rows = rows[rows["backbone"].isin(words["picked"])] if view.backbones == "picked" else rows
    given: views.Words = {"rows": rows.astype(object).where(rows.notna(), None).to_dict("records")}
    given |= {"height": view.row(count) * max(2, count)}
    spec: Spec = charts.fill_placeholders(view.spec, LOOK | given | words)
    style = spec["config"] | {"background": "#ffffff", "padding": 8}
    if "layer" in spec:
        spec |= {"width": width, "autosize": {"type": "pad"}}
    return spec | {"config": style}
