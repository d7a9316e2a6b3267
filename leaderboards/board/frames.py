"""Frames of records: which of them rank, the best rows, and what they were measured on."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import mean, stdev

import numpy as np
import pandas as pd

from layerboard.leaderboards.blocks.display import metric_rank, task_display, task_rank
from layerboard.leaderboards.records.key import KEY
from layerboard.tasks.metrics.arrays import Integers
from layerboard.zoo.spec import FAMILIES, FLOORS, Variant, entry_name, stands_for_set

RANDOM, PIXELS = FLOORS  # untrained families: independent draws of random features, raw pixels
SOURCE = ["task", "dataset", "protocol", "data"]  # columns that identify what a record was measured on
COLUMN = [*SOURCE, "metric"]  # columns that identify a column of the leaderboard
SIDES = (["backbone", "layer", "tap"], ["other", "other_layer", "other_tap"])  # of comparisons
INTERVAL = ["value", "ci_low", "ci_high"]  # a number and the ends of its 95 % interval, NaN without one

PANELS = ["panel", "series", "x", "y"]  # columns of what a plot of several panels draws


@dataclass(frozen=True, slots=True)
class BoardBackbone:
    """A backbone as tables need it, from its records."""

    name: str
    family: str
    trained: bool
    depth: int

    @property
    def floor(self) -> bool:
        return self.family in FLOORS

    @property
    def label(self) -> str:
        """The backbone's name in tables, with the input size if that is part of it."""
        if self.floor:
            entry, title = entry_name(self.name), "random floor" if self.family == RANDOM else "raw pixels"
            size = self.name.removeprefix(entry)
            return f"{title}{size}" if entry.endswith(self.family) else f"{title} ({self.name})"
        return self.name if self.trained or "untrained" in self.name else f"{self.name} (untrained)"

    @property
    def rank(self) -> tuple[int, str, int, int, str]:
        """Sort key: families in their order, then by name; steps and sizes of one in ascending order."""
        family = self.family if self.family in FAMILIES else "other"
        series, step = Variant.of(self.name).checkpoint
        return FAMILIES.index(family), series.entry, step, series.input_size or 0, self.name


def backbones_of(records: pd.DataFrame) -> tuple[BoardBackbone, ...]:
    """All backbones of some records in table order, floors last."""
    columns = (records[name].tolist() for name in ("backbone", "family", "trained", "depth"))
    backbones: dict[str, BoardBackbone] = {}
    for name, family, trained, depth in sorted(set(zip(*columns, strict=True))):
        known = backbones.get(name)
        if known is None or known.depth < depth:
            backbones[name] = BoardBackbone(name, family, bool(trained), depth)
    compared = zip(records["other"].tolist(), records["other_layer"].tolist(), strict=True)
    for name, layer in sorted({*compared}, key=lambda pair: (pair[0], -pair[1])):
        if name and name not in backbones:  # only the second one of comparisons
            backbones[name] = BoardBackbone(name, "other", True, layer)
    return tuple(sorted(backbones.values(), key=lambda backbone: backbone.rank))


def latest(records: pd.DataFrame) -> pd.DataFrame:
    """One record per key, the last by date, in an order that does not depend on the input's.

    A frame that meets this is returned as it is. Texts become plain Python objects, from which small tables
    are made several times faster than from arrow strings.
    """
    rows = _last_of_each(records)
    if len(rows) < len(records) or (rows[1:] < rows[:-1]).any():
        records = records.iloc[rows].reset_index(drop=True)
    infinite = np.isinf(records["value"].astype(float))
    if infinite.any():  # NaN is never the best
        reason = records["reason"].mask(infinite, "not a number: infinite")
        records = records.assign(reason=reason, value=records["value"].mask(infinite))
    texts = [column for column, dtype in records.dtypes.items() if isinstance(dtype, pd.StringDtype)]
    # column by column: `astype` of a frame puts all of its columns together again, which takes twice as long
    plain = {str(column): records[column].astype(object) for column in texts}
    return records.assign(**plain).copy() if texts else records


def _last_of_each(records: pd.DataFrame) -> Integers:
    """The row of the last record of each key, sorted by the key."""
    codes = [pd.factorize(records[name], sort=True)[0] for name in KEY if name in records]
    order = np.lexsort(codes[::-1])
    again = np.all([each[order][1:] == each[order][:-1] for each in codes], axis=0)
    if again.any():
        versions = (records["date"], records["fingerprint"], records["value"].map(str))
        codes += [pd.factorize(each, sort=True)[0] for each in versions]
        order = np.lexsort(codes[::-1])
    return np.asarray(order[np.append(~again, True)[: len(order)]], np.int64)


def in_order(rows: pd.DataFrame, backbones: Sequence[BoardBackbone]) -> pd.DataFrame:
    """Rows in the order of their backbones."""
    ranks = {backbone.name: rank for rank, backbone in enumerate(backbones)}
    return rows.sort_values("backbone", key=lambda names: names.map(ranks), kind="stable", ignore_index=True)


def is_floor(records: pd.DataFrame) -> "pd.Series[bool]":
    """Whether each record is of random features or of raw pixels."""
    return records["family"].isin(FLOORS)


def is_analysis(records: pd.DataFrame) -> "pd.Series[bool]":
    """Whether each record describes a backbone and does not rank it, according to it or the registry."""
    named = {name for name in set(records["task"]) if task_display(name).analysis}
    return records["analysis"].astype(bool) | records["task"].isin(named)


def is_set(records: pd.DataFrame) -> "pd.Series[bool]":
    """Whether each record is of a set of layers, whose numbers are in place of a tap."""
    return records["tap"].isin({tap for tap in set(records["tap"]) if stands_for_set(tap)})


def candidates(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of blocks from 1 on that have a value."""
    return rows[(rows["tap"] == "block") & (rows["layer"] >= 1) & rows["value"].notna()]


def matching(rows: pd.DataFrame, where: Mapping[str, str | int]) -> pd.DataFrame:
    """Rows with those values in some columns."""
    for column, value in where.items():
        rows = rows[rows[column] == value]
    return rows


def by_layer(rows: pd.DataFrame, backbone: str) -> list[tuple[int, float]]:
    """Layers and numbers of a backbone in order."""
    rows = rows[rows["backbone"] == backbone]
    pairs = zip(rows["layer"], rows["value"], strict=True)
    return sorted((int(layer), float(value)) for layer, value in pairs)


def backbone_points(known: Sequence[BoardBackbone], series: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Points of several numbers of every layer, a panel for each known backbone that has them."""
    points = [
        (backbone.label, name, layer, value)
        for backbone in known
        for name, rows in series.items()
        for layer, value in by_layer(rows, backbone.name)
    ]
    return pd.DataFrame(points, columns=PANELS)


def best_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """The best row of each backbone, column and metric; the lower layer of equal ones; no floor."""
    rows, order = candidates(rows), ["value", "layer", "pooling"]
    rows = rows[~is_floor(rows)].sort_values(order, ascending=[False, True, True], kind="stable")
    return rows.drop_duplicates(["backbone", *COLUMN])


def floor_draws(scores: pd.DataFrame) -> pd.DataFrame:
    """Floors by metric: columns family, backbone, `COLUMN`, pooling, primary, mean, deviation, draws."""
    keys = ["family", "backbone", *COLUMN, "pooling", "primary"]
    rows = candidates(scores[is_floor(scores)])[[*keys, "value"]]
    draws: dict[tuple[str | bool, ...], list[float]] = {}
    for *key, value in rows.itertuples(index=False, name=None):
        draws.setdefault(tuple(key), []).append(float(value))
    body = [
        (*key, mean(values), stdev(values) if len(values) > 1 else float("nan"), len(values))
        for key, values in sorted(draws.items(), key=lambda row: (FLOORS.index(str(row[0][0])), row[0]))
    ]
    return pd.DataFrame(body, columns=[*keys, "mean", "deviation", "draws"])


def swapped(pairs: pd.DataFrame) -> pd.DataFrame:
    """Records that compare two layers, with these exchanged."""
    sides = dict(zip(*SIDES, strict=True))
    return pairs.rename(columns=sides | {other: side for side, other in sides.items()})[pairs.columns]


def between(pairs: pd.DataFrame, first: str, second: str) -> pd.DataFrame:
    """Records that compare layers of two backbones, each turned so that the first of these is first."""
    both = pd.concat([pairs, swapped(pairs)], ignore_index=True)
    return both[(both["backbone"] == first) & (both["other"] == second)]


def pair_rows(pairs: pd.DataFrame, backbones: Sequence[BoardBackbone]) -> pd.DataFrame:
    """Records that compare two layers, each turned so that the backbone higher in the tables is first."""
    ranks = {backbone.name: rank for rank, backbone in enumerate(backbones)}
    first, second = pairs["backbone"].map(ranks), pairs["other"].map(ranks)
    same, later = pairs["layer"] == pairs["other_layer"], pairs["tap"] > pairs["other_tap"]
    deeper = (pairs["layer"] > pairs["other_layer"]) | (same & later)
    turned = (first > second) | ((first == second) & deeper)
    parts = [part for part in (pairs[~turned], swapped(pairs[turned])) if len(part)]
    return latest(pd.concat(parts) if parts else pairs)


@dataclass(frozen=True)
class RecordGroup:
    """Records of one task on a dataset under a protocol, all over the same images and ground truth."""

    task: str
    dataset: str
    protocol: str
    data: str = ""  # digest of the images and their ground truth
    apart: bool = False  # whether there are records of its task, dataset and protocol over other data
    rows: pd.DataFrame = field(default_factory=pd.DataFrame, compare=False, repr=False)

    @property
    def source(self) -> tuple[str, str, str, str]:
        """What all of its records share."""
        return (self.task, self.dataset, self.protocol, self.data)

    @property
    def rank(self) -> tuple[tuple[int, str], str, bool, str]:
        """Sort key: the order of tasks, datasets by name, the standard protocol first."""
        return (task_rank(self.task), self.dataset, self.protocol != "standard", self.protocol)

    @property
    def dataset_name(self) -> str:
        """The dataset, with its digest if the same dataset exists with other data."""
        return f"{self.dataset} [{self.data}]" if self.apart else self.dataset

    @cached_property
    def metrics(self) -> tuple[str, ...]:
        """Metrics of its records, primary ones first; none if nothing could be measured."""
        rows = self.rows[self.rows["metric"] != ""]
        primary = set(rows.loc[rows["primary"].astype(bool), "metric"])
        ranks = {name: (name not in primary, metric_rank(self.task, name)) for name in set(rows["metric"])}
        return tuple(sorted(ranks, key=ranks.__getitem__))

    @cached_property
    def backbones(self) -> tuple[BoardBackbone, ...]:
        return backbones_of(self.rows)

    @cached_property
    def labels(self) -> Mapping[str, str]:
        """The names of its backbones in tables, by name."""
        return {backbone.name: backbone.label for backbone in self.backbones}

    def select(self, records: pd.DataFrame) -> pd.DataFrame:
        """The records of its task, dataset, protocol and data."""
        for name, value in zip(SOURCE, self.source, strict=True):
            same = records[name].to_numpy(object) == value
            records = records if same.all() else records[same]  # each step leaves fewer rows to search
        return records


def groups_of(records: pd.DataFrame) -> tuple[RecordGroup, ...]:
    """Records by task, dataset, protocol and data, in the order of pages."""
    parts = {(*map(str, key),): rows for key, rows in records.groupby(SOURCE, sort=False)}
    several = Counter(key[:3] for key in parts)
    groups = [
        RecordGroup(task, dataset, protocol, data, several[task, dataset, protocol] > 1, rows)
        for (task, dataset, protocol, data), rows in parts.items()
    ]
    return tuple(sorted(groups, key=lambda group: (group.rank, group.data)))
