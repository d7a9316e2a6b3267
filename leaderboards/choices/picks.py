"""Backbones that may be the best in several columns at once, each with the layers to take, cheapest first."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from leaderboards.choices.possible import Possible
from leaderboards.choices.selection import Column


@dataclass(frozen=True, slots=True)
class Pick:
    """A backbone, and the layer of it to take in each column.

    Attributes:
        backbone: Its name.
        rows: For each column the candidate: the cheapest that may be the best, of one layer for all columns
            where there is one.
        others: Further blocks that may be the best in every column, in order.
        loss: Points that it scores below the best in the column where it loses most; 0 where it may be the
            best in all of them.
    """

    backbone: str
    rows: Mapping[Column, pd.Series]
    others: tuple[int, ...] = ()
    loss: float = 0.0

    @property
    def layers(self) -> tuple[int, ...]:
        """The blocks that are read, in order."""
        return tuple(sorted({int(row["layer"]) for row in self.rows.values()}))

    @property
    def deepest(self) -> pd.Series:
        """The candidate that decides what it costs: one forward up to it reads all others."""
        return max(self.rows.values(), key=lambda row: int(row["layer"]))

    @property
    def rank(self) -> tuple[float, float, int, str]:
        """Sort key: time, or where that is not known the weights, then the depth."""
        row = self.deepest
        cost = [math.inf if math.isnan(row[name]) else float(row[name]) for name in ("ms", "parameters")]
        return cost[0], cost[1], int(row["layer"]), self.backbone


def picks_of(possible: Mapping[Column, Possible]) -> tuple[Pick, ...]:
    """Backbones with a layer that may be the best in every column, the cheapest first.

    A layer that may be the best in all columns is taken for all of them; where a backbone has none, each
    column has a layer of its own.
    """
    names = [{str(name) for name in one.rows["backbone"]} for one in possible.values()]
    picks = [_pick(name, possible) for name in sorted(set.intersection(*names))]
    return tuple(sorted(picks, key=lambda pick: pick.rank))


def _pick(name: str, possible: Mapping[Column, Possible]) -> Pick:
    own = {column: one.rows[one.rows["backbone"] == name] for column, one in possible.items()}
    common = sorted(set.intersection(*({int(layer) for layer in rows["layer"]} for rows in own.values())))
    rows = {
        column: found[found["layer"] == (common[0] if common else found["layer"].min())].iloc[0]
        for column, found in own.items()
    }
    return Pick(name, rows, tuple(common[1:]))


def least_loss(candidates: Mapping[Column, pd.DataFrame]) -> Pick | None:
    """The backbone that loses least in the column where it loses most; None where none has them all.

    Args:
        candidates: For each column what is allowed; each backbone stands at its best layer.
    """
    best = {column: float(rows["value"].max()) for column, rows in candidates.items()}
    names = [{str(name) for name in rows["backbone"]} for rows in candidates.values()]
    found = []
    for name in sorted(set.intersection(*names)):
        rows = {column: _highest(every, name) for column, every in candidates.items()}
        loss = max(best[column] - float(row["value"]) for column, row in rows.items())
        found.append(Pick(name, rows, loss=loss))
    return min(found, key=lambda pick: (pick.loss, pick.rank), default=None)


def _highest(rows: pd.DataFrame, name: str) -> pd.Series:
    """The best candidate of a backbone, the lower layer of equal ones."""
    own = rows[rows["backbone"] == name]
    return own.sort_values(["value", "layer"], ascending=[False, True], kind="stable").iloc[0]
