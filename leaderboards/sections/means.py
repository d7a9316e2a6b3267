"""Means over the datasets of a task for each backbone, as in tables of transfer learning."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import dist

import pandas as pd

from layerboard.leaderboards.blocks.blocks import Block, Cell
from layerboard.leaderboards.blocks.display import score_text
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.column import Column
from layerboard.leaderboards.board.frames import INTERVAL
from layerboard.leaderboards.sections.provenance import list_blocks
from layerboard.leaderboards.sections.tables import EMPTY, main_table
from layerboard.tasks.datasets.catalogue import GROUPS

LEAST = 2  # minimum number of datasets in a mean

MEANS = """\
Means over datasets average the scores of a backbone in the columns to their left, each at the best layer of
that dataset, so no single layer reaches them. They include the datasets on which every backbone of the task
has a score; ± assumes that datasets are independent. Means are not compared. Datasets of each mean:"""

MeanScore = tuple[float, float, float]
"""A score of a backbone, or its mean over datasets, and the ends of its interval: NaN where there is none."""


@dataclass(frozen=True, slots=True)
class DatasetMean:
    """The means of a task over several datasets, by one protocol and metric."""

    after: Column  # the last of the task's columns
    heading: str
    group: str  # of its datasets; "" for all
    columns: tuple[Column, ...]  # datasets on which every backbone with a score of the task has one
    left_out: Mapping[Column, tuple[str, ...]]  # the others, and which backbones lack a score there
    scores: Mapping[str, MeanScore]  # by backbone; none if fewer than two datasets are left
    floors: Mapping[str, MeanScore]  # of random floors, each the mean of its draws


def dataset_means(board: Board) -> tuple[DatasetMean, ...]:
    """The means of every task that has columns of several datasets, in the order of the columns.

    The mean over each group of datasets (`tasks.datasets.catalogue.GROUPS`) follows that over all. A dataset
    with several columns, of different images, counts with the first. A mean is over the same datasets for all
    backbones: those on which every backbone with any score has one.
    """
    tasks: dict[tuple[str, str, str], dict[str, Column]] = {}
    for column in board.columns:
        datasets = tasks.setdefault((column.task, column.protocol, column.metric), {})
        datasets.setdefault(column.dataset, column)
    named = len({column.protocol for column in board.columns}) > 1
    means = []
    for every in tasks.values():
        last = [*every.values()][-1]
        for group in ("", *dict.fromkeys(GROUPS.values())):
            taken = [column for name, column in every.items() if group in ("", GROUPS.get(name))]
            if len(taken) >= LEAST:
                means.append(_mean(taken, last, group, named=named))
    return tuple(means)


def _mean(datasets: Sequence[Column], after: Column, group: str, *, named: bool) -> DatasetMean:
    """The mean of one task over a group of datasets; its heading may name the protocol."""
    scores = {column: _scores(column.best) for column in datasets}
    backbones = sorted({name for by_name in scores.values() for name in by_name})
    every = scores.items()
    lacking = {column: tuple(name for name in backbones if name not in own) for column, own in every}
    taken = tuple(column for column in datasets if not lacking[column])
    heading = f"{after.task} {after.metric}, mean of {len(taken)} {group} datasets".replace("  ", " ")
    heading += f" ({after.protocol})" if named else ""
    heading += " †" if any(column.partial for column in taken) else ""
    draws = [
        {str(name): (mean, mean - deviation, mean + deviation) for name, mean, deviation in floors.to_numpy()}
        for floors in (column.floors[["backbone", "mean", "deviation"]] for column in taken)
    ]
    left_out = {column: names for column, names in lacking.items() if names}
    over = _over([scores[column] for column in taken])
    return DatasetMean(after, heading, group, taken, left_out, over, _over(draws))


def _scores(rows: pd.DataFrame) -> dict[str, MeanScore]:
    fields = rows[["backbone", *INTERVAL]].itertuples(index=False, name=None)
    return {str(name): (float(value), float(low), float(high)) for name, value, low, high in fields}


def _over(datasets: Sequence[Mapping[str, MeanScore]]) -> dict[str, MeanScore]:
    """The means of the backbones that have scores on all of some independent datasets; none for too few.

    Each side of the interval is combined by itself (MOVER: Zou and Donner, Statistics in Medicine 2008), so
    that it stays within 0 to 100.
    """
    if len(datasets) < LEAST:
        return {}
    means = {}
    for name in sorted(set.intersection(*(set(by_name) for by_name in datasets))):
        values, lows, highs = zip(*(by_name[name] for by_name in datasets), strict=True)
        mean = sum(values) / len(datasets)
        below, above = (dist(values, ends) / len(datasets) for ends in (lows, highs))
        means[name] = mean, mean - below, mean + above
    return means


def table_with_means(board: Board) -> pd.DataFrame:
    """The `main_table` with each task's mean after its columns."""
    table = main_table(board)
    for mean in reversed(dataset_means(board)):  # each is put before those of its task that are there
        if mean.scores:
            by_name = {name: Cell(score_text(*score)) for name, score in mean.floors.items()}
            by_name |= {name: Cell(score_text(*each), value=each[0]) for name, each in mean.scores.items()}
            cells = [by_name.get(backbone.name, EMPTY) for backbone in board.scored_backbones]
            position = int(table.columns.get_loc(mean.after.heading)) + 1  # type: ignore[arg-type]
            table.insert(position, mean.heading, cells)
    return table


def mean_blocks(board: Board) -> list[Block]:
    """The datasets of each mean; empty if no task has several datasets."""
    lines = []
    for mean in dataset_means(board):
        over = ", ".join(column.dataset_name for column in mean.columns) if mean.scores else "no mean"
        said = ", ".join(filter(None, (mean.after.protocol, mean.group)))
        line = f"{mean.after.task} {mean.after.metric} ({said}): {over}"
        left_out = "; ".join(
            f"{column.dataset_name} (no score of {', '.join(board.labels[name] for name in names)})"
            for column, names in mean.left_out.items()
        )
        lines.append(f"{line}; left out: {left_out}" if left_out else line)
    return list_blocks(MEANS, lines)
