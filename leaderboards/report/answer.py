"""The answer at the top: which backbone and layer to take, how sure that is, and what it costs."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from textwrap import wrap
from typing import Any

from markupsafe import Markup

from layerboard.leaderboards.answer.answer import Answer
from layerboard.leaderboards.answer.candidates import Candidate
from layerboard.leaderboards.answer.choice import Choice, choose, compromise_text, finding, verdict
from layerboard.leaderboards.answer.phrases import cannot_rank, details, lead, loss, scored_text
from layerboard.leaderboards.blocks.blocks import Text
from layerboard.leaderboards.blocks.display import MAX_LOSS, fixed, plain_name, pooling_name, task_display
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
    for_all = common(choice) and len(answers) > 1
    cards, caveats = list[dict[str, Any]](), list[str]()
    for answer in answers:
        column, best, title = answer.column, answer.best, titles[answer.column.heading]
        label, score = column.labels[best.backbone], fixed(best.value, 1)
        lost = f"{loss(answer, best)} (95 %)" if best.loss > 0 else ""
        source = f"scored by {column.heading} on {plain_name(column.dataset_name)}"
        card = {"title": title, "asks": task_display(column.task).asks, "best": best, "score": score}
        card |= {"interval": scored_text(best).removeprefix(score), "anchor": report.looks[label]["anchor"]}
        card["vectors"] = pooling_name(best.pooling)
        card["advised"] = _advised_beside(answer, choice.candidates[column]) if for_all else ""
        card |= {"backbone": label, "sure": "; ".join(filter(None, [lost, lead(answer)]))}
        card |= {"baselines": _baselines(answer, report), "facts": [source, *details(answer)]}
        cards.append(card)
        caveats += [f"{title}: {cannot_rank(answer)}."] if answer.baselines else []
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


def _advised_beside(answer: Answer, chosen: Candidate) -> str:
    """What is advised for all tasks, beside the best of one."""
    if chosen == answer.best:
        return "as advised above"
    label = answer.column.labels[chosen.backbone]
    place = f"layer {chosen.layer} of {chosen.depth}, {pooling_name(chosen.pooling)}"
    return f"advised above: {label}, {place}: {scored_text(chosen)}"


def advised(answers: Sequence[Answer]) -> Choice:
    """What is advised: of one task its best, of several the first backbone for all, or else each best."""
    for choice in choose(answers, MAX_LOSS) if len(answers) > 1 else ():
        return choice
    return Choice({answer.column: answer.best for answer in answers})


def common(choice: Choice) -> bool:
    """Whether a choice is of one backbone for all of its columns."""
    return len({each.backbone for each in choice.candidates.values()}) == 1


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
        lines += [] if common(choice) else wrap(label, TITLE)
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
