"""Scores against the input size: the best layer of a backbone at each size that it was run at."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from leaderboards.choices.allowed import Allowed, allowed
from leaderboards.choices.floor import floor_scores
from leaderboards.choices.gains import Difference, Measured, difference_of
from leaderboards.choices.selection import (
    Column,
    backbones_of,
    candidates,
    columns_of,
    is_floor,
    pooled,
    score_rows,
)
from leaderboards.choices.sides import Side, best_of
from zoo.spec import entry_name

ALIKE = 1.05
"""Sizes up to this factor apart stand in one column where no backbone was run at both: 768 px are 770 px to
a network of patches of 14 px."""


@dataclass(frozen=True, slots=True)
class AtSize:
    """A backbone at one input size in a column.

    Attributes:
        name: Its name at that size.
        input_size: Side in pixels.
        score: Of its best block, in percent; of the random floor the mean of its draws.
        best: That block; None of the random floor.
        ceiling: What the grid of that block allows; None where that is not known.
    """

    name: str
    input_size: int
    score: float
    best: Side | None = None
    ceiling: Allowed | None = None


@dataclass(frozen=True, slots=True)
class BySize:
    """A backbone at several input sizes in a column.

    Attributes:
        column: Task, dataset, data, protocol and metric.
        backbone: Its name without a size.
        sizes: What it has at each size, the smallest first.
        gain: Score at the largest size less that at the smallest one; both layers were chosen on the items
            that score them. None of the random floor.
        same: Whether all of its layers score the same at every size.
    """

    column: Column
    backbone: str
    sizes: tuple[AtSize, ...]
    gain: Difference | None
    same: bool


def by_size(records: pd.DataFrame, items: Path | None) -> tuple[BySize, ...]:
    """Every backbone of several input sizes, by column and backbone in the order of the tables.

    Args:
        records: Columns of `Record`, of one suite.
        items: The items of their run; None where they are not there, and nothing says how sure a gain is.
    """
    rows = score_rows(records)
    names: dict[str, list[str]] = {}
    for backbone in backbones_of(rows):
        names.setdefault(entry_name(backbone.name), []).append(backbone.name)
    several = {entry: own for entry, own in names.items() if len(own) > 1}
    if not several:
        return ()
    found = []
    for column in columns_of(rows):
        ceilings = {one.backbone: one for one in allowed(rows, column)}
        for entry, own in several.items():
            placed = [one for name in own if (one := _at_size(rows, column, name, ceilings))]
            sizes = sorted(placed, key=lambda one: one.input_size)
            if len({one.input_size for one in sizes}) > 1:
                gain = _gain(column, sizes[0], sizes[-1], items)
                same = _same(rows, column, [one.name for one in sizes])
                found.append(BySize(column, entry, tuple(sizes), gain, same))
    return tuple(found)


def size_columns(found: Sequence[BySize]) -> tuple[tuple[int, ...], ...]:
    """Input sizes as columns of a table, from the smallest on; one may stand for sizes that nearly agree."""
    own = [{one.input_size for one in each.sizes} for each in found]
    columns: list[tuple[int, ...]] = []
    for size in sorted(set().union(*own)):
        near = columns[-1] if columns and size <= ALIKE * columns[-1][0] else ()
        if near and not any(size in sizes and sizes & {*near} for sizes in own):
            columns[-1] = (*near, size)
        else:
            columns.append((size,))
    return tuple(columns)


def _at_size(rows: pd.DataFrame, column: Column, name: str, ceilings: dict[str, Allowed]) -> AtSize | None:
    """A backbone of that name in a column; None where it has no score there."""
    own = candidates(pooled(rows, column))
    own = own[(own["metric"] == column.metric) & (own["backbone"] == name)]
    if own.empty:
        return None
    size = int(own["input_size"].iloc[0])
    if is_floor(own).any():
        draws = column.rows(floor_scores(rows))
        draws = draws[draws["primary"].astype(bool) & (draws["backbone"] == name)]
        return AtSize(name, size, float(draws.loc[draws["metric"] == column.metric, "mean"].iloc[0]))
    best = best_of(own, name)
    return AtSize(name, size, best.score, best, ceilings.get(name))


def _gain(column: Column, first: AtSize, last: AtSize, items: Path | None) -> Difference | None:
    """The score at the last size less that at the first, paired over the items that both have."""
    if first.best is None or last.best is None:
        return None
    smallest, largest = (
        Measured(one.name, best.place, one.score) for one, best in ((first, first.best), (last, last.best))
    )
    return difference_of(column, largest, smallest, items)


def _same(rows: pd.DataFrame, column: Column, names: Sequence[str]) -> bool:
    """Whether some backbones have the same layers with the same values of the column's metric."""
    own = column.rows(rows)
    own = own[(own["metric"] == column.metric) & own["value"].notna()]
    own = own[["backbone", "layer", "tap", "pooling", "value"]]
    tables = [
        sorted(place for name, *place in own.itertuples(index=False, name=None) if name == wanted)
        for wanted in names
    ]
    return all(table == tables[0] for table in tables[1:])
