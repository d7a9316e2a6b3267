"""The table of best layers: the page's script sorts and filters it, but it is complete without."""

from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import pandas as pd
from markupsafe import Markup

from layerboard.leaderboards.blocks.display import fixed, score_text
from layerboard.leaderboards.board.differences import Estimate
from layerboard.leaderboards.report.choices import Choice
from layerboard.leaderboards.report.content import FIRST, MAYBE, Report
from layerboard.leaderboards.report.templates.environment import filled

FACTS = {  # columns after the scores
    "family": "family",
    "parameters": "parameters, M",
    "supervision": "learned from",
    "licence": "licence",
}
RANK = "mean rank"
SIZES = (5_000_000, 25_000_000, 50_000_000, 100_000_000, 350_000_000, 1_000_000_000)  # limits of a filter

_SortedCell = dict[str, str | bool]  # arguments of `tables.html` for a cell; ``value`` is the sort key


def best_table(report: Report, tasks: Choice) -> Markup:
    """The best layer of each backbone in each column, with filters above, and floors at the end.

    Rows are sorted by mean rank if every backbone has a score in every column, else by the first column.
    """
    facts = [key for key in FACTS if key == "family" or _known(report.backbones[key])]
    columns, ranks = [str(name) for name in report.columns["column"]], report.ranks
    kinds = {"backbone": "words"} | ({RANK: "rank"} if ranks else {}) | dict.fromkeys(columns, "numbers")
    kinds |= {FACTS[key]: "numbers" if key == "parameters" else "words" for key in facts}
    scores = _shaded(report.best)
    rows = []
    for backbone in report.backbones.to_dict("records"):
        name = str(backbone["backbone"])
        rank = [_rank(ranks[name])] if ranks else []
        named = {"note": str(backbone["claim"]), "anchor": report.looks[name]["anchor"]}
        cells = [_fact("backbone", name) | named, *rank]
        cells += [_score(scores.get((name, column))) for column in columns]
        cells += [_fact(key, backbone[key]) for key in facts]
        # filters use attributes of the row
        known = {key: str(backbone[key]) for key in ("backbone", "family", "supervision", "licence")}
        known["parameters"] = fixed(backbone["parameters"], 0)
        attributes = {f"data-{key}": value for key, value in known.items()}
        rows.append((float(cells[1]["value"] or "-inf"), {"cells": cells, "attributes": attributes}))
    rows.sort(key=lambda row: row[0], reverse=not ranks)
    now = {RANK: "ascending"} if ranks else {columns[0]: "descending"}
    noise = zip(report.columns["floor"], report.columns["deviation"], strict=True)
    floors = {
        "random floor, ± s.d.": [score_text(*floor) for floor in noise],
        "raw pixels": [score_text(floor, float("nan")) for floor in report.columns["pixels"]],
    }
    return filled(
        "best",
        tasks=tasks,
        files=[f"{numbers.name}.csv" for numbers in report.numbers],
        filters=[*_filters(report.backbones)],
        heads=[{"text": name, "sort": kind, "now": now.get(name, "none")} for name, kind in kinds.items()],
        rows=[row for _, row in rows],
        foot=[
            [title, *([""] if ranks else []), *scores, *[""] * len(facts)]
            for title, scores in floors.items()
            if any(scores)
        ],
        ranked=bool(ranks),
    )


def _filters(backbones: pd.DataFrame) -> Iterator[tuple[str, str, dict[str, str]]]:
    """The attribute of rows that a filter reads, how it must fit, and the choices with their texts."""
    for key in ("family", "supervision", "licence"):
        if len(names := [name for name in dict.fromkeys(backbones[key].astype(str)) if name]) > 1:
            yield key, "whole", dict(zip(names, names, strict=True))
    sizes = backbones["parameters"].dropna()
    limits = [limit for limit in SIZES if (sizes <= limit).any() and (sizes > limit).any()]
    if limits:
        yield "parameters", "most", {str(limit): f"up to {limit // 1_000_000} M" for limit in limits}


def _shaded(best: pd.DataFrame) -> dict[tuple[str, str], dict[Hashable, Any]]:
    """Scores by backbone and column, each with its ``shade``: 1 for the column's best, 0 for its lowest."""
    values = best.groupby("column")["value"]
    low, high = values.transform("min"), values.transform("max")
    rows = best.assign(shade=((best["value"] - low) / (high - low)).fillna(1.0)).to_dict("records")
    return {(row["backbone"], row["column"]): row for row in rows}


def _known(values: "pd.Series[Any]") -> bool:
    return any(str(value) not in ("", "nan") for value in values)


def _fact(key: str, value: Any) -> _SortedCell:  # noqa: ANN401  # a word, or a number of weights
    """The cell of a fact; weights are in millions."""
    if key != "parameters":
        return {"text": str(value), "value": str(value), "left": True}
    return {"text": fixed(value / 1e6, 1 if value < 1e8 else 0), "value": fixed(value, 0), "left": False}


def _rank(rank: Estimate) -> _SortedCell:
    note = f"{rank.low:.1f} to {rank.high:.1f}" if rank.low == rank.low else ""
    return {"text": f"{rank.value:.1f}", "value": f"{rank.value:.4f}", "left": False, "note": note}


def _score(row: Mapping[Hashable, Any] | None) -> _SortedCell:
    """A score with its layer in smaller letters; empty without a score."""
    if row is None:
        return {"text": "", "value": "", "left": False}
    mark = {FIRST: "best", MAYBE: "tied"}.get(row["group"], "none")
    value, layer = row["value"], f"{row['layer']}/{row['depth']}"
    text = score_text(value, (row["ci_high"] - row["ci_low"]) / 2)
    shade = f"--shade:{row['shade']:.2f}"
    return {"text": text, "value": f"{value:.4f}", "left": False, "mark": mark, "note": layer, "style": shade}
