"""What the items of a column tell about the order of its backbones: ranks, and what they can resolve."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import pandas as pd

from layerboard.leaderboards.board.column import Column
from layerboard.leaderboards.board.differences import Bounds, items_of, sides_of
from layerboard.tasks.framework.assess import standing_of


@dataclass(frozen=True, slots=True)
class ColumnStanding:
    """What the items of one column tell, by all layers in all poolings."""

    # the first and the last rank of each backbone, by name, all with 95 % at once; none if some lack items
    ranks: Mapping[str, tuple[int, int]]
    smallest: float  # points: the smallest difference from the best that the items show; NaN for none


ColumnKey = tuple[str, str, str, str]
Standings = Mapping[ColumnKey, ColumnStanding]  # by `Column.key`


def standings_of(columns: Iterable[Column], bounds: Mapping[ColumnKey, Bounds], folder: Path) -> Standings:
    """The standing of each column, by `Column.key`, from a folder of items; none for columns without any.

    ``bounds`` of the columns say which backbones may be the best: exactly these have the first rank.
    """
    standings = {column.key: _standing(column, bounds[column.key], folder) for column in columns}
    return {key: standing for key, standing in standings.items() if standing}


def _standing(column: Column, bounds: Bounds, folder: Path) -> ColumnStanding | None:
    sides = {str(name): sides_of(column.family, str(name)) for name in column.best["backbone"]}
    items = items_of(column, chain.from_iterable(sides.values()), folder)
    measured = {  # all layers of a backbone, or else the family of the tests would not be whole
        name: [items[side] for side in own] for name, own in sides.items() if {*own} <= {*items}
    }
    best = bounds.highest | bounds.maybe | bounds.untested
    standing = standing_of([*measured.values()], column.metric, [name in best for name in measured])
    if standing is None:
        return None
    known = standing.ranks if standing.ranks and len(measured) == len(sides) else ()
    return ColumnStanding(dict(zip(measured, known, strict=bool(known))), standing.smallest)


def mean_ranks(columns: Sequence[Column]) -> dict[str, float]:
    """The mean rank of each backbone's best layer; empty unless all have scores in each of several columns.

    The best has rank 1, and equal scores share the mean of their ranks. It has no interval: one that is drawn
    from the errors of the scores covers the true mean rank far too seldom if scores are nearly equal. Which
    ranks the data allow in each column is in `ColumnStanding`.
    """
    tables = [column.best.set_index("backbone")["value"].astype(float) for column in columns]
    names = sorted({str(name) for table in tables for name in table.index})
    if len(tables) < 2 or len(names) < 2 or any(len(table) < len(names) for table in tables):
        return {}
    ranks = pd.concat([table.loc[names].rank(ascending=False) for table in tables], axis=1).mean(axis=1)
    return {name: float(rank) for name, rank in zip(names, ranks.loc[names], strict=True)}
