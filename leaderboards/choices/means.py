"""Means over the datasets of a task, for each backbone, as tables of transfer have them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import pandas as pd

from leaderboards.choices.best import best_layers
from leaderboards.choices.floor import floor_scores
from leaderboards.choices.selection import Column, columns_of, half_widths

LEAST = 2
"""Datasets that a mean is taken over at least."""


@dataclass(frozen=True, slots=True)
class MeanScore:
    """A backbone's mean over datasets.

    Attributes:
        value: Mean of its scores, each at the best layer of that dataset.
        spread: What ± is of the scores, of their mean where the datasets are independent; NaN where one has
            none.
    """

    value: float
    spread: float


@dataclass(frozen=True, slots=True)
class DatasetMean:
    """The means of a task over several datasets, by one protocol and metric.

    Attributes:
        after: The last of the task's columns.
        heading: Its own heading.
        columns: Columns of the datasets that every backbone with any score of the task has a score on.
        left_out: The other datasets' columns, and which backbones lack a score there.
        scores: Means of the backbones by name; none where fewer than two datasets are left.
        floors: The same of random floors, each the mean of its draws.
    """

    after: Column
    heading: str
    columns: tuple[Column, ...]
    left_out: Mapping[Column, tuple[str, ...]]
    scores: Mapping[str, MeanScore]
    floors: Mapping[str, MeanScore]


def dataset_means(records: pd.DataFrame) -> tuple[DatasetMean, ...]:
    """The means of every task that has columns of several datasets, in the order of the columns.

    A dataset whose scores stand in several columns, being of different images, counts with the first. A mean
    is over the same datasets for all backbones: those on which each has a score that has any.

    Args:
        records: Columns of `Record`, in any order.
    """
    groups: dict[tuple[str, str, str], dict[str, Column]] = {}
    for column in columns_of(records):
        of_task = groups.setdefault((column.task, column.protocol, column.metric), {})
        of_task.setdefault(column.dataset, column)
    several = [[*group.values()] for group in groups.values() if len(group) >= LEAST]
    if not several:
        return ()
    best = best_layers(records)
    best = best.assign(spread=half_widths(best))
    floors = floor_scores(records)
    floors = floors[floors["primary"].astype(bool)].rename(columns={"mean": "value", "deviation": "spread"})
    protocols = len({column.protocol for column in columns_of(records)})
    return tuple(_mean(group, best, floors, named=protocols > 1) for group in several)


def _mean(group: Sequence[Column], best: pd.DataFrame, floors: pd.DataFrame, *, named: bool) -> DatasetMean:
    """The mean of one task."""
    found = {column: _scores(best, column) for column in group}
    backbones = sorted({name for scores in found.values() for name in scores})
    lacking = {
        column: tuple(name for name in backbones if name not in scores) for column, scores in found.items()
    }
    taken = tuple(column for column in group if not lacking[column])
    heading = f"{group[0].task} {group[0].metric}, mean of {len(taken)} datasets"
    heading += f" ({group[0].protocol})" if named else ""
    heading += " †" if any(column.partial for column in taken) else ""
    enough = len(taken) >= LEAST
    drawn = {column: _scores(floors, column) for column in taken}
    common = set.intersection(*(set(scores) for scores in drawn.values())) if enough else set()
    return DatasetMean(
        group[-1],
        heading,
        taken,
        {column: names for column, names in lacking.items() if names},
        {name: _over([found[column][name] for column in taken]) for name in backbones if enough},
        {name: _over([drawn[column][name] for column in taken]) for name in sorted(common)},
    )


def _scores(rows: pd.DataFrame, column: Column) -> dict[str, MeanScore]:
    """Scores of one column by backbone."""
    own = column.rows(rows)
    own = own[own["metric"] == column.metric]
    cells = own[["backbone", "value", "spread"]].itertuples(index=False, name=None)
    return {str(name): MeanScore(float(value), float(spread)) for name, value, spread in cells}


def _over(scores: Sequence[MeanScore]) -> MeanScore:
    """The mean of scores on independent datasets."""
    spread = sqrt(sum(score.spread**2 for score in scores)) / len(scores)
    return MeanScore(sum(score.value for score in scores) / len(scores), spread)
