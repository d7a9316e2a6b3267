"""The table of best layers: the page's script sorts and filters it, and it is whole without that."""

from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd
from markupsafe import Markup

from layerboard.leaderboards.display import fixed, score_text
from layerboard.leaderboards.report.content import FIRST, MAYBE, Report
from layerboard.leaderboards.report.html import filled

FACTS = {  # that stand behind the scores
    "family": "family",
    "parameters": "parameters, M",
    "supervision": "learned from",
    "licence": "licence",
}

_SortedCell = dict[str, str | bool]  # what `tables.html` takes of a cell; ``value`` is what it is sorted by


def best_table(report: Report) -> Markup:
    """The best layer of each backbone in each column, with filters above, and the random floor at the end."""
    facts = [key for key in FACTS if key == "family" or _known(report.backbones[key])]
    columns = [str(name) for name in report.columns["column"]]
    heads = [("backbone", "words"), *((name, "numbers") for name in columns)]
    heads += [(FACTS[key], "numbers" if key == "parameters" else "words") for key in facts]
    scores = {(row["backbone"], row["column"]): row for row in report.best.to_dict("records")}
    rows = []
    for backbone in report.backbones.to_dict("records"):
        cells = [_fact("backbone", backbone["backbone"])]
        cells += [_score(scores.get((backbone["backbone"], name))) for name in columns]
        cells += [_fact(key, backbone[key]) for key in facts]
        known = {name: str(backbone[name]) for name in ("backbone", "family", "supervision", "licence")}
        known["parameters"] = fixed(backbone["parameters"], 0)
        # what filters ask for are attributes of the row
        rows.append({"cells": cells, "attributes": {f"data-{name}": value for name, value in known.items()}})
    floors = zip(report.columns["floor"], report.columns["deviation"], strict=True)
    foot = ["random floor, ± s.d.", *(score_text(floor, deviation) for floor, deviation in floors)]
    return filled(
        "best",
        heads=[{"text": text, "sort": sort} for text, sort in heads],
        rows=rows,
        foot=[*foot, *[""] * len(facts)] if _known(report.columns["floor"]) else [],
    )


def _known(values: "pd.Series[Any]") -> bool:
    return any(str(value) not in ("", "nan") for value in values)


def _fact(key: str, value: Any) -> _SortedCell:  # noqa: ANN401  # a word, or a number of weights
    """The cell of a fact; weights are in millions."""
    if key != "parameters":
        return {"text": str(value), "value": str(value), "left": True}
    return {"text": fixed(value / 1e6, 1 if value < 1e8 else 0), "value": fixed(value, 0), "left": False}


def _score(row: Mapping[Hashable, Any] | None) -> _SortedCell:
    """A score with its layer in smaller letters; empty where there is none."""
    if row is None:
        return {"text": "", "value": "", "left": False}
    mark = {FIRST: "best", MAYBE: "tied"}.get(row["group"], "none")
    value, layer = row["value"], f"{row['layer']}/{row['depth']}"
    text = score_text(value, (row["ci_high"] - row["ci_low"]) / 2)
    return {"text": text, "value": f"{value:.4f}", "left": False, "mark": mark, "note": layer}
