"""The answer at the top: which backbone and layer to take, how sure that is, and what it costs."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import pandas as pd
from markupsafe import Markup

from layerboard.leaderboards.blocks.blocks import Strong, Text
from layerboard.leaderboards.blocks.display import (
    HELD_OUT,
    fixed,
    ms_text,
    plain_name,
    pooling_name,
    ranges_text,
    score_text,
    task_display,
)
from layerboard.leaderboards.board.column import Column
from layerboard.leaderboards.board.costs import with_costs
from layerboard.leaderboards.board.frames import PIXELS, RANDOM
from layerboard.leaderboards.findings.answers import Answer, Choice, fewest_choices
from layerboard.leaderboards.findings.baselines import cannot_rank
from layerboard.leaderboards.report.content import Report
from layerboard.leaderboards.report.templates.environment import filled
from layerboard.zoo.errors import some

NAMED = 3  # maximum number of backbones named on a card
EXCEPTIONS = 3  # choices that the verdict names besides the first


def answer_html(answers: Sequence[Answer], report: Report) -> Markup:
    """One sentence for all columns that have a score, and a card for each."""
    several = Counter(answer.column.task for answer in answers)
    titles, cards = dict[Column, str](), []
    for answer in answers:
        column, task = answer.column, task_display(answer.column.task)
        titles[column] = task.title if several[column.task] == 1 else f"{task.title}: {column.heading}"
        score = fixed(answer.score, 1)
        interval = score_text(answer.score, answer.ci_low, answer.ci_high).removeprefix(score)
        label = report.board.labels[answer.backbone]
        card = {"title": titles[column], "asks": task.asks, "answer": answer, "score": score}
        card |= {"interval": interval, "backbone": label, "anchor": report.looks[label]["anchor"]}
        card |= {"sure": _sure(answer, report.board.labels), "baselines": _baselines(answer, report)}
        cards.append(card | {"facts": _details(answer, report)})
    warnings = [*(Text((warning,)) for warning in report.board.warnings), *report.disturbed]
    return filled("answer", verdict=[*_verdict(answers, titles, report), *warnings], cards=cards)


def _verdict(answers: Sequence[Answer], titles: Mapping[Column, str], report: Report) -> list[Text]:
    """Which layer of which backbone to take for what, its costs, and the loss of a single choice for all."""
    first, *others = fewest_choices(answers)
    pieces: list[str | Strong] = ["Take ", _named(first, report)]
    costs = _cost(first.backbone, first.layer, [*first.losses], report)
    costs = [text for text in costs if "vectors" not in text]
    pieces.append(f" ({', '.join(costs)})" if costs else "")
    for each in others[:EXCEPTIONS]:
        *most, last = (titles[column] for column in each.losses)
        pieces.append(f"; for {', '.join(most)} and {last} " if most else f"; for {last} ")
        same = each.backbone == first.backbone
        pieces += ["its ", Strong(_layer(each))] if same else [_named(each, report)]
    rest = sum(len(each.losses) for each in others[EXCEPTIONS:])
    others_left = "task" if rest == 1 else f"{rest} tasks"
    pieces.append(f"; for the other {others_left} see below." if rest else ".")
    losses = [loss for each in (first, *others) for loss in each.losses.values() if not math.isnan(loss)]
    sure = "By scores alone: how far they may be below the best was not tested. "
    if losses:
        which, whose = ("Each", "its tasks") if others else ("It", "every task")
        best = "best compared" if any(answer.untested for answer in answers) else "best measured"
        sure = f"{which} is at most {max(losses):.1f} points below the {best} of {whose} (95 %). "
        unknown = [
            titles[column]
            for each in (first, *others)
            for column, loss in each.losses.items()
            if math.isnan(loss)
        ]
        sure += f"That of {some(unknown)} was not tested. " if unknown else ""
    first_of_all = [
        Text((Strong(f"{titles[answer.column]}: {cannot_rank(answer.baselines)}."),))
        for answer in answers
        if answer.baselines
    ]
    return [*first_of_all, Text(tuple(pieces)), Text((sure, _loss(first, answers, titles)))]


def _named(choice: Choice, report: Report) -> Strong:
    return Strong(f"{report.board.labels[choice.backbone]}, {_layer(choice)}")


def _layer(choice: Choice) -> str:
    return f"layer {choice.layer} ({', '.join(choice.poolings)})"


def _loss(choice: Choice, answers: Sequence[Answer], titles: Mapping[Column, str]) -> str:
    """The largest loss of a choice over columns; "" unless it was compared in all."""
    losses = {}
    for answer in answers:
        rows = answer.bounds.rows
        rows = rows[rows["pooling"] == rows["backbone"].map(answer.column.poolings)]
        own = rows.loc[(rows["backbone"] == choice.backbone) & (rows["layer"] == choice.layer), "loss"]
        losses[titles[answer.column]] = float(own.max())
    if len(choice.losses) == len(answers) or any(map(math.isnan, losses.values())):
        return ""
    worst = max(losses, key=losses.__getitem__)
    return f"The first one alone for everything may lose up to {losses[worst]:.1f} points ({worst})."


def _sure(answer: Answer, labels: Mapping[str, str]) -> Text:
    """What is not shown to be worse: baselines, or else backbones, with how far it may be below them."""
    if answer.baselines:
        return Text((Strong(cannot_rank(answer.baselines)),))
    others = len(answer.column.best) - 1
    if answer.rivals:
        many = len(answer.rivals) == others > 1
        rivals = f"all {others} others" if many else some((labels[name] for name in answer.rivals), NAMED)
        below = "" if math.isnan(answer.loss) else f"at most {answer.loss:.1f} points below the best (95 %); "
        return Text((below, Strong("not shown to be worse:"), f" {rivals}"))
    loss = f", at most {answer.loss:.1f} points below the best layer (95 %)" if answer.loss > 0 else ""
    if not others:
        return Text((f"the only backbone with a score here{loss}",))
    if answer.compared == others:
        rest = "other" if others == 1 else f"{others} others"
        return Text((f"shown to be better than the {rest} (95 %){loss}",))
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
        facts.append(f"not shown to be worse: {', '.join(labels[name] for name in answer.rivals)}")
    if answer.untested:
        names = some(labels[name] for name in answer.untested)
        facts.append(f"not compared with {names}: per-item scores of the same images are missing")
    if answer.layers:
        several = "layers" if len(answer.layers) > 1 else "layer"
        facts.append(f"its {several} {ranges_text(list(answer.layers))} not shown to be worse")
    for pooling, layers in answer.elsewhere.items():
        facts.append(f"its {pooling} at layer {ranges_text([*layers])} not shown to be worse")
    if not math.isnan(answer.held_out):
        facts.append(f"held out: {fixed(answer.held_out, 1)} % ({HELD_OUT})")
    facts += [answer.thresholds] if answer.thresholds else []
    costs = _cost(answer.backbone, answer.layer, [column], report)
    return [*facts, *([", ".join(costs)] if costs else [])]


def _cost(backbone: str, layer: int, columns: Sequence[Column], report: Report) -> list[str]:
    """Costs of a backbone that is cut after a layer, at the sizes at which tasks show images."""
    rows = pd.concat([column.scored for column in columns])
    rows = rows[(rows["backbone"] == backbone) & (rows["layer"] == layer)].drop_duplicates("view_size")
    rows = with_costs(rows.assign(backbone=report.board.labels[backbone]), report.costs)
    rows = rows.drop_duplicates("timed_at").sort_values("ms", kind="stable")
    if rows.empty:
        return []
    row, words = rows.iloc[0], _time(rows.dropna(subset="ms"), report)
    words += [] if math.isnan(row["dim"]) else [f"{int(row['dim']):,}-dimensional vectors"]
    if not math.isnan(count := row["parameters"]):
        millions = f"{count / 1e6:.2g}" if count < 1e7 else f"{count / 1e6:,.0f}"
        words.append(f"{'about ' * math.isnan(row['ms'])}{millions} M parameters up to it")
    return words


def _time(rows: pd.DataFrame, report: Report) -> list[str]:
    """The time of an image, from rows of one layer at each size that was timed, the fastest first."""
    if rows.empty:
        return []
    ends = rows if len(rows) == 1 else rows.iloc[[0, -1]]
    times, sizes = (" to ".join(texts) for texts in (ends["ms"].map(ms_text), ends["timed_at"]))
    size = f" of {sizes} pixels" if ends["timed_at"].all() else ""
    noisy = ", disturbed by other work" if rows["disturbed"].any() else ""
    return [f"{times} ms an image{size} on {report.device}{noisy}"]
