"""The start of the page of analyses: each question with its answer, and a table of the answers."""

from collections.abc import Sequence

import pandas as pd

from layerboard.leaderboards.blocks.blocks import (
    Block,
    Bullets,
    Heading,
    Link,
    Table,
    Text,
    heading_anchor,
    said,
)
from layerboard.leaderboards.blocks.display import number_text
from layerboard.leaderboards.inside.evidence import Evidence, among, by_layer
from layerboard.tasks.framework.registry import Headline

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
    blocks: list[Block] = [Heading(2, "At a glance"), said(READ), Bullets(tuple(items))]
    if not rows:
        return blocks
    labels = [each.label for each in analyses[0].known if any(each.label in row for row in rows)]
    table = pd.DataFrame(rows, columns=["number", *labels]).fillna("")
    return [*blocks, Table(table, caption="These numbers of every backbone", folded=True)]


def _linked(title: str, more: str = "") -> Text:
    """The title of a section as a link to it, followed by ``more``."""
    return Text(tuple(filter(None, (Link(title, heading_anchor(title)), more))))


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
