"""The answer of each column: the backbone and layer that score highest, how sure that is, and the cost."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from operator import attrgetter

import numpy as np
import pandas as pd

from layerboard.leaderboards.blocks.display import HELD_OUT, fixed, pooling_rank, ranges_text, score_text
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.column import COLUMN_FIELDS, Column, Side
from layerboard.leaderboards.board.costs import find_measured_device, layer_costs, with_costs
from layerboard.leaderboards.board.differences import Bounds, best_side
from layerboard.leaderboards.findings.baselines import cannot_rank, equal_baselines
from layerboard.leaderboards.findings.thresholds import threshold_text
from layerboard.zoo.errors import some

# what records that do not say the size of their images are of
SIZE_OWN = " at the network's own input size, which may be smaller than what the task shows,"
MOST_NAMED = 3  # backbones named in a row of the table; of more than that, only the number is given
_FIELDS = (
    *("backbone", "layer", "depth", "pooling", "score", "ci_low", "ci_high", "loss", "held_out"),
    *("milliseconds", "timed_at", "disturbed", "device", "rivals", "untested", "layers", "elsewhere"),
    *("baselines", "thresholds"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Side):
    """The answer of a column: its best backbone, the first of equal ones, and that backbone's best block."""

    column: Column
    ci_low: float  # of the 95 % interval; NaN without one
    ci_high: float
    loss: float  # it is at most so many points below the true best, with 95 %; NaN if not compared
    held_out: float  # score with the layer chosen on held-out data; NaN without a split
    rivals: tuple[str, ...]  # other backbones that are not shown to be worse than the best
    untested: tuple[str, ...]  # backbones that could not be compared with the best
    compared: int  # number of other backbones that could be
    layers: tuple[int, ...]  # further blocks of the same vectors that are not shown to be worse
    elsewhere: Mapping[str, tuple[int, ...]]  # its blocks in other poolings that are not, by pooling
    bounds: Bounds  # of all candidates of the column
    milliseconds: float  # latency of one image up to the layer; NaN if not measured
    timed_at: str  # view size of the latency: of the task, or else the network's own; "" if unknown
    disturbed: bool  # whether other work disturbed the time
    device: str  # device of the latency; "" if not measured
    baselines: tuple[str, ...]  # labels of baselines that are not shown to be worse: the test cannot rank
    thresholds: str  # of its cosines, in words; "" for tasks without any


@dataclass(frozen=True, slots=True)
class Choice:
    """One layer of a backbone that is good enough for several columns."""

    backbone: str
    layer: int
    losses: Mapping[Column, float]  # it is at most so many points below the best of each column, with 95 %

    @property
    def poolings(self) -> tuple[str, ...]:
        """The poolings of its vectors in these columns, each once, in order."""
        return tuple(sorted({column.poolings[self.backbone] for column in self.losses}, key=pooling_rank))


def fewest_choices(answers: Sequence[Answer]) -> tuple[Choice, ...]:
    """A small set of layers that are good enough for all columns, the one for most columns first.

    A layer is good enough for a column if it is not shown to be worse than the best. Each next choice is the
    one for most of the remaining columns (a greedy cover); among several, the one that loses least.
    """
    left, choices = {answer.column: _fitting(answer) for answer in answers}, list[Choice]()
    while left:
        options: dict[tuple[str, int], dict[Column, float]] = {}
        for column, losses in left.items():
            for option, loss in losses.items():
                options.setdefault(option, {})[column] = loss
        chosen = min(options, key=lambda each: (-len(options[each]), np.nansum([*options[each].values()])))
        choices.append(Choice(*chosen, options[chosen]))
        left = {column: losses for column, losses in left.items() if column not in options[chosen]}
    return tuple(choices)


def _fitting(answer: Answer) -> dict[tuple[str, int], float]:
    """The layers that are good enough for a column, by backbone and number, with their losses."""
    rows = answer.bounds.rows
    rows = rows[rows["maybe"] | (rows["value"] == answer.score)]
    rows = rows[rows["pooling"] == rows["backbone"].map(answer.column.poolings)]
    fields = rows[["backbone", "layer", "loss"]].itertuples(index=False, name=None)
    return {(str(name), int(layer)): float(loss) for name, layer, loss in fields}


def answers_of(board: Board) -> tuple[Answer, ...]:
    """The answers of all columns with a score, in the order of the leaderboard."""
    costs = board.costs.records
    device = find_measured_device(costs)
    times = layer_costs(costs, device)
    columns = [column for column in board.columns if len(column.best)]
    answers = (_answer(column, board.bounds[column.key], times, device or "") for column in columns)
    return tuple(replace(each, baselines=equal_baselines(each.column, board.items)) for each in answers)


def _answer(column: Column, bounds: Bounds, costs: pd.DataFrame, device: str) -> Answer:
    """The answer of one column; a backbone with the same score as the best is not worse."""
    best = column.best
    top = best.loc[best["value"] == best["value"].max()].iloc[0]
    side = best_side(best, str(top["backbone"]))
    name, layer = side.backbone, side.layer
    rivals = [str(other) for other in best["backbone"] if other != name]
    every = bounds.rows[bounds.rows["backbone"] == name]
    own, other = (every[(every["pooling"] == side.pooling) == same] for same in (True, False))
    good = own[own["maybe"] | (own["value"] == side.score)]
    shown = best.loc[best["backbone"] == name, ["backbone", "view_size"]].head(1).assign(layer=layer)
    timed = with_costs(shown, costs).iloc[0]
    milliseconds = float(timed["ms"])
    choice = column.held_out.get(name)
    return Answer(
        *astuple(side),
        column=column,
        ci_low=float(top["ci_low"]),
        ci_high=float(top["ci_high"]),
        loss=float(own.loc[own["layer"] == layer, "loss"].iloc[0]),
        held_out=math.nan if choice is None else choice.score,
        rivals=tuple(other for other in rivals if other in bounds.highest | bounds.maybe),
        untested=tuple(other for other in rivals if other in bounds.untested),
        compared=sum(other not in bounds.untested for other in rivals),
        layers=tuple(sorted({*good["layer"].astype(int)} - {layer})),
        elsewhere={
            str(pooling): tuple(sorted(rows["layer"].astype(int)))
            for pooling, rows in other[other["maybe"]].groupby("pooling")
        },
        bounds=bounds,
        milliseconds=milliseconds,
        timed_at="" if math.isnan(milliseconds) else str(timed["timed_at"]),
        disturbed=not math.isnan(milliseconds) and bool(timed["disturbed"]),
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
            "loses at most": fixed(answer.loss, 1),
            "held out": score_text(answer.held_out),
            "ms": fixed(answer.milliseconds, 1) + ", disturbed" * answer.disturbed,
            "at, px": answer.timed_at,
            "not shown to be worse": _others(answer, labels),
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
    names += [f"layer {ranges_text([*layers])} {pooling}" for pooling, layers in answer.elsewhere.items()]
    if answer.untested:
        names.append(f"{len(answer.untested)} not compared")
    return "; ".join(names)


def answer_notes(answers: Sequence[Answer]) -> tuple[str, ...]:
    """How to read the table: one sentence for each thing that it shows."""
    notes = [
        f"{answer.column.heading}: {cannot_rank(answer.baselines)}." for answer in answers if answer.baselines
    ]
    if any(answer.rivals or answer.layers or answer.elsewhere for answer in answers):
        notes.append(
            "Not shown to be worse: the best on average is among these and the one shown (95 %); each row "
            "holds by itself."
        )
    if any(not math.isnan(answer.loss) for answer in answers):
        done = "compared" if any(answer.untested for answer in answers) else "measured"
        notes.append(
            f"Loses at most: the true best of all that were {done} is no more points above it (95 %), "
            "although it was picked on the same data."
        )
    if any(not math.isnan(answer.held_out) for answer in answers):
        notes.append(
            f"Held out: layers are chosen on half of the test data and scored on the rest ({HELD_OUT})."
        )
    if devices := " and ".join(sorted({answer.device for answer in answers} - {""})):
        sized = any(answer.timed_at for answer in answers)
        size = " at the size beside it, that of the task or else the network's own," if sized else SIZE_OWN
        notes.append(f"ms: latency of one image up to that layer,{size} on {devices}.")
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
