"""The answer of each column: which candidate is best, and what is known of it; facts and nothing else."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import nan
from pathlib import Path

import pandas as pd

from layerboard.leaderboards.answer.candidates import Candidate, candidates_of
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.column import COLUMN_FIELDS, Column
from layerboard.leaderboards.board.costs import find_measured_device, layer_costs
from layerboard.leaderboards.board.differences import Bounds, best_side, bounds_of, differences_of, sides_of
from layerboard.leaderboards.board.frames import RANDOM, candidates, is_floor
from layerboard.leaderboards.findings.facts import Facts
from layerboard.zoo.errors import some

_OF_BEST = ("backbone", "layer", "depth", "pooling", "score", "ci_low", "ci_high", "loss", "held_out")
_COST = ("milliseconds", "timed_at", "disturbed", "device")
_BESIDE = ("rivals", "untested", "layers", "elsewhere", "baselines")
_FIELDS = (*_OF_BEST, *_COST, *_BESIDE, "thresholds")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answer:
    """What a column says: its best candidate, how sure that is, and what may be chosen in its place."""

    column: Column
    best: Candidate  # with the highest score; of equal ones the first of `candidates_of`
    rivals: tuple[str, ...]  # other backbones that may be the best
    untested: tuple[str, ...]  # backbones that could not be compared with the best
    layers: tuple[int, ...]  # further blocks of the same vectors that may be the best
    elsewhere: Mapping[str, tuple[int, ...]]  # its blocks that may be in other poolings, by pooling
    baselines: tuple[str, ...]  # labels of baselines that may be as good: the test cannot rank
    device: str  # whose times are told; "" without any
    candidates: tuple[Candidate, ...]  # to choose from, the highest first: all, or those that limits leave
    units: str = ""  # what was sampled, counted: ``6 videos``; "" if that is unknown

    @property
    def held_out(self) -> float:
        """The score of the best backbone with the layer chosen on held-out data; NaN if that is not known.

        It is not known without a split, and if limits leave out a layer that halves of the data chose:
        without it another choice would have been made.
        """
        choice = self.column.held_out.get(self.best.backbone)
        left = {each.layer for each in self.candidates if each.backbone == self.best.backbone}
        known = choice and not self.best.transform and left >= {layer for layer, _ in choice.shares}
        return choice.score if choice and known else nan

    @property
    def compared(self) -> int:
        """The number of other backbones that were compared with the best."""
        return len(self.column.best) - 1 - len(self.untested)

    @property
    def lowered(self) -> bool:
        """Whether limits left out the candidate with the highest score."""
        return self.candidates[0].difference < 0

    def only(self, names: Iterable[str]) -> "Answer":
        """The answer with some backbones to choose from; what is known of the best stays."""
        chosen = {*names}
        return replace(self, candidates=tuple(each for each in self.candidates if each.backbone in chosen))


def answers_of(
    board: Board,
    facts: Mapping[str, Facts] | None = None,
    *,
    columns: Sequence[Column] | None = None,
    device: str | None = None,
    compressed: pd.DataFrame | None = None,
) -> tuple[Answer, ...]:
    """The answers of some columns of a board, or of all, in order; none for columns without a score.

    ``facts`` are those of backbones by name; ``device`` is the one whose times count, or else the one that
    was measured last. ``compressed`` are records of compressed vectors if these are candidates, too.
    """
    costs = board.costs.records
    device = find_measured_device(costs) if device is None else device
    times = layer_costs(costs, device)
    answers = []
    for column in board.columns if columns is None else columns:
        if len(column.best):
            bounds = board.bounds[column.key]
            if compressed is not None:
                packed = column.select(compressed)  # scored blocks in every pooling compete
                packed = candidates(packed[(packed["metric"] == column.metric) & ~is_floor(packed)])
                every = pd.concat([column.family, packed], ignore_index=True)
                bounds = bounds_of(column, every, board.items)
            own = candidates_of(column, bounds.rows, times, facts or {}, compressed)
            answers.append(_answer(column, bounds, own, device or "", equal_baselines(column, board.items)))
    return tuple(answers)


def _answer(
    column: Column, bounds: Bounds, candidates: tuple[Candidate, ...], device: str, baselines: tuple[str, ...]
) -> Answer:
    """The answer of one column; a backbone with the same score as the best is not worse."""
    best, *_ = candidates
    others = [str(name) for name in column.best["backbone"] if name != best.backbone]
    good: dict[str, set[int]] = {}
    for each in candidates:
        equal = each.pooling == best.pooling and each.value == best.value
        if (each.backbone, each.transform) == (best.backbone, best.transform) and (each.maybe or equal):
            good.setdefault(each.pooling, set()).add(each.layer)
    layers = tuple(sorted(good.pop(best.pooling) - {best.layer}))
    return Answer(
        column=column,
        best=best,
        rivals=tuple(name for name in others if name in bounds.highest | bounds.maybe),
        untested=tuple(name for name in others if name in bounds.untested),
        layers=layers,
        elsewhere={pooling: tuple(sorted(good[pooling])) for pooling in sorted(good)},
        baselines=baselines,
        units=bounds.units,
        device=device,
        candidates=candidates,
    )


def telling(answers: Sequence[Answer]) -> list[Answer]:
    """The answers of columns that can rank, in which no baseline does as well as the best; or else all."""
    return [answer for answer in answers if not answer.baselines] or [*answers]


def equal_baselines(column: Column, items: Path | None) -> tuple[str, ...]:
    """Baselines that are not shown to score lower than the best trained backbone, by their labels, in order.

    Of each untrained network and of raw pixels the best layer counts, of random draws the one in the middle.
    Without items, or with too few, scores alone are compared. Empty without a trained backbone.
    """
    trained = column.best[column.best["trained"].astype(bool)]
    if trained.empty:
        return ()
    top = trained.sort_values("value", ascending=False, kind="stable")
    best = best_side(trained, str(top["backbone"].iloc[0]))
    untrained = column.best.loc[~column.best["trained"].astype(bool), "backbone"]
    sides = {str(name): best_side(column.best, str(name)) for name in untrained}
    rows = column.in_pooling()
    floors = candidates(rows[(rows["metric"] == column.metric) & is_floor(rows)])
    for name, own in floors.groupby("backbone"):
        draws = sorted(sides_of(own, str(name)), key=lambda side: side.score)
        sides[str(name)] = draws[len(draws) // 2 if own["family"].iloc[0] == RANDOM else -1]
    return tuple(
        label
        for name, label in column.labels.items()
        if name in sides
        for difference in differences_of(column, [sides[name]], best, items)
        if not (difference.value if pd.isna(difference.high) else difference.high) < 0
    )


def answer_frame(answers: Sequence[Answer]) -> pd.DataFrame:
    """One row per column of the leaderboard, in full: columns `COLUMN_FIELDS` and the facts of its answer."""
    rows = [
        {name: getattr(answer.column, name) for name in COLUMN_FIELDS}
        | asdict(answer.best)
        | {name: getattr(answer, name) for name in ("held_out", *_BESIDE)}
        | {"score": answer.best.value, "milliseconds": answer.best.ms}
        | {"device": answer.device if answer.best.ms >= 0 else ""}
        for answer in answers
    ]
    return pd.DataFrame(rows, columns=[*COLUMN_FIELDS, *_FIELDS])


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
