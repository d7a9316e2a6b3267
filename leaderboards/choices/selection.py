"""Which records a table is made of: the newest of each identity, in the order of the page."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pandas as pd

from leaderboards.display import COMPARISON_TASK, metric_rank, pooling_rank, task_display, task_rank
from zoo.spec import FAMILIES

FLOOR = "random"
"""Family whose layers are independent draws of random features."""

COLUMN = ["task", "dataset", "protocol", "metric"]
"""What makes one column of the leaderboard."""

PLACE = ["layer", "tap", "pooling"]
OTHER = ["other", "other_layer", "other_tap"]
IDENTITY = ["backbone", *COLUMN, *PLACE, "head", *OTHER]
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
        """Its name in tables."""
        if self.floor:
            return "random floor" if self.name.endswith(FLOOR) else f"random floor ({self.name})"
        return self.name if self.trained or "untrained" in self.name else f"{self.name} (untrained)"

    @property
    def rank(self) -> tuple[int, str]:
        """Sort key: families in their order, then by name."""
        family = self.family if self.family in FAMILIES else "other"
        return ([*FAMILIES].index(family), self.name)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the leaderboard: the primary metric of a task on a dataset."""

    task: str
    dataset: str
    protocol: str
    metric: str
    heading: str
    partial: bool

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Its values of `COLUMN`."""
        return (self.task, self.dataset, self.protocol, self.metric)

    def rows(self, records: pd.DataFrame) -> pd.DataFrame:
        """The records of its task, dataset and protocol, all metrics."""
        same = (records["task"] == self.task) & (records["dataset"] == self.dataset)
        same &= records["protocol"] == self.protocol
        return records if same.all() else records[same]


def backbones_of(records: pd.DataFrame) -> tuple[BoardBackbone, ...]:
    """All backbones of some records in the order of the tables, the random floor last."""
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
    texts = [column for column, dtype in records.dtypes.items() if isinstance(dtype, pd.StringDtype)]
    return records.astype(dict.fromkeys(texts, object)).copy() if texts else records


def _distinct(records: pd.DataFrame, columns: list[str]) -> list[tuple[Any, ...]]:
    """The different rows of some columns, sorted."""
    return sorted(set(zip(*(records[column].tolist() for column in columns), strict=True)))


def score_rows(records: pd.DataFrame) -> pd.DataFrame:
    """The records that are scores of one layer: no comparisons, no analyses, no single heads."""
    scores = (records["other"] == "") & (records["task"] != COMPARISON_TASK)
    scores &= (records["head"] == -1) & ~is_analysis(records)
    return newest(records if scores.all() else records[scores])


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
    rows = rows[rows["primary"].astype(bool) & (rows["metric"] != "")]
    keys = sorted(
        _distinct(rows, COLUMN),
        key=lambda key: (
            task_rank(key[0]),
            key[1],
            key[2] != "standard",
            key[2],
            metric_rank(key[0], key[3]),
        ),
    )
    return tuple(_column(rows, keys, *key) for key in keys)


def _column(
    rows: pd.DataFrame, keys: list[tuple[str, ...]], task: str, dataset: str, protocol: str, metric: str
) -> Column:
    """A column whose heading names dataset and protocol only where its task has several of them."""
    same = [key for key in keys if key[0] == task]
    heading = f"{task} {metric}"
    heading += f", {dataset}" if len({key[1] for key in same}) > 1 else ""
    heading += f" ({protocol})" if len({key[2] for key in same}) > 1 else ""
    column = Column(task, dataset, protocol, metric, heading, partial=False)
    partial = bool(column.rows(rows)["partial"].any())
    return Column(task, dataset, protocol, metric, heading + (" †" if partial else ""), partial)


def primary_poolings(rows: pd.DataFrame, column: Column) -> dict[str, str]:
    """For each backbone the pooling that the leaderboard takes in a column."""
    shown = column.rows(rows)
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
    if pooling is not None:
        return shown[shown["pooling"] == pooling]
    return shown[shown["pooling"] == shown["backbone"].map(primary_poolings(rows, column))]
