"""The answer at the top: which backbone and layer to take, how sure that is, and what it costs."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from layerboard.leaderboards.blocks.blocks import Strong, Text
from layerboard.leaderboards.blocks.display import (
    fixed,
    ms_text,
    plain_name,
    pooling_name,
    ranges_text,
    score_text,
    task_display,
)
from layerboard.leaderboards.board.column import Column
from layerboard.leaderboards.board.frames import PIXELS, RANDOM
from layerboard.leaderboards.findings.answers import Answer, Choice, fewest_choices
from layerboard.leaderboards.report.content import Report
from layerboard.leaderboards.report.templates.environment import filled
from layerboard.zoo.errors import some

NAMED = 3  # maximum number of tied backbones named on a card
EXCEPTIONS = 3  # choices that the verdict names besides the first
HONEST = "if the layer is chosen on half of the test data and scored on the rest"


def answer_html(answers: Sequence[Answer], report: Report) -> Markup:
    """One sentence for all columns that have a score, and a card for each."""
    several = Counter(answer.column.task for answer in answers)
    titles, cards = dict[Column, str](), []
    for answer in answers:
        column, task = answer.column, task_display(answer.column.task)
        titles[column] = task.title if several[column.task] == 1 else f"{task.title}: {column.heading}"
        score, _, spread = score_text(answer.score, (answer.ci_high - answer.ci_low) / 2).partition(" ± ")
        card = {"title": titles[column], "asks": task.asks, "answer": answer, "score": score}
        card |= {"backbone": report.board.labels[answer.backbone], "sure": _sure(answer, report.board.labels)}
        card["anchor"] = report.looks[str(card["backbone"])]["anchor"]
        card |= {"spread": spread, "baselines": _baselines(answer, report), "facts": _details(answer, report)}
        cards.append(card)
    warnings = [*(Text((warning,)) for warning in report.board.warnings), *report.disturbed]
    return filled("answer", verdict=[*_verdict(answers, titles, report), *warnings], cards=cards)


def _verdict(answers: Sequence[Answer], titles: Mapping[Column, str], report: Report) -> list[Text]:
    """Which layer of which backbone to take for what, its costs, and the loss of a single choice for all."""
    first, *others = fewest_choices(answers)
    pieces: list[str | Strong] = ["Take ", _named(first, report)]
    costs = [text for text in _cost(first.backbone, first.layer, report) if "vectors" not in text]
    pieces.append(f" ({', '.join(costs)})" if costs else "")
    for each in others[:EXCEPTIONS]:
        *most, last = (titles[column] for column in each.losses)
        pieces.append(f"; for {', '.join(most)} and {last} " if most else f"; for {last} ")
        same = each.backbone == first.backbone
        pieces += ["its ", Strong(f"layer {each.layer}")] if same else [_named(each, report)]
    rest = sum(len(each.losses) for each in others[EXCEPTIONS:])
    pieces.append(f"; for the other {rest} tasks see below." if rest else ".")
    sure = "By scores alone: whether others are tied with the best was not tested. "
    if any(answer.compared for answer in answers):
        largest = max(loss for each in (first, *others) for loss in each.losses.values())
        below = f", at most {largest:.1f} points below it" if round(largest, 1) else ""
        best = "Each is the best of its tasks" if others else "It is the best of every task"
        sure = f"{best} or statistically tied with the best (95 %){below}. "
    return [Text(tuple(pieces)), Text((sure, _loss(first, answers, titles)))]


def _named(choice: Choice, report: Report) -> Strong:
    return Strong(f"{report.board.labels[choice.backbone]}, layer {choice.layer}")


def _loss(choice: Choice, answers: Sequence[Answer], titles: Mapping[Column, str]) -> str:
    """The largest loss of a choice over columns; "" unless it was scored in all."""
    losses = {}
    for answer in answers:
        rows = answer.column.candidates
        scores = rows.loc[(rows["backbone"] == choice.backbone) & (rows["layer"] == choice.layer), "value"]
        losses[titles[answer.column]] = float(answer.score - scores.max())
    worst = max(losses, key=losses.__getitem__)
    if len(choice.losses) == len(answers) or any(map(math.isnan, losses.values())):
        return ""
    return f"The first one alone for everything would lose up to {losses[worst]:.1f} points ({worst})."


def _sure(answer: Answer, labels: Mapping[str, str]) -> Text:
    """The backbones that are tied with the best, as far as they were compared."""
    others = len(answer.column.best) - 1
    if answer.rivals:
        many = len(answer.rivals) == others > 1
        rivals = f"all {others} others" if many else some((labels[name] for name in answer.rivals), NAMED)
        return Text((Strong("tied with the best:"), f" {rivals}"))
    if not others:
        return Text(("the only backbone with a score here",))
    if answer.compared == others:
        rest = "other" if others == 1 else f"{others} others"
        return Text((f"better than the {rest} (95 %)",))
    return Text((f"not compared with {'all' if answer.compared else 'the'} other backbones",))


def _baselines(answer: Answer, report: Report) -> list[tuple[str, float]]:
    """Scores that anything useful exceeds: of random features, raw pixels and the best untrained network."""
    floors = answer.column.floors.groupby("family")["mean"].first()
    titles = {RANDOM: "random features", PIXELS: "raw pixels"}
    baselines = [(title, float(floors[family])) for family, title in titles.items() if family in floors]
    untrained = {each.name: each.label for each in report.board.plain_backbones if not each.trained}
    rows = answer.column.best[answer.column.best["backbone"].isin(untrained)].nlargest(1, "value")
    scores = zip(rows["backbone"], rows["value"], strict=True)
    return baselines + [(untrained[str(name)], float(value)) for name, value in scores]


def _details(answer: Answer, report: Report) -> list[str]:
    """The details of a card."""
    column, labels = answer.column, report.board.labels
    dataset = plain_name(column.dataset_name)
    facts = [f"scored by {column.heading} on {dataset}", f"features: {pooling_name(answer.pooling)}"]
    if len(answer.rivals) > NAMED:
        facts.append(f"tied with the best: {', '.join(labels[name] for name in answer.rivals)}")
    if answer.untested:
        names = some(labels[name] for name in answer.untested)
        facts.append(f"not compared with {names}: per-item scores of the same images are missing")
    if answer.layers:
        several = "layers" if len(answer.layers) > 1 else "layer"
        facts.append(f"tied with its {several} {ranges_text(list(answer.layers))}")
    if not math.isnan(answer.honest):
        facts.append(f"{fixed(answer.honest, 1)} % {HONEST}")
    facts += [
        f"{fixed(other.score, 1)} % from another pooling: {pooling_name(other.pooling)}, layer {other.layer}"
        for other in answer.others
    ]
    costs = _cost(answer.backbone, answer.layer, report)
    return [*facts, *([", ".join(costs)] if costs else [])]


def _cost(backbone: str, layer: int, report: Report) -> list[str]:
    """Costs of a backbone that is cut after a layer."""
    words, costs = [], report.costs
    rows = costs[(costs["backbone"] == report.board.labels[backbone]) & (costs["layer"] == layer)]
    for row in rows.head(1).to_dict("records"):
        guessed = math.isnan(row["ms"])
        words += [] if guessed else [f"{ms_text(row['ms'])} ms an image on {report.device}"]
        words += [] if math.isnan(row["dim"]) else [f"{int(row['dim']):,}-dimensional vectors"]
        if not math.isnan(count := row["parameters"]):
            millions = f"{count / 1e6:.2g}" if count < 1e7 else f"{count / 1e6:,.0f}"
            words.append(f"{'about ' * guessed}{millions} M parameters")
    return words
