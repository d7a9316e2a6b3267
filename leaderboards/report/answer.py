"""The answer first: for each task the best backbone and layer, how sure that is, and what it costs."""

import math
from collections.abc import Mapping, Sequence

import pandas as pd
from markupsafe import Markup

from layerboard.leaderboards.answers import Answer
from layerboard.leaderboards.display import (
    fixed,
    ms_text,
    pooling_name,
    ranges_text,
    score_text,
    task_display,
)
from layerboard.leaderboards.report.content import Report
from layerboard.leaderboards.report.html import filled
from layerboard.tasks.blocks import Strong, Text
from layerboard.zoo.errors import some

NAMED = 6  # backbones that a card names at most of those that are tied with the best
HONEST = "if the layer is chosen on half of the test data and scored on the rest"

Fact = str | tuple[Strong, str]


def answer_html(answers: Sequence[Answer], report: Report) -> Markup:
    """A card for each column that has a score."""
    labels, cards = report.board.labels, []
    for answer in answers:
        column, label = answer.column, labels[answer.backbone]
        facts = [*_sure(answer, labels), *_values(answer), *_cost(answer, label, report.costs)]
        score, _, spread = score_text(answer.score, (answer.ci_high - answer.ci_low) / 2).partition(" ± ")
        layer = f"layer {answer.layer} of {answer.depth}, {pooling_name(answer.pooling)}"
        title = task_display(column.task).title
        card = {"title": title, "heading": column.heading, "dataset": column.dataset_name}
        card |= {"backbone": label, "layer": layer, "score": score, "spread": spread}
        cards.append(card | {"facts": [Text((fact,) if isinstance(fact, str) else fact) for fact in facts]})
    return filled("answer", cards=cards)


def _sure(answer: Answer, labels: Mapping[str, str]) -> list[Fact]:
    """The backbones and layers that are tied with the best, as far as they were compared."""
    facts: list[Fact] = []
    others = len(answer.column.best) - 1
    if not others:
        facts.append("the only backbone with a score here")
    elif answer.rivals:
        rivals = some((labels[name] for name in answer.rivals), NAMED)
        facts.append((Strong("tied with the best:"), f" {rivals}"))
    elif answer.compared == others:
        facts.append("better than every other backbone, with 95 % confidence")
    elif not answer.compared:
        facts.append("not compared with the other backbones: per-item scores of the same images are missing")
    if answer.untested and answer.compared:
        facts.append(f"not compared with {some(labels[name] for name in answer.untested)}")
    if answer.layers:
        several = "layers" if len(answer.layers) > 1 else "layer"
        facts.append(f"tied with its {several} {ranges_text(list(answer.layers))}")
    return facts


def _values(answer: Answer) -> list[str]:
    """Other scores that the best one is read against."""
    facts = []
    if not math.isnan(answer.honest):
        facts.append(f"{fixed(answer.honest, 1)} % {HONEST}")
    facts += [
        f"{fixed(other.score, 1)} % from another pooling: {pooling_name(other.pooling)}, layer {other.layer}"
        for other in answer.others
    ]
    facts += [f"random features reach {fixed(floor, 1)} %" for floor in answer.column.floors["mean"][:1]]
    return facts


def _cost(answer: Answer, label: str, costs: pd.DataFrame) -> list[str]:
    """What the backbone costs where it is cut behind the layer."""
    device = f" on {answer.device}" if answer.device else ""
    words = [] if math.isnan(answer.milliseconds) else [f"{ms_text(answer.milliseconds)} ms an image{device}"]
    rows = costs[(costs["backbone"] == label) & (costs["layer"] == answer.layer)]
    for row in rows.head(1).to_dict("records"):
        words += [] if math.isnan(row["dim"]) else [f"{int(row['dim']):,}-dimensional vectors"]
        about = "about " if math.isnan(row["ms"]) else ""
        if not math.isnan(count := row["parameters"]):
            millions = f"{count / 1e6:.2g}" if count < 1e7 else f"{count / 1e6:,.0f}"
            words.append(f"{about}{millions} M parameters")
    return [", ".join(words)] if words else []
