"""Which records a table is made of: the newest of each identity, in the order of the page."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from leaderboards.choices.kept import is_kept, keep, once
from leaderboards.display import COMPARISON_TASK, metric_rank, pooling_rank, task_display, task_rank
from zoo.spec import FAMILIES, entry_name, split_size, stands_for_set

FLOOR = "random"
"""Family whose layers are independent draws of random features."""

COLUMN = ["task", "dataset", "protocol", "data", "metric"]
"""What makes one column of the leaderboard."""

UNKNOWN_DATA = "earlier version"
"""What stands for the digest of data that records do not tell."""

PLACE = ["layer", "tap", "pooling"]
OTHER = ["other", "other_layer", "other_tap"]
IDENTITY = ["backbone", *COLUMN, "transform", *PLACE, "head", *OTHER]
"""What two records of one suite have in common when one replaces the other."""


@dataclass(frozen=True, slots=True)
class BoardBackbone:
    """What tables need to know of a backbone, as its records tell it."""

    name: str
    family: str
    trained: bool
    depth: int

    @property
    def floor(self) -> bool:
        """Whether it is a random floor."""
        return self.family == FLOOR

    @property
    def label(self) -> str:
        """Its name in tables, with the input size where that is part of it."""
        if self.floor:
            entry = entry_name(self.name)
            size = self.name.removeprefix(entry)
            return f"random floor{size}" if entry.endswith(FLOOR) else f"random floor ({self.name})"
        return self.name if self.trained or "untrained" in self.name else f"{self.name} (untrained)"

    @property
    def entry_label(self) -> str:
        """The same without an input size."""
        return replace(self, name=entry_name(self.name)).label

    @property
    def rank(self) -> tuple[int, str, int, str]:
        """Sort key: families in their order, then by name, the sizes of one backbone from the smallest on."""
        family = self.family if self.family in FAMILIES else "other"
        entry, size = split_size(self.name)
        return ([*FAMILIES].index(family), entry, size or 0, self.name)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the leaderboard: the primary metric of a task on a dataset.

    Scores over different images or another ground truth, such as those of a limited run, have columns of
    their own, whatever the dataset is called: only what stands in one column is ranked.
    """

    task: str
    dataset: str
    protocol: str
    metric: str
    heading: str
    partial: bool
    data: str = ""
    apart: bool = False
    """Whether there are columns of the same task, dataset and protocol with other data."""

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What tells it from the other columns; the dataset with its data, where records say which."""
        return (self.task, f"{self.dataset} {self.data}".strip(), self.protocol, self.metric)

    @property
    def place(self) -> str:
        """The dataset, and its data where that tells columns apart."""
        return f"{self.dataset} [{self.data or UNKNOWN_DATA}]" if self.apart else self.dataset

    def rows(self, records: pd.DataFrame) -> pd.DataFrame:
        """The records of its task, dataset, data and protocol, all metrics."""
        wanted = (self.task, self.dataset, self.protocol, self.data)
        part = once(records, ("rows", wanted), lambda: _part(records, wanted))
        return records if part is None else part


def _part(records: pd.DataFrame, wanted: tuple[str, ...]) -> pd.DataFrame | None:
    """The records with some task, dataset, protocol and data; None where all have them."""
    part = records
    for name, value in zip(COLUMN[:4], wanted, strict=True):
        same = part[name].to_numpy(object) == value
        part = part if same.all() else part[same]  # each time there is less to look through
    if part is records:
        return None
    return keep(part) if is_kept(records) else part


def backbones_of(records: pd.DataFrame) -> tuple[BoardBackbone, ...]:
    """All backbones of some records in the order of the tables, the random floor last."""
    return once(records, "backbones", lambda: _backbones(records))


def _backbones(records: pd.DataFrame) -> tuple[BoardBackbone, ...]:
    """The backbones of some records."""
    found: dict[str, BoardBackbone] = {}
    for name, family, trained, depth in _distinct(records, ["backbone", "family", "trained", "depth"]):
        known = found.get(name)
        if known is None or known.depth < depth:
            found[name] = BoardBackbone(name, family, bool(trained), depth)
    others: dict[str, int] = {}
    for name, layer in _distinct(records, ["other", "other_layer"]):
        if name and name not in found:
            others[name] = max(layer, others.get(name, 0))
    unknown = [BoardBackbone(name, "other", True, depth) for name, depth in others.items()]
    return tuple(sorted([*found.values(), *unknown], key=lambda backbone: backbone.rank))


def is_floor(records: pd.DataFrame) -> "pd.Series[bool]":
    """Whether each record is of a random floor."""
    return records["family"] == FLOOR


def is_analysis(records: pd.DataFrame) -> "pd.Series[bool]":
    """Whether each record describes a backbone and does not rank it, as it or the registry says."""
    named = {name for name in set(records["task"]) if task_display(name).analysis}
    return records["analysis"].astype(bool) | records["task"].isin(named)


def is_set(records: pd.DataFrame) -> "pd.Series[bool]":
    """Whether each record is of several layers taken together, whose numbers stand for a tap."""
    several = {tap for tap in set(records["tap"]) if stands_for_set(tap)}
    return records["tap"].isin(several)


def is_plain(records: pd.DataFrame) -> "pd.Series[bool]":
    """Whether each record is of layers as they are: neither transformed nor taken together."""
    return (records["transform"] == "") & ~is_set(records)


def newest(records: pd.DataFrame) -> pd.DataFrame:
    """One record of each identity, the last by date, in an order that does not depend on the input's.

    A frame that is so already comes back as it is. Texts become plain Python objects, which small tables
    are made of several times faster than of arrow strings.
    """
    keys = list(zip(*(records[column].tolist() for column in IDENTITY), strict=True))
    if not all(before < after for before, after in pairwise(keys)):
        versions = zip(
            *(records[column].tolist() for column in ("date", "fingerprint", "value")), strict=True
        )
        ranks = [
            (key, date, mark, str(value)) for key, (date, mark, value) in zip(keys, versions, strict=True)
        ]
        places = sorted(range(len(keys)), key=ranks.__getitem__)
        last = {keys[place]: place for place in places}
        records = records.iloc[list(last.values())].reset_index(drop=True)
    infinite = np.isinf(records["value"].astype(float))
    if infinite.any():  # what is no number is never the best of anything
        records = records.assign(
            reason=records["reason"].mask(infinite, "not a number: infinite"),
            value=records["value"].mask(infinite),
        )
    texts = [column for column, dtype in records.dtypes.items() if isinstance(dtype, pd.StringDtype)]
    return records.astype(dict.fromkeys(texts, object)).copy() if texts else records


def _distinct(records: pd.DataFrame, columns: list[str]) -> list[tuple[Any, ...]]:
    """The different rows of some columns, sorted."""
    return sorted(set(zip(*(records[column].tolist() for column in columns), strict=True)))


def score_rows(records: pd.DataFrame) -> pd.DataFrame:
    """The scores of one layer as it is: no comparisons, analyses, single heads, transforms or sets."""
    if is_kept(records):
        return records
    scores = (records["other"] == "") & (records["task"] != COMPARISON_TASK)
    scores &= (records["head"] == -1) & ~is_analysis(records) & is_plain(records)
    found = newest(records if scores.all() else records[scores])
    return found if found is records else keep(found)


def pair_rows(pairs: pd.DataFrame, backbones: Sequence[BoardBackbone]) -> pd.DataFrame:
    """Records that compare two layers, each turned so that the backbone higher in the tables is first."""
    ranks = {backbone.name: rank for rank, backbone in enumerate(backbones)}
    first, second = pairs["backbone"].map(ranks), pairs["other"].map(ranks)
    layers = (pairs["layer"] > pairs["other_layer"]) | (
        (pairs["layer"] == pairs["other_layer"]) & (pairs["tap"] > pairs["other_tap"])
    )
    turned = (first > second) | ((first == second) & layers)
    sides = ["backbone", "layer", "tap"]
    swapped = pairs[turned].rename(columns=dict(zip([*sides, *OTHER], [*OTHER, *sides], strict=True)))
    parts = [part[pairs.columns] for part in (pairs[~turned], swapped) if len(part)]
    return newest(pd.concat(parts) if parts else pairs)


def columns_of(records: pd.DataFrame) -> tuple[Column, ...]:
    """The leaderboard's columns in order: one for each primary metric of a task, dataset and protocol."""
    rows = score_rows(records)
    return once(rows, "columns", lambda: _columns(rows))


def _columns(rows: pd.DataFrame) -> tuple[Column, ...]:
    """The columns of some scores."""
    rows = rows[rows["primary"].astype(bool) & (rows["metric"] != "")]
    keys = sorted(
        _distinct(rows, COLUMN),
        key=lambda key: (
            task_rank(key[0]),
            key[1],
            key[2] != "standard",
            key[2],
            metric_rank(key[0], key[4]),
        ),
    )
    columns = [_column(rows, keys, key) for key in keys]
    # of one task, dataset and protocol the complete data come first, then what most backbones are scored on
    most = {column.key: len(set(column.rows(rows)["backbone"])) for column in columns}
    first = {(one.task, one.dataset, one.protocol): place for place, one in reversed([*enumerate(columns)])}
    return tuple(
        sorted(
            columns,
            key=lambda one: (first[one.task, one.dataset, one.protocol], one.partial, -most[one.key]),
        )
    )


def _column(rows: pd.DataFrame, keys: list[tuple[str, ...]], key: tuple[str, ...]) -> Column:
    """A column whose heading names dataset, data and protocol only where its task has several of them."""
    task, dataset, protocol, data, metric = key
    same = [other for other in keys if other[0] == task]
    apart = len({other[3] for other in same if other[1:3] == (dataset, protocol)}) > 1
    heading = f"{task} {metric}"
    heading += f", {dataset}" if len({other[1] for other in same}) > 1 else ""
    heading += f" ({protocol})" if len({other[2] for other in same}) > 1 else ""
    heading += f" [{data or UNKNOWN_DATA}]" if apart else ""
    column = Column(task, dataset, protocol, metric, heading, False, data, apart)
    if not column.rows(rows)["partial"].any():
        return column
    return replace(column, heading=f"{heading} †", partial=True)


def primary_poolings(rows: pd.DataFrame, column: Column) -> dict[str, str]:
    """For each backbone the pooling that the leaderboard takes in a column."""
    shown = column.rows(rows)
    return once(shown, ("primary poolings", column.key), lambda: _primary_poolings(shown, column))


def _primary_poolings(shown: pd.DataFrame, column: Column) -> dict[str, str]:
    """The poolings of a column's primary scores by backbone."""
    shown = shown[shown["primary"].astype(bool) & (shown["metric"] == column.metric)]
    return dict(zip(shown["backbone"], shown["pooling"], strict=True))


def secondary_poolings(rows: pd.DataFrame, column: Column) -> tuple[str, ...]:
    """Other poolings in which a column's metric exists, in order."""
    shown = column.rows(rows)
    shown = shown[(shown["metric"] == column.metric) & ~shown["primary"].astype(bool)]
    return tuple(sorted({str(pooling) for pooling in shown["pooling"]}, key=pooling_rank))


def candidates(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of blocks from 1 on that have a value."""
    return rows[(rows["tap"] == "block") & (rows["layer"] >= 1) & rows["value"].notna()]


def best_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """The best row of each backbone, column and metric; the lower layer of equal ones; no random floor."""
    rows = candidates(rows)
    rows = rows[~is_floor(rows)].sort_values(
        ["value", "layer", "pooling"], ascending=[False, True, True], kind="stable"
    )
    return rows.drop_duplicates(["backbone", *COLUMN])


def half_widths(rows: pd.DataFrame) -> "pd.Series[float]":
    """Half the width of each row's 95 % interval; NaN where it has none."""
    return (rows["ci_high"] - rows["ci_low"]) / 2


def pooled(rows: pd.DataFrame, column: Column, pooling: str | None = None) -> pd.DataFrame:
    """A column's rows, all metrics, in one pooling; without one, in each backbone's primary pooling."""
    shown = column.rows(rows)
    return once(shown, ("pooled", column.key, pooling), lambda: _pooled(shown, column, pooling))


def _pooled(shown: pd.DataFrame, column: Column, pooling: str | None) -> pd.DataFrame:
    """Those of a column's rows that are in one pooling, or in the primary ones."""
    if pooling is not None:
        return shown[shown["pooling"] == pooling]
    return shown[shown["pooling"] == shown["backbone"].map(primary_poolings(shown, column))]
