"""The answer at the top: which backbone and layer to take, how sure that is, and what it costs."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from textwrap import wrap
from typing import Any

from markupsafe import Markup

from layerboard.leaderboards.answer import phrases
from layerboard.leaderboards.answer.answer import Answer
from layerboard.leaderboards.answer.candidates import Candidate
from layerboard.leaderboards.answer.choice import Choice, choose, compromise_text, finding, verdict
from layerboard.leaderboards.blocks.blocks import Text
from layerboard.leaderboards.blocks.display import MAX_LOSS, fixed, narrow, plain_name, task_display
from layerboard.leaderboards.board.frames import PIXELS, RANDOM
from layerboard.leaderboards.report.content import Report
from layerboard.leaderboards.report.templates.environment import filled
from layerboard.leaderboards.report.views import view_named

TITLE = 18  # letters of a line of a title in the chart
NAMED = 8  # of the lines beside the advised one, so many of the highest have names in a single panel


def answer_html(answers: Sequence[Answer], report: Report) -> Markup:
    """One sentence for all columns that have a score, with its chart; caveats; and a card for each column.

    Cards tell the best of each task, and if that is not what is advised for all tasks, the latter beside it.
    """
    choice, titles = advised(answers), card_titles(answers)
    for_all = len(answers) > 1 and choice.label != ""
    chosen = choice.candidates if for_all else {}
    cards = [_card(each, report, titles[each.column.heading], chosen.get(each.column)) for each in answers]
    unranked = [each for each in answers if each.baselines]
    caveats = [f"{titles[each.column.heading]}: {phrases.cannot_rank(each)}." for each in unranked]
    if for_all and (why := compromise_text(choice, MAX_LOSS)):
        caveats.insert(0, f"{why[0].upper()}{why[1:]}.")
    return filled(
        "answer",
        verdict=verdict(choice, answers, titles),
        caveats=[*(Text((text,)) for text in (*report.board.warnings, *caveats)), *report.disturbed],
        view=replace(view_named("advice"), title=finding(choice, answers)),
        for_all=for_all,
        cards=cards,
    )


def _card(answer: Answer, report: Report, title: str, chosen: Candidate | None) -> dict[str, Any]:
    """What the card of one task shows: its best, and beside it what is ``chosen`` for all tasks if any is."""
    column, best, label = answer.column, answer.best, answer.column.labels[answer.best.backbone]
    beside = "as advised above" * bool(chosen)
    lost = f"{phrases.loss(answer, best)} (95 %)" if best.loss > 0 else ""
    if chosen and chosen != best:
        other = f"{column.labels[chosen.backbone]}, {phrases.layer_in_words(chosen)}"
        beside = f"advised above: {other}: {phrases.scored_text(chosen)} %"
    source = f"scored by {column.heading} on {plain_name(column.dataset_name)}"
    card = {"title": title, "asks": task_display(column.task).asks, "best": best, "beside": beside}
    card |= {"backbone": label, "anchor": report.looks[label]["anchor"]}
    card |= {"place": phrases.layer_in_words(best), "scored": phrases.scored_text(best)}
    card |= {"interval": narrow(best.ci_low, best.ci_high), "baselines": _baselines(answer, report)}
    card |= {"sure": "; ".join(filter(None, [lost, phrases.lead(answer)]))}
    return card | {"facts": [source, *phrases.details(answer)]}


def advised(answers: Sequence[Answer]) -> Choice:
    """What is advised: of one task its best, of several the first backbone for all, or else each best."""
    for choice in choose(answers, MAX_LOSS) if len(answers) > 1 else ():
        return choice
    return Choice({answer.column: answer.best for answer in answers})


def card_titles(answers: Sequence[Answer]) -> dict[str, str]:
    """What the task of each column is called, by its heading, which is part of it if a task has several."""
    several = Counter(answer.column.task for answer in answers)
    titles = {answer.column.heading: task_display(answer.column.task).title for answer in answers}
    many = (answer.column.heading for answer in answers if several[answer.column.task] > 1)
    return titles | {heading: f"{titles[heading]}: {heading}" for heading in many}


def chart_words(answers: Sequence[Answer]) -> dict[str, Any]:
    """The words of the answer's chart: what is advised in each task, and the lines above its panel."""
    choice, titles, advice = advised(answers), card_titles(answers), dict[str, dict[str, object]]()
    for column, each in choice.candidates.items():
        label, heading = column.labels[each.backbone], column.heading
        lines = wrap(titles[heading], TITLE) if len(titles) > 1 else [titles[heading]]
        lines += [] if choice.label else wrap(label, TITLE)
        lines.append(f"layer {each.layer}: {fixed(each.value, 1)} %")
        vectors = "" if column.poolings[each.backbone] == each.pooling else each.pooling
        advice[heading] = {"backbone": label, "layer": each.layer, "vectors": vectors, "lines": lines}
    axes: dict[str, Any] = {"panel_height": 64, "panel_across": None, "panel_score": None, "names": 1}
    if len(advice) == 1:
        score = f"{answers[0].column.metric}, %"
        axes = {"panel_height": 240, "panel_across": "layer", "panel_score": score, "names": NAMED}
    return axes | {"advice": advice, "advised_tasks": [*advice]}


def _baselines(answer: Answer, report: Report) -> list[tuple[str, float]]:
    """Scores that anything useful exceeds: of random features, raw pixels and the best untrained network."""
    floors = answer.column.floors.groupby("family")["mean"].first()
    titles = {RANDOM: "random features", PIXELS: "raw pixels"}
    baselines = [(title, float(floors[family])) for family, title in titles.items() if family in floors]
    untrained = {each.name: each.label for each in report.board.plain_backbones if not each.trained}
    rows = answer.column.best[answer.column.best["backbone"].isin(untrained)].nlargest(1, "value")
    scores = zip(rows["backbone"], rows["value"], strict=True)
    return baselines + [(untrained[str(name)], float(value)) for name, value in scores]
