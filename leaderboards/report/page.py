"""The report of one suite as one HTML page that needs nothing else: no network, no other file."""

from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import Any

from leaderboards.board import Board
from leaderboards.charts.engine import library
from leaderboards.charts.style import looks
from leaderboards.display import page_name
from leaderboards.pages.csv import csv_text
from leaderboards.pages.inside.page import inside_page
from leaderboards.report import charts
from leaderboards.report import parts as chart_parts
from leaderboards.report.answer import answer_html
from leaderboards.report.collapsible import CollapsibleWriter, collapsibles
from leaderboards.report.content import Content, Sources
from leaderboards.report.examples import example_style
from leaderboards.report.packing import json_script, packed, packed_file, packed_matrix, script_digest
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
from leaderboards.sections.cost import cost_page
from leaderboards.sections.gaps import empty_cells, gap_blocks
from leaderboards.sections.order import section_blocks
from leaderboards.sections.provenance import provenance_blocks, run_sentence
from tasks.blocks import Block, Heading

ASSETS = Path(__file__).parent / "assets"


def report_page(content: Content, sources: Sources) -> str:
    """The page of one suite."""
    parts = [*_scored_parts(content), *_further_parts(content, sources)]
    title = f"layerboard: {content.suite}"
    run = run_sentence(content.board.records)
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
<footer><p>{escape(run)} One file, which asks nothing of any network.</p></footer>
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
    board = content.frames
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
    board = content.frames
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
    writer = CollapsibleWriter([*content.frames.backbones["backbone"]])
    parts = [likeness_part(content.likeness)] if content.likeness.matrices else []
    parts += _beyond_parts(content.board, writer)
    parts += [Part(one.anchor, one.title.lower(), one.title, one.html) for one in sources.sections]
    if len(content.board.analysed):
        inside = inside_page(content.board)
        said = writer.html(collapsibles(inside.blocks, "How to read this"))
        parts.append(Part("inside", "inside", "Inside the networks", said))
    tables = writer.html(
        collapsibles(_table_blocks(content), "How to read the tables", level=3), pictures=False
    )
    return [*parts, Part("tables", "all tables", "Every table, and where the numbers come from", tables)]


def _beyond_parts(board: Board, writer: CollapsibleWriter) -> list[Part]:
    """The section on what single layers at the usual size do not show; none where nothing of it was run."""
    blocks = section_blocks(board, "beyond")
    if not blocks:
        return []
    said = writer.html(collapsibles(blocks, ""))
    return [Part("beyond", "beyond one layer", "Beyond one layer: sizes, sets, transforms", said)]


def _table_blocks(content: Content) -> list[Block]:
    """The leaderboard's blocks: every number of the charts as a table."""
    board = content.board
    blocks = section_blocks(board, "tables")
    if len(board.plain):
        blocks += provenance_blocks(board, board.plain, content.numbers[0])
        blocks += gap_blocks(empty_cells(board))
    if len(board.costs):
        costs = cost_page(board)
        blocks += [Heading(2, costs.title), *costs.blocks]
    return blocks


def _data(content: Content) -> dict[str, Any]:
    """What the page's script draws."""
    board, costs = content.frames, content.costs
    labels = [*board.backbones["backbone"]]
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
        "steps": {name: list(steps) for name, steps in chart_parts.STEPS.items()},
        "few": chart_parts.FEW,
        "apart": chart_parts.APART,
        "looks": {name: asdict(one) for name, one in looks(labels, labels).items()},
        "groups": chart_parts.GROUPS,
    }
