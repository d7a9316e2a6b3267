"""The page of analyses of a suite: what its backbones do inside, without ranking, and first the answers."""

import re
from collections.abc import Sequence

import pandas as pd

from layerboard.leaderboards.blocks import blocks
from layerboard.leaderboards.blocks.blocks import Block, Heading, Link, Page, Plot, Table, Text, said
from layerboard.leaderboards.blocks.display import number_text
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.frames import by_layer
from layerboard.leaderboards.inside.analysis import analysis_blocks
from layerboard.leaderboards.inside.evidence import Evidence, among
from layerboard.leaderboards.sections.provenance import provenance_blocks
from layerboard.tasks.framework.registry import Headline

INSIDE_NOTE = """\
Analyses of each layer: attention maps, attention distance, overlap with objects, skip-connection norms,
receptive fields. They **describe and do not rank**: higher is not better, and none of them counts for the
leaderboard. ± is the 95 % margin of error, or both ends are given. Layers count from 1; an empty cell is a
missing number, not a zero, and the last section gives the reason."""


def inside_page(board: Board) -> Page:
    """The page of analyses of one suite, which must have some; ranking tasks are only drawn."""
    title, analyses = f"Inside the backbones: {board.suite}", board.analyses
    evidence = [Evidence(analysis, analyses.backbones, analyses.arrays) for analysis in analyses.groups]
    further = provenance_blocks(analyses)
    titles = [block.text for block in further if isinstance(block, Heading) and block.level == 2]
    parts: list[Block] = [said(INSIDE_NOTE), *glance_blocks(evidence, titles)]
    parts += [block for each in evidence for block in analysis_blocks(each)]
    nothing = "{title}: 0 in every block of every backbone."
    shown = (
        said(nothing, title=block.title)
        if isinstance(block, Plot) and [*block.frame["y"].dropna().unique()] == [0]
        else block
        for block in (*parts, *further)
    )
    return Page(analyses.page, title, tuple(shown))


READ = "Each analysis with its question, and the lowest and highest answer over the backbones:"

Answers = dict[str, tuple[float, str]]  # by label of the backbone: a number, and its layer


def glance_blocks(analyses: Sequence[Evidence], further: Sequence[str]) -> list[Block]:
    """The questions of all analyses with their answers, links to further sections, and a table of answers."""
    items: list[str | Text] = []
    rows: list[dict[str, str]] = []
    tasks = [evidence.analysis.task for evidence in analyses]
    for evidence in analyses:
        task, dataset = evidence.analysis.task, evidence.analysis.dataset_name
        where = dataset if tasks.count(task) > 1 else ""
        numbers = {each: _answers(evidence, each) for each in evidence.entry.headlines}
        extremes = [_extremes(headline, answers) for headline, answers in numbers.items() if answers]
        more = " ".join(filter(None, [evidence.entry.asks, *extremes]))
        items.append(_linked(evidence.title, f": {more}" if more else ""))
        for headline, answers in numbers.items():
            cells = {label: number_text(value) + layer for label, (value, layer) in answers.items()}
            rows += [{"number": ", ".join(filter(None, [headline.title, where]))} | cells] if cells else []
    items += [_linked(title) for title in further]
    parts: list[Block] = [Heading(2, "At a glance"), said(READ), blocks.Bullets(tuple(items))]
    if not rows:
        return parts
    labels = [each.label for each in analyses[0].known if any(each.label in row for row in rows)]
    table = pd.DataFrame(rows, columns=["number", *labels]).fillna("")
    return [*parts, Table(table, caption="These numbers of every backbone", folded=True)]


def _linked(title: str, more: str = "") -> Text:
    """The title of a section as a link to it, followed by ``more``."""
    # its anchor, as GitHub and Markdown sites derive it from the words
    anchor = "#" + re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
    return Text(tuple(filter(None, (Link(title, anchor), more))))


def _answers(evidence: Evidence, headline: Headline) -> Answers:
    """The headline number of each backbone that has it, with its block if the headline looks for one."""
    rows = evidence.rows[(evidence.rows["metric"] == headline.metric) & (evidence.rows["head"] == -1)]
    rows = rows[(rows["pooling"] == headline.pooling) | (headline.pooling == "")]
    rows = rows[(rows["tap"] == headline.tap) | (headline.tap == "")]
    rows = rows[(rows["layer"] < 0) == (headline.block == "whole")]
    answers = {}
    for backbone in among(evidence.known, rows):
        numbers = by_layer(rows, backbone.name)
        lowest = min(numbers, key=lambda number: number[1])
        layer, value = {"lowest": lowest, "first": numbers[0]}.get(headline.block, numbers[-1])
        answers[backbone.label] = value, f" ({layer})" if headline.block == "lowest" else ""
    return answers


def _extremes(headline: Headline, answers: Answers) -> str:
    """``Title: 0.5 (a) to 0.9 (b).``, or the one number that all share."""
    low, high = (end(answers, key=lambda label: answers[label][0]) for end in (min, max))
    same = low == high and len(answers) > 1
    ends = [f"{number_text(answers[label][0])} ({'all' if same else label})" for label in {low: 0, high: 0}]
    title = headline.title[0].upper() + headline.title[1:]
    return f"{title}: {' to '.join(ends)}."
