"""One backbone for several tasks: the cheapest that are shown to lose little in each, or a compromise."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from math import isnan

import pandas as pd

from layerboard.leaderboards.answer import phrases
from layerboard.leaderboards.answer.answer import Answer, telling
from layerboard.leaderboards.answer.candidates import Candidate
from layerboard.leaderboards.blocks.blocks import Strong, Text
from layerboard.leaderboards.blocks.display import enough_text, loss_text, ms_text
from layerboard.leaderboards.board.column import Column
from layerboard.tasks.statistics.resolution import CRITICAL, Enough, enough_units
from layerboard.zoo.errors import counted

RECOMMENDED = [
    *("rank", "backbone", "layer", "depth", "pooling", "task", "dataset", "protocol", "metric", "partial"),
    *("score", "ci_low", "ci_high", "difference", "loss", "ms", "timed_at", "parameters", "gflops", "dim"),
    *("bytes", "image_bytes", "licence", "compression", "thresholds", "other_layers", "reason"),
]

PARETO = [
    *("task", "dataset", "protocol", "metric", "backbone", "layer", "depth", "pooling"),
    *("score", "ci_low", "ci_high", "difference", "loss", "ms", "parameters", "dim"),
]

COMPROMISE = (
    "a compromise, since no backbone is proven to lose at most {lost:g} points in every task: in its worst "
    "task this one may lose least"
)
ALL_BEST = "it scores best in every task; in some, another may truly be more than {lost:g} points better"
HIGHEST = "no layer is proven to lose at most {lost:g} points, so the highest is taken"
UNKNOWN = "by scores where it is not known how much may be lost"
COSTS = ("ms", "parameters")  # costs to sort choices by, if known for all of them


@dataclass(frozen=True, slots=True)
class Choice:
    """One backbone, with its candidate in each column: the same layer for all if one suffices."""

    candidates: Mapping[Column, Candidate]
    others: tuple[int, ...] = ()  # further blocks that are shown to lose no more in any column
    compromise: bool = False  # whether no backbone is shown to lose so little in every column

    @property
    def backbone(self) -> str:
        return self.deepest.backbone

    @property
    def label(self) -> str:
        """What its backbone is called; "" if tasks have different ones, as no backbone has a score in all."""
        names = {column.labels[each.backbone] for column, each in self.candidates.items()}
        return names.pop() if len(names) == 1 else ""

    @property
    def places(self) -> list[tuple[int, str]]:
        """The chosen layers with their poolings, each pair once, in order."""
        return sorted({(each.layer, each.pooling) for each in self.candidates.values()})

    @property
    def deepest(self) -> Candidate:
        """The candidate that determines its weights: a network up to it provides all others."""
        return max(self.candidates.values(), key=lambda each: each.layer)

    @property
    def timed(self) -> list[Candidate]:
        """The slowest candidate at each view size: one forward pass up to it provides those of its size."""
        ordered = sorted(self.candidates.values(), key=lambda each: each.layer)
        return [*{each.timed_at: each for each in ordered}.values()]

    @property
    def costs(self) -> dict[str, float]:
        """The choice's `COSTS`: milliseconds of passes of an image, one a view size, and weights; or NaN."""
        return {"ms": sum(each.ms for each in self.timed), "parameters": self.deepest.parameters}

    def beats(self, other: "Choice") -> bool:
        """Whether the choice scores at least as much as another one in every column."""
        pairs = ((each, other.candidates[column]) for column, each in self.candidates.items())
        return all(own.value >= their.value for own, their in pairs)


def choose(answers: Sequence[Answer], max_loss: float) -> tuple[Choice, ...]:
    """One backbone for all columns, the cheapest first: those that are shown to lose at most ``max_loss``.

    If there are none, the one that loses least (`least_loss`); empty if no backbone has all columns.
    """
    return safe_choices(answers, max_loss) or tuple(filter(None, [least_loss(answers)]))


def safe_choices(answers: Sequence[Answer], max_loss: float) -> tuple[Choice, ...]:
    """Backbones that are shown to lose little in every column, with one layer for all if possible, by cost.

    Each is given with its cheapest layer that scores higher, in some column, than all that cost less.
    """
    safe: dict[Column, dict[str, dict[int, Candidate]]] = {answer.column: {} for answer in answers}
    for answer in answers:
        for each in answer.candidates:
            if each.loss <= max_loss:
                safe[answer.column].setdefault(each.backbone, {})[each.layer] = each
    choices = []
    for name in sorted(set.intersection(*map(set, safe.values()))):
        own = {column: layers[name] for column, layers in safe.items()}
        common = sorted(set.intersection(*map(set, own.values())))
        for layer in common or [0]:
            candidates = {column: layers[layer or min(layers)] for column, layers in own.items()}
            choices.append(Choice(candidates, tuple(other for other in common if other != layer)))
    cheapest: dict[str, Choice] = {}
    for choice in by_cost(choices):
        if choice.backbone not in cheapest and not any(each.beats(choice) for each in cheapest.values()):
            cheapest[choice.backbone] = choice
    return tuple(cheapest.values())


def by_cost(choices: Sequence[Choice]) -> list[Choice]:
    """Choices with the cheapest first: by time if known for all, then by weights if known, then by depth."""
    known = [name for name in COSTS if all(each.costs[name] >= 0 for each in choices)]

    def order(choice: Choice) -> tuple[object, ...]:
        costs = choice.costs
        return *(costs[name] for name in known), choice.deepest.layer, choice.backbone

    return sorted(choices, key=order)


def least_loss(answers: Sequence[Answer]) -> Choice | None:
    """The backbone whose maximum loss over columns is smallest, with its highest layer in each.

    For one column it is the highest candidate. Columns that cannot rank do not count (`telling`). If no
    backbone has known losses in all that do, observed ones are in their place. None if none has all columns.
    """
    if len(answers) == 1:
        return Choice({answers[0].column: answers[0].candidates[0]}, compromise=True)
    # the first of each backbone is its highest
    tops = {answer.column: {each.backbone: each for each in answer.candidates[::-1]} for answer in answers}
    choices = [
        Choice({column: own[name] for column, own in tops.items()}, compromise=True)
        for name in sorted(set.intersection(*map(set, tops.values())))
    ]

    def most(choice: Choice) -> tuple[bool, float]:
        own = [choice.candidates[answer.column] for answer in telling(answers)]
        losses = [-each.difference if isnan(each.loss) else each.loss for each in own]
        return any(isnan(each.loss) for each in own), max(losses)

    return min(by_cost(choices), key=most, default=None)


# in words


def price(choice: Choice) -> str:
    """What a choice costs: a pass of an image at each size that tasks show, and weights; "" if unknown."""
    time, count, deepest = ms_text(choice.costs["ms"]), len(choice.timed), choice.deepest
    together = " for all tasks together" if len(choice.candidates) > 1 else ""
    together += f", at {count} image sizes" if count > 1 else ""
    text = f"{time} ms an image{together}{phrases.disturbed_text(*choice.timed)}" if time else ""
    size = f"{phrases.weights_text(deepest)} parameters" if deepest.parameters >= 0 else ""
    return ", ".join(filter(None, [text, size]))


def verdict(choice: Choice, answers: Sequence[Answer], titles: Mapping[str, str]) -> Text:
    """What to take, what it costs, and in which task it may lose most, in one or two sentences.

    ``titles`` name tasks by the headings of their columns. Without one backbone for all, it says so.
    """
    if not choice.label:
        return Text(("No backbone has a score in every task: the best of each is on its card.",))
    more = len(choice.places) > 1
    start, end = f"One backbone for all {len(answers)} tasks: ", ", with its own layer for each" * more
    if len(answers) == 1:
        start, end = "Take ", f"{end} for {titles[answers[0].column.heading]}"
    what = choice.label if more else f"{choice.label}, {phrases.layer_in_words(choice.deepest)}"
    costs, risk = price(choice), _risk(choice, answers, titles)
    return Text((start, Strong(what), f"{end}{f'; {costs}' if costs else ''}. {risk[0].upper()}{risk[1:]}."))


def finding(choice: Choice, answers: Sequence[Answer]) -> str:
    """What a chart of a choice shows: in how many tasks it scores highest, and whether at one layer."""
    if not choice.label:
        return "The best backbone of each task, and its layer"
    count, best = len(answers), sum(not each.difference for each in choice.candidates.values())
    where = " in every task" if best == count else f" in {best} of {count} tasks"
    scored = f"scores highest{where * (count > 1)}" if best else "among the others"
    (layer, _), *more = choice.places
    places = "; its layer depends on the task" if more else f", at layer {layer} of {choice.deepest.depth}"
    return f"{choice.label} {scored}{places}"


def _risk(choice: Choice, answers: Sequence[Answer], titles: Mapping[str, str]) -> str:
    """How much a choice may lose, and of several tasks in which most; begins small, has no full stop."""
    answer, those = _worst(choice, answers)
    candidate, heading = choice.candidates[answer.column], answer.column.heading
    clause, several = phrases.loss(answer, candidate), len(answers) > 1
    if candidate.loss > 0 and several:
        most = f"up to {loss_text(candidate.loss)} points below the true best (95 %)"
        return f"{those}{', ' * bool(those)}it may lose most in {titles.get(heading, heading)}: {most}"
    if candidate.loss > 0:
        return f"it {clause} (95 %)"
    every = f" in each {those or 'of the tasks'}" * several
    return f"it is {clause}{every}" if clause else "how much it may lose is not known"


def explain(choice: Choice, answers: Sequence[Answer], max_loss: float, *, short: bool = False) -> str:
    """Why a choice is recommended, as a sentence without its full stop.

    ``short``: of several tasks, only that in which it may lose most.
    """
    chosen = choice.candidates
    reasons = [f"{each.column.heading}: {phrases.reason(each, chosen[each.column])}" for each in answers]
    if len(answers) == 1:
        reasons = [phrases.reason(answers[0], choice.deepest)]
    elif short:
        worst, _ = _worst(choice, answers)
        risk = "" if isnan(chosen[worst.column].loss) else _risk(choice, answers, {})
        there = "there" if chosen[worst.column].loss > 0 else f"in {worst.column.heading}"
        reasons = [risk, f"{there} it {phrases.reason(worst, chosen[worst.column], risk=False)}"]
    return "; ".join(filter(None, [compromise_text(choice, max_loss), *reasons]))


def _worst(choice: Choice, answers: Sequence[Answer]) -> tuple[Answer, str]:
    """The answer in whose task a choice may lose most, and "of the tasks ..." it is one of, "" for all.

    If no loss is known, it is the one in which the choice is furthest below the best.
    """
    ranking = telling(answers)
    known = [answer for answer in ranking if not isnan(choice.candidates[answer.column].loss)]
    if not known:
        return min(ranking, key=lambda answer: choice.candidates[answer.column].difference), ""
    those = "of the tasks in which the best beats the baselines" if len(ranking) < len(answers) else ""
    those = "of the tasks with a known loss" if len(known) < len(ranking) else those
    return max(known, key=lambda answer: choice.candidates[answer.column].loss), those


def compromise_text(choice: Choice, max_loss: float) -> str:
    """Why a choice is recommended although it is not shown to lose little; "" if it is shown."""
    if not choice.compromise:
        return ""
    if any(isnan(each.loss) for each in choice.candidates.values()):
        return UNKNOWN
    several = COMPROMISE if any(each.difference for each in choice.candidates.values()) else ALL_BEST
    return (several if len(choice.candidates) > 1 else HIGHEST).format(lost=max_loss)


def undecided(answer: Answer, chosen: Candidate, max_loss: float) -> list[tuple[Enough, Candidate]]:
    """The chosen candidate and cheaper ones that may lose too much, by the items that would be enough."""
    near = [each for each in answer.candidates if each.loss > max_loss and each.difference > -max_loss]
    names = (name for name in COSTS if not any(isnan(getattr(each, name)) for each in (*near, chosen)))
    cost = next(names, "layer")
    near = [each for each in near if getattr(each, cost) < getattr(chosen, cost) or each is chosen]
    pairs = [
        (enough_units(each.difference + max_loss, (each.difference + each.loss) / CRITICAL, each.n), each)
        for each in near
    ]
    return sorted(pairs, key=lambda pair: pair[0])


def undecided_text(answer: Answer, chosen: Candidate, max_loss: float) -> str:
    """A sentence about candidates that are `undecided`, and how many items would decide; "" for none."""
    if not (pairs := undecided(answer, chosen, max_loss)):
        return ""
    enough, first = pairs[0]
    there = f"{answer.column.heading}: {counted(first.n, first.unit)} cannot decide"
    return (
        f"{there} whether more than {max_loss:g} points are lost by {counted(len(pairs), 'layers')} no more "
        "expensive and within that of the best. If scores are what they seem, it would take "
        f"{enough_text(enough, first.n, first.unit)} to show it of {phrases.named(first)} in 80 % of cases."
    )


# as frames and tables


def recommended_frame(choices: Sequence[Choice], reasons: Sequence[str] | None = None) -> pd.DataFrame:
    """One row per choice and column: columns `RECOMMENDED`, or without reasons, `PARETO`."""
    rows = [
        {
            **asdict(candidate),
            **{name: getattr(column, name) for name in ("task", "dataset", "protocol", "metric", "partial")},
            "rank": rank + 1,
            "score": candidate.value,
            "image_bytes": candidate.image_bytes,
            "compression": candidate.transform,
            "other_layers": [*choice.others],
            "reason": reasons[rank] if reasons else "",
        }
        for rank, choice in enumerate(choices)
        for column, candidate in choice.candidates.items()
    ]
    return pd.DataFrame(rows, columns=PARETO if reasons is None else RECOMMENDED)


def pareto_of(answer: Answer) -> list[Choice]:
    """The layers of a column that no other beats in score without taking longer, the cheapest first."""
    front = list[Candidate]()
    for each in sorted(answer.candidates, key=lambda each: (each.ms, -each.value)):
        if each.ms >= 0 and (not front or each.value > front[-1].value):
            front.append(each)
    return [Choice({answer.column: each}) for each in front]


def recommended_table(
    choices: Sequence[Choice], answers: Sequence[Answer], *, short: bool = False
) -> pd.DataFrame:
    """One row per choice and column as text: the columns of `candidate_table`, and ``other layers``.

    A ``short`` one fits a screen.
    """
    pairs = [(answer, choice.candidates[answer.column]) for choice, answer in product(choices, answers)]
    if short:
        cost = "weights" if all(isnan(each.ms) for _, each in pairs) else "dim"
        return phrases.candidate_table(pairs, ("task", "backbone", *phrases.FIRST, "compression", cost))
    table = phrases.candidate_table(pairs)
    others = [", ".join(map(str, choice.others)) for choice, _ in product(choices, answers)]
    return table.assign(**{"other layers": others}) if any(others) else table
