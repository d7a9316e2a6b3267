"""The answer at the top: which backbone and layer to take, how sure that is, and what it costs."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from math import isnan
from textwrap import wrap
from typing import Any

import pandas as pd
from markupsafe import Markup

from layerboard.leaderboards.answer.answer import Answer
from layerboard.leaderboards.answer.choice import Choice, choose, explain, price, telling
from layerboard.leaderboards.answer.phrases import cannot_rank, details, lead, loss, scored_text
from layerboard.leaderboards.blocks.blocks import Strong, Text
from layerboard.leaderboards.blocks.display import MAX_LOSS, fixed, plain_name, pooling_name, task_display
from layerboard.leaderboards.board.frames import PIXELS, RANDOM
from layerboard.leaderboards.report.content import Report
from layerboard.leaderboards.report.templates.environment import filled
from layerboard.leaderboards.report.views import view_named

MOST_CURVES, TITLE = 7, 18  # grey curves of a task at most: its best backbones; letters of a line of a title
GLANCE = (
    *("column", "backbone", "pooling", "layer", "depth", "relative", "value", "ci_low", "ci_high"),
    *("loss", "place"),
)


def answer_html(answers: Sequence[Answer], report: Report) -> Markup:
    """One sentence for all columns that have a score, with its chart; caveats; and a card for each column."""
    choice, titles = advised(answers), card_titles(answers)
    cards, caveats = list[dict[str, Any]](), list[str]()
    for answer in answers:
        column, best, title = answer.column, answer.best, titles[answer.column.heading]
        label, score = column.labels[best.backbone], fixed(best.value, 1)
        lost = f"{loss(answer, best)} (95 %)" if best.loss > 0 else ""
        source = f"scored by {column.heading} on {plain_name(column.dataset_name)}"
        card = {"title": title, "asks": task_display(column.task).asks, "best": best, "score": score}
        card |= {"interval": scored_text(best).removeprefix(score), "anchor": report.looks[label]["anchor"]}
        card |= {"backbone": label, "sure": "; ".join(filter(None, [lost, lead(answer)]))}
        card |= {"baselines": _baselines(answer, report), "facts": [source, *details(answer)]}
        cards.append(card)
        caveats += [f"{title}: {cannot_rank(answer)}."] if answer.baselines else []
    if len(answers) > 1 and common(choice):
        why = explain(choice, answers, MAX_LOSS, short=True)
        caveats.insert(0, f"{why[:1].upper()}{why[1:]}. The best of each task is on its card.")
    return filled(
        "answer",
        verdict=_verdict(answers, choice, report),
        caveats=[*report.board.warnings, *(Text((text,)) for text in caveats), *report.disturbed],
        glance=view_named("glance"),
        cards=cards,
    )


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


def glance(answers: Sequence[Answer], report: Report) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Curves over layers of what is advised and of the best other backbones, and the words of their chart.

    Columns `GLANCE`, one row a layer, in the vectors of the backbone's best layer; ``place`` is ``chosen``,
    ``own`` (another layer of what is advised) or empty.
    """
    choice, titles, rows = advised(answers), card_titles(answers), list[dict[str, Any]]()
    words: dict[str, list[str]] = {}
    more = len(answers) > 1
    for answer in answers:
        chosen, heading = choice.candidates[answer.column], answer.column.heading
        tops = {each.backbone: each for each in answer.candidates[::-1]}  # the first of each is its highest
        highest = sorted(tops, key=lambda name: -tops[name].value)[:MOST_CURVES]
        drawn = {name: tops[name] for name in highest} | {chosen.backbone: chosen}
        for each in answer.candidates:
            if each.backbone in drawn and each.pooling == drawn[each.backbone].pooling:
                place = "chosen" if each is chosen else "own" * (each.backbone == chosen.backbone)
                own = {"column": heading, "backbone": answer.column.labels[each.backbone], "place": place}
                rows.append(asdict(each) | own | {"relative": each.layer / each.depth})
        label = "" if common(choice) else answer.column.labels[chosen.backbone]
        lines = [*wrap(titles[heading], TITLE), *wrap(label, TITLE)] if more else [titles[heading]]
        words[heading] = [*lines, f"layer {chosen.layer}: {fixed(chosen.value, 1)} %"]
    return pd.DataFrame(rows, columns=[*GLANCE]), {
        "glance_titles": words,
        "glance_order": [*words],
        "glance_height": 64 if more else 240,
        "glance_across": None if more else "layer",
        "glance_score": None if more or not answers else f"{answers[0].column.metric}, %",
    }


def _verdict(answers: Sequence[Answer], choice: Choice, report: Report) -> Text:
    """Which backbone and layer to take, what that costs, and what it may lose, in one or two sentences."""
    if not common(choice):
        return Text(("No backbone has a score in every task: the best of each is on its card.",))
    one, (first, *more) = choice.deepest, choice.places
    layer = "" if more else f", layer {first[0]} of {one.depth}, {pooling_name(first[1])}"
    start = f"One backbone for all {len(answers)} tasks: " if len(answers) > 1 else "Take "
    end = ", with its own layer for each" if more else ""
    end += f" for {card_titles(answers)[answers[0].column.heading]}" if len(answers) == 1 else ""
    named, costs = f"{report.board.labels[one.backbone]}{layer}", price(choice)
    end += f"; {costs}. " if costs else ". "
    return Text((start, Strong(named), end + _risk(answers, choice)))


def _risk(answers: Sequence[Answer], choice: Choice) -> str:
    """A sentence on the largest loss that a choice may have in the tasks that can rank."""
    ranking = telling(answers)
    losses = {answer.column.heading: choice.candidates[answer.column].loss for answer in ranking}
    known = {heading: lost for heading, lost in losses.items() if not isnan(lost)}
    if not known:
        return "How much it may lose is not known."
    worst = max(known, key=known.__getitem__)
    if len(answers) == 1:
        text = loss(answers[0], choice.deepest)
        return f"It {text} (95 %)." if known[worst] else f"It is {text}."
    those = ", of the tasks where that is known" if len(known) < len(losses) else ""
    most = f"up to {fixed(known[worst], 1)} points (95 %)"
    return f"It may lose {most}, most in {card_titles(answers)[worst]}{those}."


def _baselines(answer: Answer, report: Report) -> list[tuple[str, float]]:
    """Scores that anything useful exceeds: of random features, raw pixels and the best untrained network."""
    floors = answer.column.floors.groupby("family")["mean"].first()
    titles = {RANDOM: "random features", PIXELS: "raw pixels"}
    baselines = [(title, float(floors[family])) for family, title in titles.items() if family in floors]
    untrained = {each.name: each.label for each in report.board.plain_backbones if not each.trained}
    rows = answer.column.best[answer.column.best["backbone"].isin(untrained)].nlargest(1, "value")
    scores = zip(rows["backbone"], rows["value"], strict=True)
    return baselines + [(untrained[str(name)], float(value)) for name, value in scores]
