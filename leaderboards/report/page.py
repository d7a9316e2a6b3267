"""The report of one suite as one HTML page that needs nothing else: no network, no other file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd

from leaderboards.choices.answers import Answer, answers
from leaderboards.choices.gaps import empty_cells
from leaderboards.choices.selection import columns_of, is_analysis, newest, score_rows
from leaderboards.choices.ties import column_ties
from leaderboards.display import inside_name, page_name
from leaderboards.literature import Published
from leaderboards.pages.best import best_blocks
from leaderboards.pages.blocks import Block, Numbers
from leaderboards.pages.csv import csv_text
from leaderboards.pages.inside.numbers import inside_frame
from leaderboards.pages.inside.page import inside_page
from leaderboards.pages.layers import layer_blocks
from leaderboards.pages.page import gap_blocks
from leaderboards.pages.provenance import provenance_blocks, run_sentence
from leaderboards.pages.published import published_blocks
from leaderboards.pages.similarity import similarity_blocks
from leaderboards.pages.svg.colours import SERIES
from leaderboards.pages.tidy import tidy_frame
from leaderboards.pages.twins import twin_blocks
from leaderboards.records.record import of_suite
from leaderboards.report import charts
from leaderboards.report.alike import Likeness, likeness
from leaderboards.report.answer import answer_html
from leaderboards.report.board import Board, ColumnTies, board_of
from leaderboards.report.cost import Costs, costs_of
from leaderboards.report.engine import library
from leaderboards.report.examples import example_style
from leaderboards.report.facts import Facts
from leaderboards.report.folds import Folder, folds
from leaderboards.report.packing import json_script, packed, packed_file, packed_matrix, script_digest
from leaderboards.report.section import Section
from leaderboards.report.table import best_table
from leaderboards.report.views import (
    DOWNLOAD,
    FILTERS,
    Part,
    cost_part,
    likeness_part,
    one_backbone_part,
    one_task_part,
)

ASSETS = Path(__file__).parent / "assets"


@dataclass(frozen=True, slots=True)
class Sources:
    """What a report is made of beside records; all of it may be missing.

    Attributes:
        items: Folder of the per-item measurements, by which backbones are compared.
        arrays: Folder of what analyses kept, of which pictures are drawn.
        facts: What is known of backbones, by name.
        published: Numbers of others.
        sections: Sections that others wrote, such as failures and successes.
    """

    items: Path | None = None
    arrays: Path | None = None
    facts: Mapping[str, Facts] = field(default_factory=dict)
    published: Sequence[Published] = ()
    sections: Sequence[Section] = ()


@dataclass(frozen=True, slots=True)
class Content:
    """Everything that is said of one suite, before it is written.

    Attributes:
        suite: Its name.
        scores: Its newest records that rank, or compare layers.
        inside: Its newest records of analyses.
        ties: For the `Column.key` of each column, what is tied with its best.
        answers: The best of each column.
        board: The scores as frames.
        costs: What each depth costs.
        likeness: CKA.
        numbers: The tables of all numbers, as the leaderboard's pages have them: of scores, of analyses.
    """

    suite: str
    scores: pd.DataFrame
    inside: pd.DataFrame
    ties: ColumnTies
    answers: tuple[Answer, ...]
    board: Board
    costs: Costs
    likeness: Likeness
    numbers: tuple[Numbers, ...]


def content_of(records: pd.DataFrame, suite: str, sources: Sources) -> Content:
    """What the records say of one suite.

    Args:
        records: Columns of `Record`; other suites are left out.
        suite: Name of the suite.
        sources: What else there is.
    """
    everything = newest(of_suite(records, suite))
    inside = is_analysis(everything)
    own = everything[~inside]
    ties = column_ties(score_rows(own), sources.items) if sources.items is not None else {}
    board = board_of(own, ties, sources.facts, sources.published)
    costs = costs_of(everything, sources.facts)
    inner = everything[inside]
    numbers = _numbers(own, inner, suite)
    found = tuple(answers(everything, None, ties))
    return Content(suite, own, inner, ties, found, board, costs, likeness(own), numbers)


def _numbers(own: pd.DataFrame, inside: pd.DataFrame, suite: str) -> tuple[Numbers, ...]:
    """The tables of all numbers of a suite, of those kinds that it has."""
    found = [Numbers(tidy_frame(own, suite), page_name(suite))] if len(own) else []
    return (*found, *([Numbers(inside_frame(inside, suite), inside_name(suite))] if len(inside) else []))


def report_page(content: Content, sources: Sources) -> str:
    """The page of one suite."""
    parts = [*_scored_parts(content), *_further_parts(content, sources)]
    title = f"layerboard: {content.suite}"
    every = [frame for frame in (content.scores, content.inside) if len(frame)]
    data = json_script(_data(content))
    script = (ASSETS / "report.js").read_text(encoding="utf-8")
    engine = library()
    links = "".join(f'<li><a href="#{part.anchor}">{escape(part.short)}</a></li>' for part in parts)
    body = "".join(map(_section, parts))
    return f"""<!doctype html>
<html lang="en" class="plain">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{escape(_policy(engine, script))}">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<style>
{(ASSETS / "report.css").read_text(encoding="utf-8")}{example_style() if sources.sections else ""}</style>
</head>
<body>
<a class="skip" href="#main">To the content</a>
<header class="top">
<p class="brand">layerboard</p>
<nav aria-label="Sections"><ul>{links}</ul></nav>
<button type="button" id="theme" class="needs-script" aria-pressed="false">dark</button>
</header>
<main id="main">
<h1>Which backbone, which layer? <span>{escape(content.suite)}</span></h1>
<p class="lead">{escape(_lead(content))}</p>
<noscript><p class="note">Without JavaScript there are no charts, no filters and no sorting; the tables below
hold all their numbers.</p></noscript>
{body}</main>
<footer><p>{escape(run_sentence(pd.concat(every)))} One file, which asks nothing of any network.</p></footer>
<div id="tip" role="status" hidden></div>
<script type="application/json" id="data">{data}</script>
<script>{engine}</script>
<script>{script}</script>
</body>
</html>
"""


def _policy(*scripts: str) -> str:
    """What the page may do: run its own scripts, which make functions of chart expressions; reach nothing."""
    digests = " ".join(map(script_digest, scripts))
    return (
        f"default-src 'none'; script-src {digests} 'unsafe-eval'; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _lead(content: Content) -> str:
    """What was measured, in a sentence."""
    board = content.board
    if board.best.empty:
        return "This suite has no scores; what its analyses found is below."
    layers = int(board.backbones["depth"].sum())
    return (
        f"{len(board.backbones)} frozen backbones, every one of their {layers:,} layers, "
        f"{len(board.columns)} tasks. Higher is better, 100 is perfect; ± is half a 95 % interval, and who "
        "cannot be told from the best is named with it."
    )


def _section(part: Part) -> str:
    """A section with its heading."""
    return (
        f'<section id="{escape(part.anchor)}" aria-labelledby="{escape(part.anchor)}-title">\n'
        f'<h2 id="{escape(part.anchor)}-title">{escape(part.title)}</h2>\n{part.html}</section>\n'
    )


def _scored_parts(content: Content) -> list[Part]:
    """The sections on scores; none where nothing was scored."""
    board = content.board
    if board.best.empty:
        return []
    table = FILTERS + best_table(board) + DOWNLOAD
    return [
        Part("answer", "answer", "The answer", answer_html(content.answers, board, content.costs)),
        Part("best", "best layers", "The best layer of each backbone", table),
        one_task_part(board),
        *cost_part(content.costs),
        one_backbone_part(),
    ]


def _further_parts(content: Content, sources: Sources) -> list[Part]:
    """The sections on likeness, on what others wrote and on what stands behind the numbers."""
    folder = Folder()
    parts = [likeness_part(content.likeness)] if content.likeness.matrices else []
    parts += [Part(one.anchor, one.title.lower(), one.title, one.html) for one in sources.sections]
    if len(content.inside):
        inside = inside_page(content.inside, content.suite, sources.arrays)
        said = folder.html(folds(inside.blocks, "How to read this"))
        parts.append(Part("inside", "inside", "Inside the networks", said))
    tables = folder.html(
        folds(_table_blocks(content, sources), "How to read the tables", level=3), pictures=False
    )
    return [*parts, Part("tables", "all tables", "Every table, and where the numbers come from", tables)]


def _table_blocks(content: Content, sources: Sources) -> list[Block]:
    """The leaderboard's blocks: every number of the charts as a table."""
    own, blocks = content.scores, list[Block]()
    scores = score_rows(own)
    columns = columns_of(scores)
    if columns:
        blocks += [
            *best_blocks(scores, columns, content.ties),
            *layer_blocks(scores, columns, pictures=False),
        ]
    if len(content.board.published):
        blocks += published_blocks(own, sources.published)
    if len(own):
        blocks += [*similarity_blocks(own), *twin_blocks(own)]
        blocks += provenance_blocks(own, content.numbers[0])
        blocks += gap_blocks(empty_cells(own))
    return blocks


def _data(content: Content) -> dict[str, Any]:
    """What the page's script draws."""
    board, costs = content.board, content.costs
    return {
        "suite": page_name(content.suite),
        "frames": {
            "backbones": packed(board.backbones),
            "columns": packed(board.columns),
            "best": packed(board.best),
            "layers": packed(board.layers),
            "published": packed(board.published),
            "cost": packed(costs.layers),
        },
        "axes": [list(axis) for axis in costs.axes],
        "alike": [packed_matrix(one) for one in content.likeness.matrices],
        "files": {f"{one.name}.csv": packed_file(csv_text(one)) for one in content.numbers},
        "charts": charts.all_charts(),
        "steps": {name: list(steps) for name, steps in charts.STEPS.items()},
        "few": charts.FEW,
        "apart": charts.APART,
        "series": {"colours": list(SERIES), "shapes": list(charts.SHAPES), "groups": charts.GROUPS},
    }
