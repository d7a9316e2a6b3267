"""The answer of each leaderboard column: the best backbone and layer, its uncertainty, and its cost."""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from operator import attrgetter

import pandas as pd

from layerboard.leaderboards.blocks.display import fixed, pooling_rank, ranges_text, score_text
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.column import COLUMN_FIELDS, Column, Side
from layerboard.leaderboards.board.costs import find_measured_device, layer_costs
from layerboard.leaderboards.board.differences import Ties, best_side
from layerboard.leaderboards.findings.baselines import cannot_rank, equal_baselines
from layerboard.leaderboards.findings.thresholds import threshold_text
from layerboard.zoo.errors import some

MOST_NAMED = 3  # backbones named in a row of the table; of more than that, only the number is given
_FIELDS = (
    *("backbone", "layer", "depth", "pooling", "score", "ci_low", "ci_high", "honest"),
    *("milliseconds", "device", "rivals", "untested", "layers", "baselines", "thresholds"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Side):
    """The answer of a column: its best backbone, the first of equal ones, and that backbone's best block."""

    column: Column
    ci_low: float  # of the 95 % interval; NaN without one
    ci_high: float
    honest: float  # score with the layer chosen on held-out data; NaN without a split
    rivals: tuple[str, ...]  # together with the best, these include the true best with 95 % confidence
    untested: tuple[str, ...]  # backbones that could not be compared with the best
    compared: int  # number of other backbones that could be
    layers: tuple[int, ...]  # further blocks that are statistically tied with the best
    milliseconds: float  # latency of one image up to the layer; NaN if not measured
    device: str  # device of the latency; "" if not measured
    baselines: tuple[str, ...]  # labels of baselines that are not shown to be worse: the test cannot rank
    thresholds: str  # of its cosines, in words; "" for tasks without any


@dataclass(frozen=True, slots=True)
class Choice:
    """One layer of a backbone that is good enough for several columns."""

    backbone: str
    layer: int
    losses: Mapping[Column, float]  # by how many points it is below the best of each column

    @property
    def poolings(self) -> tuple[str, ...]:
        """The poolings of its vectors in these columns, each once, in order."""
        return tuple(sorted({column.poolings[self.backbone] for column in self.losses}, key=pooling_rank))


def fewest_choices(answers: Sequence[Answer]) -> tuple[Choice, ...]:
    """A small set of layers that are good enough for all columns, the one for most columns first.

    A layer is good enough for a column if its backbone is the best or tied with the best, and the layer is
    the best of that backbone or tied with it. Each next choice is the one for most of the remaining columns
    (a greedy cover); among several, the one that loses least.
    """
    left, choices = {answer.column: _fitting(answer) for answer in answers}, list[Choice]()
    while left:
        options: dict[tuple[str, int], dict[Column, float]] = {}
        for column, losses in left.items():
            for option, loss in losses.items():
                options.setdefault(option, {})[column] = loss
        chosen = min(options, key=lambda each: (-len(options[each]), sum(options[each].values())))
        choices.append(Choice(*chosen, options[chosen]))
        left = {column: losses for column, losses in left.items() if column not in options[chosen]}
    return tuple(choices)


def _fitting(answer: Answer) -> dict[tuple[str, int], float]:
    """The layers that are good enough for a column, by backbone and number, with their losses."""
    rows = answer.column.candidates
    rows = rows[rows["backbone"].isin([answer.backbone, *answer.rivals])]
    top = rows.groupby("backbone")["value"].transform("max")
    rows = rows[rows["tied"].astype(bool) | (rows["value"] == top)]
    fields = rows[["backbone", "layer", "value"]].itertuples(index=False, name=None)
    return {(str(name), int(layer)): answer.score - value for name, layer, value in fields}


def answers_of(board: Board) -> tuple[Answer, ...]:
    """The answers of all columns with a score, in the order of the leaderboard."""
    costs = board.costs.records
    device = find_measured_device(costs)
    times = layer_costs(costs, device).set_index(["backbone", "layer"])["ms"].to_dict()
    columns = [column for column in board.columns if len(column.best)]
    answers = (_answer(column, board.ties.get(column.key), times, device or "") for column in columns)
    return tuple(replace(each, baselines=equal_baselines(each.column, board.items)) for each in answers)


def _answer(column: Column, ties: Ties | None, times: Mapping[Hashable, float], device: str) -> Answer:
    """The answer of one column; a backbone with the same score as the best is tied with it."""
    best = column.best
    top = best.loc[best["value"] == best["value"].max()].iloc[0]
    side = best_side(best, str(top["backbone"]))
    name, layer = side.backbone, side.layer
    rivals = [str(other) for other in best["backbone"] if other != name]
    equal = set(best.loc[best["value"] == top["value"], "backbone"])
    tied, untested = (ties.tied, ties.untested) if ties else (frozenset(), frozenset())
    milliseconds = float(times.get((name, layer), math.nan))
    honest = column.honest.get(name)
    good = column.candidates[column.candidates["backbone"] == name]
    good = good[good["tied"].astype(bool) | (good["value"] == top["value"])]
    return Answer(
        *astuple(side),
        column=column,
        ci_low=float(top["ci_low"]),
        ci_high=float(top["ci_high"]),
        honest=math.nan if honest is None else honest.score,
        rivals=tuple(other for other in rivals if other in equal | tied),
        untested=tuple(other for other in rivals if other in untested),
        compared=sum(other not in untested for other in rivals) if ties else 0,
        layers=tuple(sorted({*good["layer"].astype(int)} - {layer})),
        milliseconds=milliseconds,
        device="" if math.isnan(milliseconds) else device,
        baselines=(),
        thresholds=threshold_text(column.rows, column.task, top),
    )


def answer_frame(answers: Sequence[Answer]) -> pd.DataFrame:
    """One row per column of the leaderboard, in full: columns `COLUMN_FIELDS` and `_FIELDS`."""
    facts, numbers = attrgetter(*COLUMN_FIELDS), attrgetter(*_FIELDS)
    rows = [facts(answer.column) + numbers(answer) for answer in answers]
    return pd.DataFrame(rows, columns=[*COLUMN_FIELDS, *_FIELDS])


def answer_table(answers: Sequence[Answer], labels: Mapping[str, str]) -> pd.DataFrame:
    """One row per column of the leaderboard, as text; empty columns are left out."""
    table = pd.DataFrame(
        {
            "task": answer.column.heading,
            "best backbone": labels[answer.backbone],
            "layer": f"{answer.layer}/{answer.depth}",
            "vectors": answer.pooling,
            "score": score_text(answer.score, answer.ci_low, answer.ci_high),
            "honest": score_text(answer.honest),
            "ms": fixed(answer.milliseconds, 1),
            "tied with the best": _others(answer, labels),
        }
        for answer in answers
    )
    return table.loc[:, [(table[name] != "").any() for name in table]]


def _others(answer: Answer, labels: Mapping[str, str]) -> str:
    names = [labels[name] for name in answer.rivals]
    if len(names) > MOST_NAMED:
        names = [f"{len(names)} of {answer.compared} others"]
    if answer.layers:
        names.append(f"layer {ranges_text(list(answer.layers))}")
    if answer.untested:
        names.append(f"{len(answer.untested)} not compared")
    return "; ".join(names)


def answer_notes(answers: Sequence[Answer]) -> tuple[str, ...]:
    """How to read the table: one sentence for each thing that it shows."""
    notes = [
        f"{answer.column.heading}: {cannot_rank(answer.baselines)}." for answer in answers if answer.baselines
    ]
    if any(answer.rivals or answer.layers for answer in answers):
        notes.append(
            "Tied with the best: with 95 % confidence the true best is one of these or the best shown; all "
            "backbones and layers are tested jointly. `compare` tests only two, and may separate tied ones."
        )
    if any(not math.isnan(answer.honest) for answer in answers):
        notes.append("Honest: score if the layer is chosen on half of the test data and scored on the rest.")
    if devices := " and ".join(sorted({answer.device for answer in answers} - {""})):
        notes.append(f"ms: latency of one image up to that layer, on {devices}.")
    for answer in answers:
        named = f"{answer.column.heading}, {answer.backbone} layer {answer.layer} {answer.pooling}"
        notes += [f"{named}: {answer.thresholds}."] if answer.thresholds else []
    if any(answer.column.partial for answer in answers):
        notes.append("†: measured on a part of the data.")
    return tuple(notes)


def unscored(board: Board) -> tuple[str, ...]:
    """One sentence per task, transform or compression without any score: the first reason.

    Then one per reason why a backbone has nothing of some analyses.
    """
    rows = board.measured[board.measured["primary"].astype(bool)]
    scores = (
        f"No score of {task}{f' with {transform}' if transform else ''}: {part['reason'].iloc[0]}."
        for (transform, task), part in rows.groupby(["transform", "task"], sort=False)
        if part["value"].isna().all()
    )
    analyses: dict[str, list[str]] = {}
    for (_, task), part in board.analyses.records.groupby(["backbone", "task"], sort=False):
        if part["value"].isna().all():
            analyses.setdefault(part["reason"].iloc[0].rstrip("."), []).append(str(task))
    return (*scores, *(f"Nothing of {some(tasks)}: {reason}." for reason, tasks in analyses.items()))
