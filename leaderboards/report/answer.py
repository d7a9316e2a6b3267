"""The answer first: for each task the best backbone and layer, how sure that is, and what it costs."""

import math
from collections.abc import Mapping, Sequence
from html import escape

from leaderboards.answers import Answer
from leaderboards.display import fixed, pooling_name, ranges_text, score_text
from leaderboards.report.board import ReportFrames
from leaderboards.report.cost import Costs

NAMED = 6
"""Backbones that a card names at most of those that cannot be told from the best."""

FEW = 3
"""Backbones that a card names at most of those that were not compared."""


def answer_html(answers: Sequence[Answer], board: ReportFrames, costs: Costs) -> str:
    """A card for each column that has a score."""
    labels = dict(zip(board.backbones["name"], board.backbones["backbone"], strict=True))
    titles = dict(zip(board.columns["column"], board.columns["title"], strict=True))
    floors = dict(zip(board.columns["column"], board.columns["floor"].astype(float), strict=True))
    scored = board.best["column"].value_counts()
    cards = []
    for one in answers:
        heading = one.column.heading
        facts = _sure(one, int(scored[heading]) - 1, labels)
        facts += _values(one, floors[heading])
        facts += _cost(one, labels[one.backbone], costs)
        cards.append(_card(one, titles[heading], labels[one.backbone], facts))
    return f'<ol class="cards">\n{"".join(cards)}</ol>\n'


def _card(one: Answer, title: str, label: str, facts: Sequence[str]) -> str:
    """The card of one column, with what is said of it."""
    pooling = escape(pooling_name(one.pooling))
    lines = "".join(f"<li>{fact}</li>" for fact in facts)
    return (
        f'<li class="card"><h3>{escape(title)}</h3>'
        f'<p class="where">{escape(one.column.heading)} on {escape(one.column.dataset_name)}</p>'
        f'<p class="winner"><span class="name">{escape(label)}</span> '
        f'<span class="layer">layer {one.layer} of {one.depth}, {pooling}</span></p>'
        f'<p class="score">{_score(one)}</p>'
        f"<ul>{lines}</ul></li>\n"
    )


def _score(one: Answer) -> str:
    """A score with its spread in smaller type."""
    number, _, around = score_text(one.score, (one.ci_high - one.ci_low) / 2).partition(" ± ")
    sure = f'<span class="spread"> ± {around}</span>' if around else ""
    return f'{number}<span class="unit"> %</span>{sure}'


def _sure(one: Answer, others: int, labels: Mapping[str, str]) -> list[str]:
    """Which backbones and layers may be the best, too, as far as they were compared."""
    if not others:
        facts = ["the only backbone with a score here"]
    elif one.rivals:
        facts = [f"<b>cannot be told from</b> {_listed([labels[name] for name in one.rivals], NAMED)}"]
    elif one.compared == others:
        facts = ["better than every other backbone, with 95 % confidence"]
    elif not one.compared:
        facts = ["not compared with the other backbones, for want of measurements of the same images"]
    else:
        facts = []
    if one.untested and one.compared:
        facts.append(f"not compared with {_listed([labels[name] for name in one.untested], FEW)}")
    if one.layers:
        several = "layers" if len(one.layers) > 1 else "layer"
        facts.append(f"{several} {ranges_text(list(one.layers))} of it may be as good")
    return facts


def _values(one: Answer, floor: float) -> list[str]:
    """Other scores that the best one is read against."""
    facts = (
        [] if math.isnan(one.honest) else [f"{fixed(one.honest, 1)} % with the layer chosen on other items"]
    )
    if one.better is not None:
        words = f"{escape(pooling_name(one.better.pooling))}, layer {one.better.layer}"
        facts.append(f"{fixed(one.better.value, 1)} % from another pooling: {words}")
    return facts if math.isnan(floor) else [*facts, f"random features reach {fixed(floor, 1)} %"]


def _cost(one: Answer, label: str, costs: Costs) -> list[str]:
    """What the backbone costs where it is cut behind the layer."""
    device = f" on {escape(one.device)}" if one.device else ""
    words = [] if math.isnan(one.milliseconds) else [f"{one.milliseconds:.3g} ms an image{device}"]
    rows = costs.layers[(costs.layers["backbone"] == label) & (costs.layers["layer"] == one.layer)]
    for row in rows.head(1).to_dict("records"):
        words += [] if math.isnan(row["dim"]) else [f"{int(row['dim']):,} numbers a vector"]
        about = "about " if math.isnan(row["ms"]) else ""
        known = not math.isnan(row["parameters"])
        words += [f"{about}{_millions(row['parameters'])} M weights"] if known else []
    return [", ".join(words)] if words else []


def _millions(count: float) -> str:
    """A number in millions, in two digits where it is small."""
    return f"{count / 1e6:.2g}" if count < 1e7 else f"{count / 1e6:,.0f}"


def _listed(names: Sequence[str], most: int) -> str:
    """Names, of many the first few."""
    shown = ", ".join(escape(name) for name in names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown
