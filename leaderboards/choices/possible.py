"""Which single layers of which backbones may be the best of a column, and which are worth their time."""

from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from leaderboards.choices.selection import Column
from leaderboards.choices.ties import SetTest, known_items
from leaderboards.records.items import Place
from tasks.base import Items
from tasks.uncertainty import confidence_set

HOPELESS = 2.0
"""Intervals of two scores, added up, times this: what is so far below the best needs no test. Whatever the
pairing, that is 3.9 standard errors of the difference."""

Candidate = tuple[str, int]
"""A backbone and a block of it."""


@dataclass(frozen=True, slots=True)
class Possible:
    """Candidates of one column.

    Attributes:
        rows: Those that may be the best, with 95 %, the best first; columns of the candidates.
        untested: Those whose items are not there, of other images or too few.
    """

    rows: pd.DataFrame
    untested: tuple[Candidate, ...] = field(default=())

    @property
    def best(self) -> "pd.Series":
        """The row of the highest score."""
        return self.rows.iloc[0]


def may_be_best(rows: pd.DataFrame, column: Column, folder: Path, test: SetTest = confidence_set) -> Possible:
    """Which candidates the data cannot tell from the best of them, each layer a rival of its own.

    Args:
        rows: Candidates, one at least (`leaderboards.choices.limits.candidates_of`).
        column: Their column.
        folder: The items of the records.
        test: The test of all rivals at once.
    """
    order = ["value", "layer", "backbone"]
    rows = rows.sort_values(order, ascending=[False, True, True], kind="stable").reset_index(drop=True)
    top = rows.iloc[0]
    reach = HOPELESS * (rows["half"] + top["half"])
    near = rows[~(top["value"] - rows["value"] > reach)].reset_index(drop=True)
    items = _items(near, column, folder)
    places = [place for place in range(len(near)) if items[place] is not None]
    verdicts: list[bool | None] = [None] * len(near)
    if places and places[0] == 0 and len(places) > 1:
        found = test([[one] for one in items if one is not None], column.metric)
        for place, verdict in zip(places, found, strict=True):
            verdicts[place] = verdict
    verdicts[0] = True
    kept = near[[verdict is True for verdict in verdicts]].reset_index(drop=True)
    left = near[[verdict is None for verdict in verdicts]]
    return Possible(kept, tuple(zip(left["backbone"], left["layer"].astype(int), strict=True)))


def _items(rows: pd.DataFrame, column: Column, folder: Path) -> list[Items | None]:
    """Items of each row; None where they are not there."""
    found = {
        (str(name), place): items
        for name, own in rows.groupby("backbone", sort=True)
        for place, items in known_items(column, str(name), _places(own), folder).items()
    }
    names = rows["backbone"].astype(str)
    return [found.get(pair) for pair in zip(names, _places(rows), strict=True)]


def _places(rows: pd.DataFrame) -> list[Place]:
    fields = zip(rows["layer"], rows["tap"], rows["pooling"], strict=True)
    return [(int(layer), str(tap), str(pooling)) for layer, tap, pooling in fields]


def pareto_front(rows: pd.DataFrame, cost: str = "ms") -> pd.DataFrame:
    """Rows above which none scores that costs no more, the cheapest first.

    Of equal costs the highest score counts, of equal scores the cheapest; rows without a cost or a score are
    left out.

    Args:
        rows: A column ``value``, and the cost's, among others.
        cost: Name of the cost.
    """
    rows = rows[rows[cost].notna() & rows["value"].notna()]
    rows = rows.sort_values([cost, "value"], ascending=[True, False], kind="stable")
    before = rows["value"].astype(float).cummax().shift(fill_value=float("-inf"))
    return rows[rows["value"] > before]
