"""The answer at the top: which backbone and layer to take, how sure that is, and what it costs."""

from collections import Counter
from collections.abc import Sequence

from markupsafe import Markup

from layerboard.leaderboards.answer.answer import Answer
from layerboard.leaderboards.answer.choice import Choice, choose, explain, price
from layerboard.leaderboards.answer.phrases import cannot_rank, details, lead, loss, scored_text
from layerboard.leaderboards.blocks.blocks import Strong, Text
from layerboard.leaderboards.blocks.display import MAX_LOSS, fixed, plain_name, task_display
from layerboard.leaderboards.board.frames import PIXELS, RANDOM
from layerboard.leaderboards.report.content import Report
from layerboard.leaderboards.report.templates.environment import filled


def answer_html(answers: Sequence[Answer], report: Report) -> Markup:
    """One sentence for all columns that have a score, caveats below it, and a card for each column."""
    several = Counter(answer.column.task for answer in answers)
    caveats, cards = [*report.board.warnings], []
    for answer in answers:
        column, best, task = answer.column, answer.best, task_display(answer.column.task)
        title = task.title if several[column.task] == 1 else f"{task.title}: {column.heading}"
        label, score = answer.column.labels[best.backbone], fixed(best.value, 1)
        lost = f"{loss(answer, best)} (95 %)" if best.loss > 0 else ""
        source = f"scored by {column.heading} on {plain_name(column.dataset_name)}"
        card = {"title": title, "asks": task.asks, "best": best, "score": score, "backbone": label}
        card |= {"interval": scored_text(best).removeprefix(score), "anchor": report.looks[label]["anchor"]}
        card |= {"sure": "; ".join(filter(None, [lost, lead(answer)]))}
        card |= {"baselines": _baselines(answer, report), "facts": [source, *details(answer)]}
        cards.append(card)
        caveats += [f"{title}: {cannot_rank(answer)}."] if answer.baselines else []
    verdict = [*_verdict(answers, report), *(Text((text,)) for text in caveats), *report.disturbed]
    return filled("answer", verdict=verdict, cards=cards)


def _verdict(answers: Sequence[Answer], report: Report) -> list[Text]:
    """Which backbone and layers to take: for one task the best, for several the first that is recommended.

    Then, why.
    """
    choices = choose(answers, MAX_LOSS)
    start, end = f"One backbone for all {len(answers)} tasks: ", " The best of each task is on its card."
    if len(answers) == 1:
        start, end, choices = "Take ", "", (Choice({answers[0].column: answers[0].best}),)
    if not choices:
        return [Text(("No backbone has a score in every task: the best of each is on its card.",))]
    places = ", ".join(f"{layer} {pooling}" for layer, pooling in choices[0].places)
    named = f"{report.board.labels[choices[0].backbone]}, layer{'s' * (', ' in places)} {places}"
    costs, why = price(choices[0]), explain(choices[0], answers, MAX_LOSS, short=True)
    reason = Text((f"{why[:1].upper()}{why[1:]}.{end}",))
    return [Text((start, Strong(named), f"{f' ({costs})' * bool(costs)}.")), reason]


def _baselines(answer: Answer, report: Report) -> list[tuple[str, float]]:
    """Scores that anything useful exceeds: of random features, raw pixels and the best untrained network."""
    floors = answer.column.floors.groupby("family")["mean"].first()
    titles = {RANDOM: "random features", PIXELS: "raw pixels"}
    baselines = [(title, float(floors[family])) for family, title in titles.items() if family in floors]
    untrained = {each.name: each.label for each in report.board.plain_backbones if not each.trained}
    rows = answer.column.best[answer.column.best["backbone"].isin(untrained)].nlargest(1, "value")
    scores = zip(rows["backbone"], rows["value"], strict=True)
    return baselines + [(untrained[str(name)], float(value)) for name, value in scores]
