"""The views of the report and the choices of its readers: which chart draws which rows, in which words."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from math import isnan
from typing import Any, Literal

import pandas as pd

from layerboard.leaderboards.blocks.display import NOT_WORSE
from layerboard.leaderboards.charts.style import Spec
from layerboard.leaderboards.report import charts, content

FEW = 40  # charts with more rows have lower ones
# columns of rows that a chart draws: the choice that a column equals, or the values that it may have
Where = Mapping[str, str | tuple[str, ...]]
OF_TASK: Where = {"measure": "task", "vectors": "vectors"}  # a column's own metric has the name of the column
BY_METRIC: Where = {"measure": "measure", "vectors": "vectors"}
GROUPS = (content.FIRST, content.MAYBE, content.WORSE, content.UNTESTED)  # of rows of best layers
MEASURED: Where = {"place": ("best", "maybe", "")}

# columns of numbers that are offered as CSV
BEST = (
    *("column", "backbone", "family", "pooling", "layer", "depth", "value", "ci_low", "ci_high"),
    *("loss", "held_out", "optimism", "group", "n"),
)
LAYERS = (
    *("column", "measure", "backbone", "pooling", "layer", "depth", "value", "ci_low", "ci_high"),
    *("loss", "place", "chosen"),
)


@dataclass(frozen=True, slots=True)
class ReportView:
    """A chart of the page with its rows: those of a frame that fit what the reader has chosen."""

    name: str
    title: str
    note: str  # how to read it
    spec: Spec
    csv: tuple[str, ...]  # columns of its numbers, of the frame or of the chart's transforms
    frame: Literal["scores", "matrices"] = "scores"  # of the report
    what: str = "{task}"  # what it shows at the moment, from the words of the choices
    where: Where = field(default_factory=dict)  # which rows
    backbones: Literal["picked", "listed", "shown", ""] = ""  # of which rows are drawn; "" for any
    steps: tuple[int, int] = (0, 0)  # height of a row in pixels, and of one among more than `FEW`
    height: int = 400  # pixels that the page keeps before it is drawn, or to which its rows are added
    renderer: Literal["svg", "canvas"] = "svg"  # the latter for very many marks
    # what its panels are of, their least width, and the width of a letter of names beside them
    panel: tuple[str, int, float] = ("backbone", 200, 0)
    cursor: bool = False  # whether all backbones can be read at a place of the horizontal axis

    def rows(self, scores: pd.DataFrame, **choices: str) -> pd.DataFrame:
        """The rows of a frame of scores that the chart draws for some choices, as the page's script does.

        Without a choice of vectors each backbone has its own.
        """
        choices.setdefault("vectors", "")
        for column, values in self.where.items():
            scores = scores[scores[column].isin([choices[values]] if isinstance(values, str) else values)]
        return scores

    def row(self, rows: int) -> int:
        """Height in pixels of one of some rows."""
        return self.steps[rows > FEW]

    def room(self, rows: int) -> int:
        """Pixels that the page keeps for it before it is drawn, with that many rows."""
        return self.height + rows * self.row(rows)


VIEWS = (
    ReportView(
        "advice",
        "The score of each layer",
        "Blue: what is advised, with its 95 % interval; the ring marks its layer. Grey: the other backbones, "
        "with the name of the highest where there is room.",
        charts.advised_curves(),
        ("column", "backbone", "pooling", "layer", "depth", "value", "ci_low", "ci_high", "role"),
        what="",
        where=MEASURED,
        height=300,
        panel=("column", 92, 5.6),
    ),
    ReportView(
        "curves",
        "Layer by layer",
        "The score of every block; the ring marks the best layer. Dashed: random features. Diamonds: "
        "published numbers. A backbone that is highlighted in the list above shows its 95 % interval. "
        "Point at a layer, or use the arrow keys, to read all backbones there.",
        charts.curves(),
        LAYERS,
        what="{measure}",
        where=BY_METRIC,
        backbones="picked",
        cursor=True,
    ),
    ReportView(
        "panels",
        "Each backbone with its intervals",
        "The band is the 95 % interval; the thin grey line is the best backbone, for comparison. Dashed: "
        "random features.",
        charts.panels(),
        LAYERS,
        what="{measure}",
        where={**BY_METRIC, **MEASURED},
        backbones="picked",
        height=210,
    ),
    ReportView(
        "ranking",
        f"The best and who is {NOT_WORSE}",
        "The best layer of each backbone, with its 95 % interval. Filled: the best, and those that may be "
        "it; hollow: worse; dashed interval: not compared. Dashed line: random features. "
        "Diamonds: published numbers.",
        charts.ranking(),
        BEST,
        what="{listed}",
        where={**OF_TASK, "group": (*GROUPS, content.OTHERS)},
        backbones="listed",
        steps=(24, 14),
        height=80,
    ),
    ReportView(
        "depth_map",
        "All backbones over their depth",
        "One row per backbone, from its first block to its last; the frame marks the best layer.",
        charts.depth_map(),
        LAYERS,
        what="{listed}: {metric}",
        where={**BY_METRIC, **MEASURED},
        backbones="listed",
        steps=(18, 12),
        height=80,
    ),
    ReportView(
        "tradeoff",
        "Quality and cost",
        "A point is a backbone cut after one layer; the line is the Pareto front. Leads within the "
        "intervals may be chance.",
        charts.tradeoff(),
        (*LAYERS, "cost", "front"),
        where={**OF_TASK, **MEASURED},
        backbones="shown",
    ),
    ReportView(
        "task_map",
        "Where in the network each task is solved",
        "Each row is scaled to the backbone's best layer in that task, since scores of different tasks "
        "cannot be compared; the number is the score, the frame the best layer.",
        charts.task_map(),
        (*LAYERS, "share"),
        what="{backbone}",
        where={"backbone": "backbone", "vectors": "vectors", **MEASURED},
        steps=(26, 20),
        height=80,
    ),
    ReportView(
        "alike",
        "Every layer against every other",
        "Linear CKA: 1 means equal up to rotation and scale, 0 unrelated. It measures how similar "
        "features are, not how good. Layers are in the order of the forward pass, the first at the bottom "
        "and at the left; the line runs through the column that is most similar to each row. Of more than "
        f"{content.CELLS:,} numbers in all, one layer per block is drawn.",
        charts.alike(),
        ("first", "second", "row", "column", "value"),
        "matrices",
        what="{first} and {second}, {tokens}",
        where={"table": "tokens"},
        height=280,
        renderer="canvas",
    ),
)


def view_named(name: str) -> ReportView:
    """The view of that name."""
    return next(view for view in VIEWS if view.name == name)


Words = dict[str, Any]  # what fills the placeholders of charts, by their names

WIDE = 20  # an axis of costs is logarithmic if the largest is more than so many times the smallest
ACROSS: Mapping[str, Words] = {
    "layer": {"across": "layer", "depth": "layer (block)", "tick": 1},
    "relative": {"across": "relative", "depth": "share of the depth", "tick": 0.1},
}
ACROSS_TEXTS = {"layer": "layer", "relative": "share of the depth"}
MAP_SIDE, SMALLEST_CELL, LARGEST_CELL = 900, 4, 24  # pixels of the side of a matrix, and of its cells
CHANNELS = {"colours": "color", "shapes": "shape", "dashes": "strokeDash"}  # of charts, by their words


@dataclass(frozen=True, slots=True)
class ReportChoice:
    """A choice of readers: the words of the charts that each of its values sets, the usual value first."""

    name: str
    label: str
    words: Mapping[str, Words]
    texts: Mapping[str, str] = field(default_factory=dict)  # of values that are not shown as they are


def choices_of(report: content.Report) -> dict[str, ReportChoice]:
    """The choices that a report has, by name."""

    def free(values: Iterable[str]) -> dict[str, Words]:
        return dict.fromkeys(values, Words())

    compared = report.matrices
    ends = [*zip(compared["first"], compared["second"], strict=True)]
    labels = [label for label in report.labels if label in chain(*ends)]
    # the usual pair is the first backbone and another one, if it was compared with any
    others = [label for pair in ends if labels[0] in pair for label in pair if label != labels[0]]
    metrics = report.measures[["measure", "metric"]].itertuples(index=False, name=None)
    across = dict(sorted(ACROSS.items(), reverse=len(set(report.backbones["depth"])) > 1))
    vectors = free(each for column in report.board.columns for each in content.shown_poolings(column))
    choices = (
        ReportChoice("task", "task", task_words(report)),
        ReportChoice("measure", "metric", measure_words(report), dict(metrics)),
        ReportChoice("vectors", "vectors", vectors, {"": "each backbone's best"}),
        ReportChoice("cost", "cost", cost_words(report), dict(report.axes)),
        ReportChoice("across", "horizontal axis", across, ACROSS_TEXTS),
        ReportChoice("backbone", "backbone", free(report.backbones["backbone"])),
        ReportChoice("tokens", "tokens", free(compared["table"])),
        ReportChoice("first", "backbone", free(labels)),
        ReportChoice("second", "against", free([*others, *labels])),
    )
    return {choice.name: choice for choice in choices}


def series_words(looks: Mapping[str, Spec]) -> Words:
    """The words by which backbones keep their looks, by label."""
    words: Words = {name: [look[channel] for look in looks.values()] for name, channel in CHANNELS.items()}
    return words | {"backbones": [*looks]}


def task_words(report: content.Report) -> dict[str, Words]:
    """The words of each column, with its backbones from the best on: ``order``, ``grouped`` by families.

    Its ``measure`` and ``vectors`` are the values that these choices have for it.
    """
    words = {}
    best, measures = (frame.groupby("column") for frame in (report.best, report.measures))
    for column in report.board.columns:
        rows = best.get_group(column.heading) if column.heading in best.groups else report.best[:0]
        families, _ = pd.factorize(rows["family"])
        words[column.heading] = {
            "order": rows["backbone"].tolist(),
            "grouped": rows["backbone"].iloc[families.argsort(kind="stable")].tolist(),
            "measure": measures.get_group(column.heading)["measure"].tolist(),
            "vectors": content.shown_poolings(column),
        }
    return words


def measure_words(report: content.Report) -> dict[str, Words]:
    """The words of each metric of each column, by its name among all."""
    words = dict[str, Words]()
    for row in report.measures.to_dict("records"):
        floor = [] if isnan(row["floor"]) else [{"floor": row["floor"]}]
        words[str(row["measure"])] = {"metric": row["metric"], "axis": f"{row['metric']}, %", "floor": floor}
    return words


def matrix_words(report: content.Report) -> Words:
    """The words of all matrices: the side of a cell in pixels, and how the names of layers are written."""
    most = max(map(len, report.matrices["first_layers"]), default=1)
    cell = min(LARGEST_CELL, max(MAP_SIDE // most, SMALLEST_CELL))  # whole pixels leave no seams
    return {"cell": cell, "angle": 0 if cell == LARGEST_CELL else -90, "font_size": max(8, min(12, cell - 1))}


def cost_words(report: content.Report) -> dict[str, Words]:
    """The words of each axis of costs; none without scores."""
    words = dict[str, Words]()
    for name, title in report.axes if len(report.best) else ():
        costs = report.scores[name].dropna()
        wide = bool((costs > 0).all() and costs.max() > WIDE * costs.min())
        scale = {"nice": False, "padding": 14} | ({"type": "log"} if wide else {"zero": False})
        words[name] = {"cost_title": title, "cost_scale": scale, "log": wide}
    return words
