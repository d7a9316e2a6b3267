"""Which backbones the data cannot tell from the best one of a leaderboard column."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from leaderboards.choices.selection import Column, backbones_of, best_rows, columns_of, score_rows
from leaderboards.records.files import scored_path, task_key
from leaderboards.records.items import read_items
from tasks.base import Items
from tasks.metrics.uncertainty import Differences
from tasks.uncertainty import paired_differences
from zoo.errors import InputError

PairedTest = Callable[[Sequence[Items], str], Differences | None]
"""Differences of a metric of some items from that of the first; None where they share too few items."""


@dataclass(frozen=True, slots=True)
class Ties:
    """What the paired tests of one column say, by names of backbones.

    Attributes:
        tied: Those that the data cannot tell from the column's best.
        apart: Those that are worse.
        untested: Those whose measurements are not there, are of other items than the best one's, or are too
            few to tell.
    """

    tied: frozenset[str] = frozenset()
    apart: frozenset[str] = frozenset()
    untested: frozenset[str] = frozenset()


def column_ties(
    records: pd.DataFrame, folder: Path, test: PairedTest = paired_differences
) -> dict[tuple[str, str, str, str], Ties]:
    """For the `Column.key` of each column, which backbones are tied with the best.

    Each backbone's best layer is compared with the best layer of the column's first backbone, in the order of
    the tables, that reaches the best score; what depends on chance is fixed, and nothing depends on the order
    of the records. The random floor takes no part.

    Args:
        records: Columns of `Record`, in any order.
        folder: The items of a run, as `leaderboards.records.items.write_items` wrote them.
        test: The paired test.
    """
    rows = score_rows(records)
    best = best_rows(rows[rows["primary"].astype(bool)])
    ranks = {backbone.name: rank for rank, backbone in enumerate(backbones_of(records))}
    best = best.sort_values("backbone", key=lambda names: names.map(ranks), kind="stable")
    found = {}
    for column in columns_of(records):
        shown = column.rows(best)
        found[column.key] = _ties(shown[shown["metric"] == column.metric], column, folder, test)
    return found


def _ties(rows: pd.DataFrame, column: Column, folder: Path, test: PairedTest) -> Ties:
    """Ties of one column, whose best layers are the rows."""
    top = rows["value"].max()
    below = rows[rows["value"] < top].to_dict("records")
    if not below:
        return Ties()
    best = _measured(rows[rows["value"] == top].to_dict("records")[0], folder)
    found: dict[str, set[str]] = {"tied": set(), "apart": set(), "untested": set()}
    for row in below:
        other = _measured(row, folder)
        result = test([best, other], column.metric) if best and other else None
        found[_verdict(result)].add(row["backbone"])
    return Ties(**{name: frozenset(names) for name, names in found.items()})


def _verdict(result: Differences | None) -> str:
    """Which of the sets of `Ties` the second of two backbones belongs to."""
    if result is None or np.isnan(result.low[1]):
        return "untested"
    return "tied" if result.tied[1] else "apart"


def _measured(row: Mapping[Hashable, Any], folder: Path) -> Items | None:
    """Items behind one row; None where there are none that can be read."""
    key = task_key(row["task"], row["dataset"], row["protocol"])
    place = (int(row["layer"]), row["tap"], row["pooling"])
    try:
        return read_items(folder / scored_path(key, row["backbone"]), [place]).get(place)
    except InputError:  # a leaderboard is worth having without its marks; the page names what is not tested
        return None
