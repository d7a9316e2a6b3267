"""The report of one suite as one self-contained HTML page: no network, no other file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from layerboard.leaderboards.blocks.blocks import Heading
from layerboard.leaderboards.blocks.csv import csv_text
from layerboard.leaderboards.blocks.display import plain_name
from layerboard.leaderboards.charts.engine import vega_script
from layerboard.leaderboards.charts.style import RAMP, looks
from layerboard.leaderboards.findings.answers import answers_of
from layerboard.leaderboards.inside.page import inside_page
from layerboard.leaderboards.report import charts
from layerboard.leaderboards.report.answer import answer_html
from layerboard.leaderboards.report.collapsible import CollapsibleWriter, collapsibles
from layerboard.leaderboards.report.content import FIRST, MAYBE, Report
from layerboard.leaderboards.report.packing import (
    json_script,
    packed,
    packed_file,
    packed_matrix,
    script_digest,
)
from layerboard.leaderboards.report.table import best_table
from layerboard.leaderboards.report.templates.environment import PageSection, filled
from layerboard.leaderboards.sections.cost import cost_page
from layerboard.leaderboards.sections.order import section_blocks
from layerboard.leaderboards.sections.provenance import provenance_blocks, run_sentence
from layerboard.zoo.errors import counted, printable

ASSETS = Path(__file__).parent / "assets"


def report_page(report: Report, examples: Sequence[PageSection] = ()) -> str:
    """The page of one suite, with the section of failures and successes if there is one."""
    scripts = [vega_script(), (ASSETS / "report.js").read_text(encoding="utf-8")]
    styles = ["report.css", "examples.css"] if examples else ["report.css"]
    style = "".join((ASSETS / name).read_text(encoding="utf-8") for name in styles)
    # the page runs its own scripts, which make functions of chart expressions, and reaches nothing
    policy = (
        f"default-src 'none'; script-src {' '.join(map(script_digest, scripts))} 'unsafe-eval'; style-src "
        "'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    suite = report.board.suite
    name = plain_name(suite)  # own images are named by their folders
    page = filled(
        "page",
        suite=name if name != suite else f"{suite} suite",
        policy=policy,
        style=Markup(style),  # noqa: S704 - our own file
        lead=_lead(report),
        sections=[*_scored_sections(report), *_further_sections(report, examples)],
        run=run_sentence(report.board.records),
        data=Markup(json_script(_data(report))),  # noqa: S704 - escaped there
        scripts=[Markup(script) for script in scripts],  # noqa: S704 - our own files
    )
    return printable(page)


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
        f"{which}; {layers} in all, each on {counted(len(report.columns), 'tasks')}. "
        "Scores are percent, higher is better; ± is the 95 % margin of error."
    )


def _scored_sections(report: Report) -> list[PageSection]:
    if report.best.empty:
        return []
    task = filled("task", tasks=[*report.columns["column"]])
    title = "The best layer of each backbone in each task"
    sections = [
        PageSection("answer", "answer", "The answer", answer_html(answers_of(report.board), report)),
        PageSection("best", "best layers", title, best_table(report)),
        PageSection("task-section", "one task", "One task, layer by layer", task),
    ]
    if report.axes:
        partly, measured = bool(report.costs["ms"].isna().any()), len(report.measured_costs) > 0
        html = filled("cost", axes=report.axes, measured=measured, partly=partly)
        sections.append(PageSection("cost-section", "cost", "What quality costs", html))
    title = "One backbone, every task"
    return [*sections, PageSection("backbone-section", "one backbone", title, filled("backbone"))]


def _further_sections(report: Report, examples: Sequence[PageSection]) -> list[PageSection]:
    """The sections on similarity, on examples and on provenance."""
    board, sections = report.board, list[PageSection]()
    writer = CollapsibleWriter(report.labels)
    matrices, left_out = report.cka
    if matrices:
        html = filled("similarity", left_out=left_out)
        sections.append(PageSection("alike-section", "similarity", "How alike layers are (CKA)", html))
    if beyond := section_blocks(board, beyond=True):
        title = "Beyond one layer: sets of layers, variants of a backbone"
        html = writer.html(collapsibles(beyond, "", level=3))
        sections.append(PageSection("beyond", "beyond one layer", title, html))
    sections += examples
    if board.analyses:
        html = writer.html(collapsibles(inside_page(board).blocks, "How to read this"))
        sections.append(PageSection("inside", "inside", "Inside the networks", html))
    blocks = section_blocks(board, beyond=False)
    blocks += provenance_blocks(board) if len(board.plain) else []
    if board.costs:
        costs = cost_page(board)
        blocks += [Heading(2, costs.title), *costs.blocks]
    parts = collapsibles(blocks, "How to read the tables", level=3)
    title, html = "Every table, and where the numbers come from", writer.html(parts, pictures=False)
    return [*sections, PageSection("tables", "all tables", title, html)]


def _data(report: Report) -> dict[str, Any]:
    frames = {name: getattr(report, name) for name in ("backbones", "columns", "best", "layers", "published")}
    return {
        "suite": report.board.page,
        "frames": {name: packed(frame) for name, frame in (frames | {"cost": report.costs}).items()},
        "axes": report.axes,
        "alike": [packed_matrix(matrix) for matrix in report.cka[0]],
        "files": {f"{numbers.name}.csv": packed_file(csv_text(numbers.frame)) for numbers in report.numbers},
        "charts": charts.all_charts(),
        "steps": charts.STEPS,
        "few": charts.FEW,
        "label": charts.LABEL,
        "near": charts.NEAR,
        "bands": charts.BANDS,
        "ramp": RAMP,
        "highlight": report.highlight,
        "looks": looks(report.backbones["backbone"], report.labels),
        "may_be_best": [FIRST, MAYBE],
    }
