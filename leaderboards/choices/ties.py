"""Which backbones may be the best one of a leaderboard column, as far as the data can tell."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from leaderboards.choices.selection import (
    Column,
    backbones_of,
    best_rows,
    candidates,
    columns_of,
    score_rows,
)
from leaderboards.records.files import scored_path, task_key
from leaderboards.records.items import Place, read_items
from tasks.base import Items
from tasks.uncertainty import confidence_set
from zoo.errors import InputError
from zoo.spec import stands_for_set

SetTest = Callable[[Sequence[Sequence[Items]], str], list[bool | None]]
"""Whether each rival, given by its layers, may be the best in a metric; None where that cannot be told."""


@dataclass(frozen=True, slots=True)
class Ties:
    """Confidence set of the best of one column, by names of backbones.

    Attributes:
        tied: Those that hold the true best with 95 %, together with the column's best.
        apart: Those that are worse.
        untested: Those whose measurements are not there, are of other items than the best one's, or are too
            few to tell.
    """

    tied: frozenset[str] = frozenset()
    apart: frozenset[str] = frozenset()
    untested: frozenset[str] = frozenset()


ColumnTies = Mapping[tuple[str, str, str, str], Ties]
"""Ties of each column, by its `Column.key`."""


@dataclass(frozen=True, slots=True)
class KnownTies:
    """Ties that were found, and the items in which they were.

    Attributes:
        items: Folder of a run's items.
        ties: What `column_ties` found in it.
    """

    items: Path
    ties: ColumnTies


Compared = Path | ColumnTies | KnownTies | None
"""By what backbones are compared: the folder of a run's items, what `column_ties` found in it, both, or
nothing."""


def known_ties(records: pd.DataFrame, compared: Compared) -> ColumnTies:
    """The ties of each column, which are looked for only where they are not known; none without items."""
    if compared is None:
        return {}
    if isinstance(compared, KnownTies):
        return compared.ties
    return column_ties(records, compared) if isinstance(compared, Path) else compared


def known_folder(compared: Compared) -> Path | None:
    """The folder of the items by which backbones are compared; None where it is not said."""
    if isinstance(compared, KnownTies):
        return compared.items
    return compared if isinstance(compared, Path) else None


def column_ties(records: pd.DataFrame, folder: Path, test: SetTest = confidence_set) -> ColumnTies:
    """For the `Column.key` of each column, which backbones may be its best.

    A backbone takes part with its best layer and all that its row marks as tied with that one, since which
    layer stands for it was chosen on the same data. The column's best is the first backbone, in the order of
    the tables, that reaches the best score; what depends on chance is fixed, and nothing depends on the order
    of the records. Others that share its score are best, too, and take part unmarked, as the random floor
    does not at all.

    Args:
        records: Columns of `Record`, in any order.
        folder: The items of a run, as `leaderboards.records.items.write_items` wrote them.
        test: The test of all backbones at once.
    """
    rows = score_rows(records)
    rows = candidates(rows[rows["primary"].astype(bool)])
    best = best_rows(rows)
    ranks = {backbone.name: rank for rank, backbone in enumerate(backbones_of(records))}
    best = best.assign(rank=best["backbone"].map(ranks)).sort_values(
        ["value", "rank"], ascending=[False, True], kind="stable"
    )
    found = {}
    for column in columns_of(records):
        shown, layers = (
            part[part["metric"] == column.metric] for part in (column.rows(best), column.rows(rows))
        )
        found[column.key] = _ties(shown, layers, column, folder, test)
    return found


def _ties(best: pd.DataFrame, layers: pd.DataFrame, column: Column, folder: Path, test: SetTest) -> Ties:
    """Ties of one column from the best layer of each backbone, the highest first, and all layers."""
    top = best["value"].max()
    below = set(best.loc[best["value"] < top, "backbone"])
    if not below:
        return Ties()
    named = [
        (str(row["backbone"]), _measured(row, layers[layers["backbone"] == row["backbone"]], column, folder))
        for _, row in best.iterrows()
    ]
    verdicts: dict[str, bool | None] = dict.fromkeys(below)
    if named[0][1]:
        there = [(name, items) for name, items in named if items]
        verdicts |= zip(
            (name for name, _ in there),
            test([items for _, items in there], column.metric),
            strict=True,
        )
    sets = {
        answer: frozenset(name for name in below if verdicts[name] is answer)
        for answer in (True, False, None)
    }
    return Ties(tied=sets[True], apart=sets[False], untested=sets[None])


def _measured(row: pd.Series, layers: pd.DataFrame, column: Column, folder: Path) -> list[Items]:
    """Items of a backbone's best layer and of those tied with it; none where the best one's are missing."""
    best: Place = (int(row["layer"]), str(row["tap"]), str(row["pooling"]))
    tied = layers[layers["tied"].astype(bool)]
    places = [best]
    places += [
        (int(layer), str(tap), str(pooling))
        for layer, tap, pooling in zip(tied["layer"], tied["tap"], tied["pooling"], strict=True)
    ]
    found = known_items(column, str(row["backbone"]), places, folder)
    return [found[place] for place in places if place in found] if best in found else []


def known_items(
    column: Column, backbone: str, places: Sequence[Place], folder: Path, transform: str = ""
) -> dict[Place, Items]:
    """Items of some layers of a backbone in a column; none where the file is gone or damaged.

    A leaderboard or a choice is worth having without them: whoever asks names what was not tested. With a
    transform they are those of the transformed features; places are all of layers, or all of sets of them.
    """
    sets = any(stands_for_set(tap) for _, tap, _ in places)
    key = task_key(column.task, column.dataset, column.protocol, transform, sets)
    path = folder / scored_path(key, backbone)
    try:
        return read_items(path, places)
    except InputError:
        return {}
