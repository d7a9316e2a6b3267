"""The choices of the report's readers: what each can be, and which words of the charts it sets."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from math import isnan
from typing import Any

import pandas as pd

from layerboard.leaderboards.charts.style import Spec
from layerboard.leaderboards.report.content import Report, shown_poolings

Words = dict[str, Any]  # what fills the placeholders of charts, by their names

WIDE = 20  # an axis of costs is logarithmic if the largest is more than so many times the smallest
ACROSS: Mapping[str, Words] = {
    "layer": {"across": "layer", "depth": "layer (block)", "tick": 1},
    "relative": {"across": "relative", "depth": "share of the depth", "tick": 0.1},
}
MAP_SIDE, SMALLEST_CELL, LARGEST_CELL = 900, 4, 24  # pixels of the side of a matrix, and of its cells
ACROSS_TEXTS = {"layer": "layer", "relative": "share of the depth"}
CHANNELS = {"colours": "color", "shapes": "shape", "dashes": "strokeDash"}  # of charts, by their words


@dataclass(frozen=True, slots=True)
class ReportChoice:
    """A choice: the words of the charts that each of its values sets, the usual value first."""

    name: str
    label: str
    words: Mapping[str, Words]
    texts: Mapping[str, str]  # of values that are not shown as they are


def choices_of(report: Report) -> dict[str, ReportChoice]:
    """The choices that a report has, by name."""
    compared = report.matrices
    ends = [*zip(compared["first"], compared["second"], strict=True)]
    labels = {label: Words() for label in report.labels if label in chain(*ends)}
    # the usual pair is the first backbone and another one, if it was compared with any
    usual = next(iter(labels), "")
    others = [label for pair in ends if usual in pair for label in pair if label != usual]
    metrics = report.measures[["measure", "metric"]].itertuples(index=False, name=None)
    across = dict(sorted(ACROSS.items(), reverse=len(set(report.backbones["depth"])) > 1))
    vectors = dict.fromkeys(each for column in report.board.columns for each in shown_poolings(column))
    choices = (
        ReportChoice("task", "task", task_words(report), {}),
        ReportChoice("measure", "metric", measure_words(report), dict(metrics)),
        ReportChoice("vectors", "vectors", dict.fromkeys(vectors, Words()), {"": "each backbone's best"}),
        ReportChoice("cost", "cost", cost_words(report), dict(report.axes)),
        ReportChoice("across", "horizontal axis", across, ACROSS_TEXTS),
        ReportChoice("backbone", "backbone", dict.fromkeys(report.backbones["backbone"], Words()), {}),
        ReportChoice("tokens", "tokens", dict.fromkeys(compared["table"], Words()), {}),
        ReportChoice("first", "backbone", labels, {}),
        ReportChoice("second", "against", dict.fromkeys(others, Words()) | labels, {}),
    )
    return {choice.name: choice for choice in choices}


def series_words(looks: Mapping[str, Spec]) -> Words:
    """The words by which backbones keep their looks, by label."""
    words: Words = {name: [look[channel] for look in looks.values()] for name, channel in CHANNELS.items()}
    return words | {"backbones": [*looks]}


def task_words(report: Report) -> dict[str, Words]:
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
            "vectors": shown_poolings(column),
        }
    return words


def measure_words(report: Report) -> dict[str, Words]:
    """The words of each metric of each column, by its name among all."""
    return {
        str(row["measure"]): {
            "metric": row["metric"],
            "axis": f"{row['metric']}, %",
            "floor": [] if isnan(row["floor"]) else [{"floor": row["floor"]}],
        }
        for row in report.measures.to_dict("records")
    }


def matrix_words(report: Report) -> Words:
    """The words of all matrices: the side of a cell in pixels, and how the names of layers are written."""
    most = max(map(len, report.matrices["first_layers"]), default=1)
    cell = min(LARGEST_CELL, max(MAP_SIDE // most, SMALLEST_CELL))  # whole pixels leave no seams
    return {"cell": cell, "angle": 0 if cell == LARGEST_CELL else -90, "font_size": max(8, min(12, cell - 1))}


def cost_words(report: Report) -> dict[str, Words]:
    """The words of each axis of costs; none without scores."""
    if report.best.empty:
        return {}
    return {name: _axis(title, report.scores[name].dropna()) for name, title in report.axes}


def _axis(title: str, costs: "pd.Series[float]") -> Words:
    wide = bool((costs > 0).all() and costs.max() > WIDE * costs.min())
    scale = {"nice": False, "padding": 14} | ({"type": "log"} if wide else {"zero": False})
    return {"cost_title": title, "cost_scale": scale, "log": wide}
