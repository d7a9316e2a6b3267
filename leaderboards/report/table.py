"""The table of best layers: the page's script sorts and filters it, and it is whole without that."""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
from markupsafe import Markup

from leaderboards.display import fixed, score_text
from leaderboards.report.frames import FIRST, MAYBE, ReportFrames
from leaderboards.report.html import filled
from tasks.blocks import Mark

FACTS = {
    "backbone": "backbone",
    "family": "family",
    "parameters": "weights, M",
    "supervision": "learned from",
    "licence": "licence",
}
"""Columns of facts and their heads."""

LATER = ("supervision", "licence")  # facts that stand behind the scores


@dataclass(frozen=True, slots=True)
class _Head:
    """A head that sorts, by words or by numbers."""

    text: str
    sort: str


@dataclass(frozen=True, slots=True)
class _SortedCell:
    """A cell with what it is sorted by; ``note`` stands behind the text in smaller letters."""

    text: str
    value: str
    left: bool = False
    mark: Mark = "none"
    note: str = ""


@dataclass(frozen=True, slots=True)
class _Row:
    """Cells, and what filters ask for, as attributes of the row."""

    cells: list[_SortedCell]
    attributes: dict[str, str]


def best_table(frames: ReportFrames) -> Markup:
    """The best layer of each backbone in each column, with filters above.

    The random floor has a row of its own at the end, which is neither sorted nor filtered.
    """
    facts = [key for key in FACTS if key in ("backbone", "family") or _known(frames.backbones[key])]
    before, after = [key for key in facts if key not in LATER], [key for key in facts if key in LATER]
    columns = [str(name) for name in frames.columns["column"]]
    heads = [_Head(FACTS[key], "numbers" if key == "parameters" else "words") for key in before]
    heads += [_Head(name, "numbers") for name in columns]
    heads += [_Head(FACTS[key], "words") for key in after]
    scores = {(str(row["backbone"]), str(row["column"])): row for row in frames.best.to_dict("records")}
    rows = []
    for backbone in frames.backbones.to_dict("records"):
        cells = [_fact(key, backbone[key]) for key in before]
        cells += [_score(scores.get((str(backbone["backbone"]), name))) for name in columns]
        cells += [_fact(key, backbone[key]) for key in after]
        known = {name: str(backbone[name]) for name in ("backbone", "family", "supervision", "licence")}
        known["parameters"] = _weights(backbone["parameters"])
        rows.append(_Row(cells, {f"data-{name}": value for name, value in known.items()}))
    floors = zip(frames.columns["floor"], frames.columns["deviation"], strict=True)
    foot = ["random floor, ± s.d.", *[""] * (len(before) - 1)]
    foot += [score_text(floor, deviation) for floor, deviation in floors] + [""] * len(after)
    return filled("best", heads=heads, rows=rows, foot=foot if _known(frames.columns["floor"]) else [])


def _known(values: "pd.Series[Any]") -> bool:
    """Whether something is known of any."""
    return bool(values.notna().any()) and any(str(value) not in ("", "nan") for value in values)


def _weights(count: object) -> str:
    """Weights as a whole number; "" where they are not known."""
    return "" if math.isnan(float(str(count))) else f"{float(str(count)):.0f}"


def _fact(key: str, value: object) -> _SortedCell:
    """The cell of a fact; weights are in millions."""
    if key == "parameters":
        count = float(str(value))
        millions = "" if math.isnan(count) else fixed(count / 1e6, 1 if count < 1e8 else 0)
        return _SortedCell(millions, _weights(count))
    return _SortedCell(str(value), str(value), left=True)


def _score(row: Mapping[Hashable, Any] | None) -> _SortedCell:
    """A score with its layer; empty where there is none."""
    if row is None:
        return _SortedCell("", "")
    value, low, high = (float(str(row[name])) for name in ("value", "ci_low", "ci_high"))
    marks: dict[str, Mark] = {FIRST: "best", MAYBE: "tied"}
    layer = f"{row['layer']}/{row['depth']}"
    mark = marks.get(str(row["group"]), "none")
    return _SortedCell(score_text(value, (high - low) / 2), f"{value:.4f}", mark=mark, note=layer)
