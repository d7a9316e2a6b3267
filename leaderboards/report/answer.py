"""The answer first: for each task the best backbone and layer, how sure that is, and what it costs."""

import math
from collections.abc import Sequence
from html import escape

import pandas as pd

from leaderboards.display import fixed, pooling_name, score_text
from leaderboards.report.board import FIRST, MAYBE, UNTESTED, Board
from leaderboards.report.cost import Costs

NAMED = 6
"""Backbones that a card names at most of those that cannot be told from the best."""

FEW = 3
"""Backbones that a card names at most of those that were not compared."""


def answer_html(board: Board, costs: Costs) -> str:
    """A card for each column that has a score."""
    cards = [
        _card(column, rows, costs)
        for column in board.columns.to_dict("records")
        if len(rows := board.best[board.best["column"] == column["column"]])
    ]
    return f'<ol class="cards">\n{"".join(cards)}</ol>\n'


def _card(column: dict[str, object], rows: pd.DataFrame, costs: Costs) -> str:
    """The card of one column, whose backbones stand highest first."""
    top = rows.iloc[0]
    spread = (top["ci_high"] - top["ci_low"]) / 2
    layer, depth = int(top["layer"]), int(top["depth"])
    pooling = escape(pooling_name(str(top["pooling"])))
    facts = [*_sure(rows), *_honest(top), *_floor(column), *_cost(str(top["backbone"]), layer, costs)]
    lines = "".join(f"<li>{fact}</li>" for fact in facts)
    return (
        f'<li class="card"><h3>{escape(str(column["title"]))}</h3>'
        f'<p class="where">{escape(str(column["column"]))} on {escape(str(column["dataset"]))}</p>'
        f'<p class="winner"><span class="name">{escape(str(top["backbone"]))}</span> '
        f'<span class="layer">layer {layer} of {depth}, {pooling}</span></p>'
        f'<p class="score">{_score(float(top["value"]), float(spread))}</p>'
        f"<ul>{lines}</ul></li>\n"
    )


def _score(value: float, spread: float) -> str:
    """A score with its spread in smaller type."""
    number, _, around = score_text(value, spread).partition(" ± ")
    return f'{number}<span class="unit"> %</span>' + (
        f'<span class="spread"> ± {around}</span>' if around else ""
    )


def _sure(rows: pd.DataFrame) -> list[str]:
    """Which backbones may be the best, too, as far as they were compared."""
    equal = _names(rows[rows["group"] == FIRST])[1:]
    maybe, untested = (_names(rows[rows["group"] == group]) for group in (MAYBE, UNTESTED))
    facts = []
    if len(rows) == 1:
        return ["the only backbone with a score here"]
    if equal:
        facts.append(f"shares its score with {_listed(equal)}")
    if maybe:
        facts.append(f"<b>cannot be told from</b> {_listed(maybe)}")
    if untested:
        several = len(untested) > FEW
        facts.append(f"not compared with {f'{len(untested)} others' if several else _listed(untested)}")
    return facts or ["better than every other backbone, with 95 % confidence"]


def _honest(top: "pd.Series[object]") -> list[str]:
    """The score of an honest choice of the layer, where one was made."""
    honest = float(str(top["honest"]))
    return [] if math.isnan(honest) else [f"{fixed(honest, 1)} % with the layer chosen on other items"]


def _floor(column: dict[str, object]) -> list[str]:
    """What pure noise reaches."""
    floor = float(str(column["floor"]))
    return [] if math.isnan(floor) else [f"random features reach {fixed(floor, 1)} %"]


def _cost(backbone: str, layer: int, costs: Costs) -> list[str]:
    """What the backbone costs where it is cut behind the layer."""
    rows = costs.layers[(costs.layers["backbone"] == backbone) & (costs.layers["layer"] == layer)]
    if rows.empty:
        return []
    row = rows.iloc[0]
    words = [] if math.isnan(row["ms"]) else [f"{row['ms']:.3g} ms an image"]
    words += [] if math.isnan(row["dim"]) else [f"{int(row['dim']):,} numbers a vector"]
    known = not math.isnan(row["parameters"])
    about = "" if costs.measured else "about "
    words += [f"{about}{_millions(row['parameters'])} M weights"] if known else []
    return [", ".join(words)] if words else []


def _millions(count: float) -> str:
    """A number in millions, in two digits where it is small."""
    return f"{count / 1e6:.2g}" if count < 1e7 else f"{count / 1e6:,.0f}"


def _names(rows: pd.DataFrame) -> list[str]:
    return [str(name) for name in rows["backbone"]]


def _listed(names: Sequence[str]) -> str:
    """Names, of many the first few."""
    shown = ", ".join(escape(name) for name in names[:NAMED])
    return f"{shown} and {len(names) - NAMED} more" if len(names) > NAMED else shown
