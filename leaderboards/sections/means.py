"""Means over the datasets of a task, for each backbone, as tables of transfer have them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import pandas as pd

from leaderboards.board import Board
from leaderboards.display import score_text
from leaderboards.scores.column import Column
from leaderboards.scores.frames import half_widths
from tasks.blocks import Block, Bullets, Cell, said

LEAST = 2  # datasets that a mean is taken over at least

MEANS = """\
Means over datasets are plain means of a backbone's scores in the columns to their left, each at that
dataset's own best layer, so no single layer reaches them. They are over the datasets on which every backbone
with a score in the task has one; ± follows from those of the columns, whose images are independent. Means
are not compared, and none is marked. What they are over:"""


@dataclass(frozen=True, slots=True)
class MeanScore:
    """A backbone's mean over datasets."""

    value: float  # mean of its scores, each at the best layer of that dataset
    # what ± is of the scores, of their mean where the datasets are independent; NaN where one has none
    spread: float


@dataclass(frozen=True, slots=True)
class DatasetMean:
    """The means of a task over several datasets, by one protocol and metric."""

    after: Column  # the last of the task's columns
    heading: str  # the heading of its column of means
    # columns of the datasets that every backbone with any score of the task has a score on
    columns: tuple[Column, ...]
    # the other datasets' columns, and which backbones lack a score there
    left_out: Mapping[Column, tuple[str, ...]]
    # means of the backbones by name; none where fewer than two datasets are left
    scores: Mapping[str, MeanScore]
    floors: Mapping[str, MeanScore]  # means of the random floors by name, each the mean of its draws


def dataset_means(board: Board) -> tuple[DatasetMean, ...]:
    """The means of every task that has columns of several datasets, in the order of the columns.

    A dataset whose scores stand in several columns, being of different images, counts with the first. A mean
    is over the same datasets for all backbones: those on which each has a score that has any.
    """
    groups: dict[tuple[str, str, str], dict[str, Column]] = {}
    for column in board.columns:
        datasets = groups.setdefault((column.task, column.protocol, column.metric), {})
        datasets.setdefault(column.dataset, column)
    protocols = len({column.protocol for column in board.columns})
    return tuple(
        _mean([*group.values()], named=protocols > 1) for group in groups.values() if len(group) >= LEAST
    )


def _mean(group: Sequence[Column], *, named: bool) -> DatasetMean:
    """The mean of one task; its heading may name the protocol."""
    scores = {column: _best_scores(column) for column in group}
    backbones = sorted({name for by_name in scores.values() for name in by_name})
    lacking = {
        column: tuple(name for name in backbones if name not in by_name) for column, by_name in scores.items()
    }
    taken = tuple(column for column in group if not lacking[column])
    heading = f"{group[0].task} {group[0].metric}, mean of {len(taken)} datasets"
    heading += f" ({group[0].protocol})" if named else ""
    heading += " †" if any(column.partial for column in taken) else ""
    enough = len(taken) >= LEAST
    floors = {column: _floor_scores(column) for column in taken}
    common = set.intersection(*(set(by_name) for by_name in floors.values())) if enough else set()
    return DatasetMean(
        group[-1],
        heading,
        taken,
        {column: names for column, names in lacking.items() if names},
        {name: _over([scores[column][name] for column in taken]) for name in backbones if enough},
        {name: _over([floors[column][name] for column in taken]) for name in sorted(common)},
    )


def _best_scores(column: Column) -> dict[str, MeanScore]:
    """The score of each backbone in a column."""
    fields = zip(column.best["backbone"], column.best["value"], half_widths(column.best), strict=True)
    return {str(name): MeanScore(float(value), float(spread)) for name, value, spread in fields}


def _floor_scores(column: Column) -> dict[str, MeanScore]:
    """Mean and standard deviation of each random floor in a column."""
    fields = column.floors[["backbone", "mean", "deviation"]].itertuples(index=False, name=None)
    return {str(name): MeanScore(float(value), float(spread)) for name, value, spread in fields}


def _over(scores: Sequence[MeanScore]) -> MeanScore:
    """The mean of scores on independent datasets."""
    spread = sqrt(sum(score.spread**2 for score in scores)) / len(scores)
    return MeanScore(sum(score.value for score in scores) / len(scores), spread)


def with_means(table: pd.DataFrame, board: Board) -> pd.DataFrame:
    """The table of best layers, a row a backbone with scores, with each task's mean behind its columns."""
    for mean in dataset_means(board):
        if mean.scores:
            scores = {**mean.floors, **mean.scores}
            texts = (
                score_text(scores[backbone.name].value, scores[backbone.name].spread)
                if backbone.name in scores
                else ""
                for backbone in board.scored_backbones
            )
            position = int(table.columns.get_loc(mean.after.heading)) + 1  # type: ignore[arg-type]
            table.insert(position, mean.heading, [Cell(text) for text in texts])
    return table


def mean_blocks(board: Board) -> list[Block]:
    """What the means are over; nothing where no task has several datasets."""
    lines = tuple(_line(mean, board.labels) for mean in dataset_means(board))
    return [said(MEANS), Bullets(lines)] if lines else []


def _line(mean: DatasetMean, labels: Mapping[str, str]) -> str:
    """One mean in words."""
    over = ", ".join(column.dataset_name for column in mean.columns)
    task = f"{mean.after.task} {mean.after.metric} ({mean.after.protocol})"
    line = f"{task}: {over}" if mean.scores else f"{task}: no mean"
    left_out = "; ".join(
        f"{column.dataset_name} (no score of {', '.join(labels[name] for name in names)})"
        for column, names in mean.left_out.items()
    )
    return f"{line}; left out: {left_out}" if left_out else line
