"""The table of best layers: the page's script sorts and filters it, and it is whole without that."""

import math
from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd
from markupsafe import Markup

from leaderboards.display import fixed, score_text
from leaderboards.report.frames import FIRST, MAYBE, ReportFrames
from leaderboards.report.html import filled

FACTS = {
    "backbone": "backbone",
    "family": "family",
    "parameters": "weights, M",
    "supervision": "learned from",
    "licence": "licence",
}
LATER = ("supervision", "licence")  # facts that stand behind the scores

_SortedCell = dict[str, str | bool]  # what `tables.html` takes of a cell; ``value`` is what it is sorted by


def best_table(frames: ReportFrames) -> Markup:
    """The best layer of each backbone in each column, with filters above, and the random floor at the end."""
    facts = [key for key in FACTS if key in ("backbone", "family") or _known(frames.backbones[key])]
    before, after = [key for key in facts if key not in LATER], [key for key in facts if key in LATER]
    columns = [str(name) for name in frames.columns["column"]]
    heads = [(FACTS[key], "numbers" if key == "parameters" else "words") for key in before]
    heads += [(name, "numbers") for name in columns] + [(FACTS[key], "words") for key in after]
    scores = {(str(row["backbone"]), str(row["column"])): row for row in frames.best.to_dict("records")}
    rows = []
    for backbone in frames.backbones.to_dict("records"):
        cells = [_fact(key, backbone[key]) for key in before]
        cells += [_score(scores.get((str(backbone["backbone"]), name))) for name in columns]
        cells += [_fact(key, backbone[key]) for key in after]
        known = {name: str(backbone[name]) for name in ("backbone", "family", "supervision", "licence")}
        known["parameters"] = _weights(backbone["parameters"])
        # what filters ask for are attributes of the row
        rows.append({"cells": cells, "attributes": {f"data-{name}": value for name, value in known.items()}})
    floors = zip(frames.columns["floor"], frames.columns["deviation"], strict=True)
    foot = ["random floor, ± s.d.", *[""] * (len(before) - 1)]
    foot += [score_text(floor, deviation) for floor, deviation in floors] + [""] * len(after)
    return filled(
        "best",
        heads=[{"text": text, "sort": sort} for text, sort in heads],
        rows=rows,
        foot=foot if _known(frames.columns["floor"]) else [],
    )


def _known(values: "pd.Series[Any]") -> bool:
    return bool(values.notna().any()) and any(str(value) not in ("", "nan") for value in values)


def _weights(count: object) -> str:
    return "" if math.isnan(float(str(count))) else f"{float(str(count)):.0f}"


def _fact(key: str, value: object) -> _SortedCell:
    """The cell of a fact; weights are in millions."""
    if key != "parameters":
        return {"text": str(value), "value": str(value), "left": True}
    count = float(str(value))
    millions = "" if math.isnan(count) else fixed(count / 1e6, 1 if count < 1e8 else 0)
    return {"text": millions, "value": _weights(count), "left": False}


def _score(row: Mapping[Hashable, Any] | None) -> _SortedCell:
    """A score with its layer in smaller letters; empty where there is none."""
    if row is None:
        return {"text": "", "value": "", "left": False}
    value, low, high = (float(str(row[name])) for name in ("value", "ci_low", "ci_high"))
    mark = {FIRST: "best", MAYBE: "tied"}.get(str(row["group"]), "none")
    text, layer = score_text(value, (high - low) / 2), f"{row['layer']}/{row['depth']}"
    return {"text": text, "value": f"{value:.4f}", "left": False, "mark": mark, "note": layer}
