"""The report of one suite as one self-contained HTML page: no network, no other file."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Any

from markupsafe import Markup

from layerboard.leaderboards.blocks.blocks import Block, Heading, Numbers, Picture, Table, Text
from layerboard.leaderboards.blocks.csv import numbers_text
from layerboard.leaderboards.blocks.display import plain_name
from layerboard.leaderboards.charts.engine import vega_script
from layerboard.leaderboards.charts.svg import svg_element
from layerboard.leaderboards.inside.page import inside_page
from layerboard.leaderboards.report import views
from layerboard.leaderboards.report.answer import answer_html, chart_words
from layerboard.leaderboards.report.content import Report
from layerboard.leaderboards.report.packing import packed, packed_json
from layerboard.leaderboards.report.table import best_table
from layerboard.leaderboards.report.templates.environment import PageSection, filled, offline_page
from layerboard.leaderboards.report.views import ReportChoice
from layerboard.leaderboards.sections.cost import cost_page
from layerboard.leaderboards.sections.order import section_blocks
from layerboard.leaderboards.sections.provenance import provenance_blocks, run_sentence
from layerboard.zoo.errors import counted

TOP = 7  # backbones whose lines are drawn at first: the best of the task
MANY = 24  # backbones above which charts of all show the best of each family first
TASK_VIEWS = ("curves", "panels", "ranking", "depth_map")
ROOM = 1_500_000  # maximum characters of all pictures of the page together
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"  # of charts
# the table of best layers, as the script reads it: a view without a chart
TABLE = {
    "frame": "scores",
    "csv": views.BEST,
    "backbones": "shown",
    "where": {"group": views.GROUPS, "vectors": ("",)},
    "steps": [0, 0],
}


def report_page(report: Report, examples: Sequence[PageSection] = ()) -> str:
    """The page of one suite, with the section of failures and successes if there is one."""
    suite, choices = report.board.suite, views.choices_of(report)
    name = plain_name(suite)  # own images are named by their folders
    return offline_page(
        *("page", "report", ["report", "examples"] if examples else ["report"]),
        scripts=" 'unsafe-eval'",  # which makes functions of chart expressions
        suite=f"own images in {name}" if name != suite else f"{suite} suite",
        scored=not report.best.empty,
        lead=_lead(report),
        looks=report.looks.values(),
        sections=[*_scored_sections(report, choices), *_further_sections(report, choices, examples)],
        run=run_sentence(report.board.records),
        data=packed_json(_data(report, choices)),
        library=packed(vega_script()),
    )


def _lead(report: Report) -> str:
    if report.best.empty:
        return "This suite has no scores; what its analyses found is below."
    toys = sum(facts.toy for backbone, facts in report.known if backbone in report.board.plain_backbones)
    count, kind = len(report.backbones), "trained on synthetic images"
    which = f"{counted(count, 'small networks')} {kind}"
    if toys < count:
        some = f", {toys} of them {'small networks' if toys > 1 else 'a small network'} {kind}"
        which = f"{counted(count, 'frozen backbones')}{some if toys else ''}"
    layers = counted(int(report.backbones["depth"].sum()), "layers")
    return (
        f"{which}; {layers} in all, each on {counted(len(report.board.columns), 'tasks')}. "
        "Scores are percent, higher is better; ± is the 95 % margin of error, or both ends are given."
    )


def _scored_sections(report: Report, choices: Mapping[str, ReportChoice]) -> list[PageSection]:
    if report.best.empty:
        return []
    count = len(report.backbones)
    listed = count if count <= MANY else report.backbones["family"].nunique()
    shared = {"choices": choices, "looks": report.looks, "rows": listed}
    best = "The best layer of each backbone in each task"
    sections = [
        PageSection("answer", "answer", "The answer", answer_html(report.answers, report)),
        PageSection("best", "best layers", best, best_table(report, choices["task"])),
        _viewed("task", "one task", "One task, layer by layer", TASK_VIEWS, shared),
    ]
    if report.axes:
        partly, measured = bool(report.best["ms"].isna().any()), len(report.measured_costs) > 0
        shared |= {"measured": measured, "partly": partly, "disturbed": report.disturbed}
        sections.append(_viewed("cost", "cost", "What quality costs", ["tradeoff"], shared))
    shared |= {"rows": len(report.board.columns)}
    return [*sections, _viewed("backbone", "one backbone", "One backbone, every task", ["task_map"], shared)]


def _viewed(
    name: str, short: str, title: str, names: Sequence[str], values: Mapping[str, Any]
) -> PageSection:
    """A section of charts, from the template of that name."""
    html = filled(name, views=[views.view_named(view) for view in names], **values)
    return PageSection(f"{name}-section", short, title, html)


def _further_sections(
    report: Report, choices: Mapping[str, ReportChoice], examples: Sequence[PageSection]
) -> list[PageSection]:
    """The sections on similarity, on examples and on provenance."""
    board, sections = report.board, list[PageSection]()
    writer = CollapsibleWriter(report.labels)
    if cka := report.cka_page:
        figures = writer.html(collapsibles(cka.blocks, "How to read the maps"))
        shared = {"choices": choices, "rows": 0, "figures": figures}
        sections.append(_viewed("alike", "similarity", "How alike layers are (CKA)", ["alike"], shared))
    if beyond := section_blocks(board, beyond=True):
        title = "Beyond one layer: kinds of vectors, trainings, sets of layers, variants"
        html = writer.html(collapsibles(beyond, "", level=3))
        sections.append(PageSection("beyond", "beyond one layer", title, html))
    sections += examples
    if board.analyses:
        html = writer.html(collapsibles(inside_page(board).blocks, "How to read this"))
        sections.append(PageSection("inside", "inside", "Inside the networks", html))
    # what is folded there, every layer by every metric, is drawn above
    blocks = [block for block in section_blocks(board, beyond=False) if not getattr(block, "folded", False)]
    blocks += provenance_blocks(board) if len(board.plain) else []
    if board.costs:
        costs = cost_page(board)
        blocks += [Heading(2, costs.title), *costs.blocks]
    parts = collapsibles(blocks, "How to read the tables", level=3)
    title, html = "Every table, and where the numbers come from", writer.html(parts, pictures=False)
    return [*sections, PageSection("tables", "all tables", title, html)]


Collapsible = tuple[str, list[Block]]  # a title and the blocks below it


def collapsibles(blocks: Iterable[Block], first: str, level: int = 2) -> list[Collapsible]:
    """Blocks grouped by headings down to a level; those before any heading are under the first title."""
    parts: list[Collapsible] = [(first, [])]
    for block in blocks:
        if isinstance(block, Heading) and block.level <= level:
            parts.append((block.text, []))
        elif not isinstance(block, Numbers) and not (isinstance(block, Text) and not any(block.pieces)):
            parts[-1][1].append(block)
    return [(title, inner) for title, inner in parts if inner]


class CollapsibleWriter:
    """Writes collapsible parts as HTML; pictures beyond the limit of characters are named, not drawn."""

    def __init__(self, backbones: Sequence[str], room: int = ROOM) -> None:
        self._backbones, self._room = backbones, room
        self._numbers = count()

    def html(self, parts: Sequence[Collapsible], *, pictures: bool = True) -> Markup:
        """Parts with their pictures or without; the first that has a table or a picture to show is open."""
        kinds = (Table, Picture) if pictures else (Table,)
        shows = (
            at for at, (_, blocks) in enumerate(parts) if any(isinstance(each, kinds) for each in blocks)
        )
        opened, drawn = next(shows, None), self._drawn if pictures else None
        return filled("collapsibles", parts=parts, opened=opened, drawn=drawn)

    def _drawn(self, picture: Picture) -> Markup | None:
        """A picture as SVG; None if the page has no room for it."""
        text = svg_element(picture, self._backbones, f"p{next(self._numbers)}-")
        if len(text) > self._room:
            return None
        self._room -= len(text)
        return Markup(text)  # noqa: S704 - escaped where it is written


def _data(report: Report, choices: Mapping[str, ReportChoice]) -> dict[str, Any]:
    """What the page's script reads: frames, charts, and what the choices mean."""
    words = views.series_words(report.looks) | views.matrix_words(report)
    words |= chart_words(report.answers)
    words |= {"tasks": [column.heading for column in report.board.columns], "font": FONT}
    drawn = {view.name: _view(view, choices) for view in views.VIEWS}
    return {
        "suite": report.board.page,
        "frames": {"scores": report.scores, "matrices": report.matrices},
        "choices": {choice.name: choice.words for choice in choices.values()},
        "views": drawn | {"best": TABLE},
        "words": words,
        "families": dict(zip(report.backbones["backbone"], report.backbones["family"], strict=True)),
        "files": {f"{numbers.name}.csv": packed(numbers_text(numbers)) for numbers in report.numbers},
        "highlight": report.highlight,
        "top": TOP,
        "many": MANY,
        "few": views.FEW,
    }


def _view(view: views.ReportView, choices: Mapping[str, ReportChoice]) -> dict[str, Any]:
    """A view as the script reads it, with the choices after which it is drawn again."""
    text = json.dumps([view.spec, view.what])
    words = {choice.name: {choice.name}.union(*choice.words.values()) for choice in choices.values()}
    words |= {"picked": {"picked"}}
    changed = [name for name, every in words.items() if re.search(rf"\{{=?({'|'.join(every)})\}}", text)]
    changed += [choice for choice in view.where.values() if isinstance(choice, str)]
    changed += {"picked": ["picked"], "listed": ["members"]}.get(view.backbones, [])
    changed += ["theme"] if view.renderer == "canvas" else []  # its ink is fixed when it is drawn
    names = ("spec", "frame", "csv", "what", "where", "backbones", "steps", "cursor", "renderer", "panel")
    return {name: getattr(view, name) for name in names} | {"choices": changed}
