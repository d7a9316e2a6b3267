"""The table of best layers as HTML: the page's script sorts and filters it, and it is whole without that."""

import math
from collections.abc import Hashable, Mapping
from html import escape
from typing import Any

import pandas as pd

from leaderboards.display import fixed, score_text
from leaderboards.report.board import FIRST, MAYBE, ReportFrames
from tasks.blocks import TIED

FACTS = (
    ("backbone", "backbone"),
    ("family", "family"),
    ("parameters", "weights, M"),
    ("supervision", "learned from"),
    ("licence", "licence"),
)
"""Columns of facts and their heads."""

LATER = ("supervision", "licence")
"""Those that stand behind the scores."""


def best_table(board: ReportFrames) -> str:
    """The best layer of each backbone in each column.

    Rows carry the facts that filters ask for, cells the numbers that they are sorted by, as ``data-``
    attributes. The random floor has a row of its own, which is neither sorted nor filtered.
    """
    facts = [
        (key, head) for key, head in FACTS if key in ("backbone", "family") or _said(board.backbones[key])
    ]
    before, after = ([one for one in facts if (one[0] in LATER) == later] for later in (False, True))
    heads = [_head(head, "words" if key != "parameters" else "numbers") for key, head in before]
    heads += [_head(str(name), "numbers") for name in board.columns["column"]]
    heads += [_head(head, "words") for _, head in after]
    cells = {(str(row["backbone"]), str(row["column"])): row for row in board.best.to_dict("records")}
    rows = []
    for one in board.backbones.to_dict("records"):
        body = "".join(_fact(key, one[key]) for key, _ in before)
        body += "".join(
            _cell(cells.get((str(one["backbone"]), str(name)))) for name in board.columns["column"]
        )
        body += "".join(_fact(key, one[key]) for key, _ in after)
        rows.append(f"<tr{_attributes(one)}>{body}</tr>\n")
    floors = _floors(board, len(before), len(after))
    foot = f"<tfoot>{floors}</tfoot>\n" if floors else ""
    return (
        '<div class="scroll tall" tabindex="0" role="region" aria-label="The best layer of each backbone">\n'
        '<table id="best-table" class="board"><caption>The best layer of each backbone, percent; small: the '
        f"layer. Bold: the best score; {TIED}: cannot be told from it.</caption>\n"
        f"<thead><tr>{''.join(heads)}</tr></thead>\n<tbody>\n{''.join(rows)}</tbody>\n{foot}</table>\n</div>\n"
    )


def count_text(value: float) -> str:
    """Weights in millions; "" where they are not known."""
    return "" if math.isnan(value) else fixed(value / 1e6, 1 if value < 1e8 else 0)


def _said(values: "pd.Series[Any]") -> bool:
    """Whether a fact is known of any backbone."""
    return bool(values.notna().any()) and any(str(value) not in ("", "nan") for value in values)


def _head(text: str, kind: str) -> str:
    """A head that sorts, by a button that the script puts to work."""
    side = ' class="left"' if kind == "words" else ""
    return (
        f'<th scope="col"{side} aria-sort="none"><button type="button" class="sort" data-kind="{kind}">'
        f"{escape(text)}</button></th>"
    )


def _attributes(one: Mapping[Hashable, Any]) -> str:
    """What filters ask for."""
    weights = float(str(one["parameters"]))
    known = {name: str(one[name]) for name in ("backbone", "family", "supervision", "licence")}
    known |= {"parameters": "" if math.isnan(weights) else f"{weights:.0f}"}
    return "".join(f' data-{name}="{escape(value)}"' for name, value in known.items())


def _fact(key: str, value: object) -> str:
    """The cell of a fact."""
    if key == "backbone":
        return f'<th scope="row" class="left" data-v="{escape(str(value))}">{escape(str(value))}</th>'
    if key == "parameters":
        weights = float(str(value))
        known = "" if math.isnan(weights) else f"{weights:.0f}"
        return f'<td data-v="{known}">{count_text(weights)}</td>'
    return f'<td class="left" data-v="{escape(str(value))}">{escape(str(value))}</td>'


def _cell(row: Mapping[Hashable, Any] | None) -> str:
    """A score with its layer; empty where there is none."""
    if row is None:
        return '<td data-v=""></td>'
    value, low, high = (float(str(row[name])) for name in ("value", "ci_low", "ci_high"))
    text = escape(score_text(value, (high - low) / 2))
    mark = {FIRST: "best", MAYBE: "tied"}.get(str(row["group"]), "")
    if mark == "best":
        text = f"<strong>{text}</strong>"
    elif mark == "tied":
        text += f' <abbr title="cannot be told from the best">{TIED}</abbr>'
    side = f' class="{mark}"' if mark else ""
    return f'<td{side} data-v="{value:.4f}">{text} <small>{row["layer"]}/{row["depth"]}</small></td>'


def _floors(board: ReportFrames, before: int, after: int) -> str:
    """The row of the random floor; "" without one."""
    if not board.columns["floor"].notna().any():
        return ""
    cells = "".join(
        f"<td>{score_text(floor, deviation)}</td>"
        for floor, deviation in zip(board.columns["floor"], board.columns["deviation"], strict=True)
    )
    first = f'<th scope="row" class="left">random floor, ± s.d.</th>{"<td></td>" * (before - 1)}'
    return f"<tr>{first}{cells}{'<td></td>' * after}</tr>"
