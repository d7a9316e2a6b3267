"""The table of best layers: the page's script sorts and filters it, but it is complete without."""

from collections.abc import Iterator, Mapping
from math import isnan
from typing import Any

import pandas as pd
from markupsafe import Markup

from layerboard.leaderboards.blocks.display import fixed
from layerboard.leaderboards.board.frames import RANDOM
from layerboard.leaderboards.report.content import Report
from layerboard.leaderboards.report.templates.environment import filled
from layerboard.leaderboards.report.views import ReportChoice
from layerboard.leaderboards.sections.means import table_with_means

FACTS = {  # columns after the scores
    "family": "family",
    "parameters": "parameters, M",
    "supervision": "learned from",
    "licence": "licence",
}
HEADS = ("family", "backbone")  # columns of the leaderboard that are no scores
RANK = "mean rank"
SIZES = (5_000_000, 25_000_000, 50_000_000, 100_000_000, 350_000_000, 1_000_000_000)  # limits of a filter

SortedCell = dict[str, object]  # arguments of `tables.html` for a cell; ``key`` is the sort key


def best_table(report: Report, tasks: ReportChoice) -> Markup:
    """The leaderboard as on its page, with facts and filters, and floors at the end.

    Rows are sorted by mean rank if every backbone has a score in every column, else by the first column.
    """
    board, ranks = report.board, report.ranks
    facts = [key for key in FACTS if key == "family" or {*map(str, report.backbones[key])} - {"", "nan"}]
    scores = table_with_means(board).drop(columns=[*HEADS])
    kinds = {"backbone": "words"} | ({RANK: "rank"} if ranks else {})
    kinds |= dict.fromkeys(map(str, scores), "numbers")
    kinds |= {FACTS[key]: "numbers" if key == "parameters" else "words" for key in facts}
    cells = dict(zip((backbone.label for backbone in board.scored_backbones), _cells(scores), strict=True))
    rows: list[dict[str, Any]] = []
    for backbone in report.backbones.to_dict("records"):
        name, weights = str(backbone["backbone"]), float(backbone["parameters"])
        texts = {key: sorted_cell(str(backbone[key])) for key in FACTS}
        millions = fixed(weights / 1e6, 1 if weights < 1e8 else 0)
        texts["parameters"] = sorted_cell(millions, left=False, key=fixed(weights, 0))
        rank = [sorted_cell(f"{ranks[name]:.1f}", left=False, key=f"{ranks[name]:.4f}")] if ranks else []
        row = [sorted_cell(name) | {"anchor": report.looks[name]["anchor"]}, *rank]
        row += cells.get(name, [sorted_cell("")] * len(scores.columns))
        attributes = {"data-backbone": name} | {f"data-{key}": cell["key"] for key, cell in texts.items()}
        rows.append({"cells": [*row, *(texts[key] for key in facts)], "attributes": attributes})
    rows.sort(key=lambda row: float(row["cells"][1]["key"] or "-inf"), reverse=not ranks)
    now = {RANK: "ascending"} if ranks else {str(scores.columns[0]): "descending"}
    foot = [
        [f"{each.label}, ± s.d." if each.family == RANDOM else each.label, *([""] if ranks else [])]
        + [cell["text"] for cell in cells[each.label]]
        + [""] * len(facts)
        for each in board.scored_backbones
        if each.floor
    ]
    return filled(
        "best",
        tasks=tasks,
        files=[f"{numbers.name}.csv" for numbers in report.numbers],
        ranked=bool(ranks),
        filters=[*_filters(report.backbones)],
        heads=sorted_heads(kinds, now),
        rows=rows,
        foot=foot,
    )


def sorted_heads(kinds: Mapping[str, str], now: Mapping[str, str]) -> list[SortedCell]:
    """Heads of a table that can be sorted: what each sorts, ``words``, ``numbers`` or ``rank``; how now."""
    return [{"text": name, "sort": kind, "now": now.get(name, "none")} for name, kind in kinds.items()]


def sorted_cell(text: str, note: str = "", *, left: bool = True, key: object = None) -> SortedCell:
    """A cell of a table that can be sorted, by its text or by a key."""
    return {"text": text, "note": note, "left": left, "key": str(text if key is None else key)}


def _filters(backbones: pd.DataFrame) -> Iterator[tuple[str, str, dict[str, str]]]:
    """The attribute of rows that a filter reads, how it must fit, and the choices with their texts."""
    for key in ("family", "supervision", "licence"):
        if len(names := [name for name in dict.fromkeys(backbones[key].astype(str)) if name]) > 1:
            yield key, "whole", dict(zip(names, names, strict=True))
    sizes = backbones["parameters"].dropna()
    limits = [limit for limit in SIZES if (sizes <= limit).any() and (sizes > limit).any()]
    if limits:
        yield "parameters", "most", {str(limit): f"up to {limit // 1_000_000} M" for limit in limits}


def _cells(scores: pd.DataFrame) -> Iterator[list[SortedCell]]:
    """The cells of each row, shaded from the lowest to the highest score of a column."""
    values = scores.map(lambda cell: cell.value)
    low, width = values.min(), values.max() - values.min()
    shades = ((values - low) / width.where(width > 0)).fillna(1.0)
    for row, keys, shaded in zip(scores.to_numpy(), values.to_numpy(), shades.to_numpy(), strict=True):
        yield [
            {"text": cell.text, "note": cell.note, "mark": cell.mark, "key": fixed(key, 4), "left": False}
            | ({} if isnan(key) else {"style": f"--shade:{shade:.2f}"})
            for cell, key, shade in zip(row, keys, shaded, strict=True)
        ]
