"""The columns of a leaderboard, each with its scores: poolings, candidates, best layers, honest choices."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd

from leaderboards.display import metric_rank, pooling_rank, task_rank
from leaderboards.scores.frames import (
    COLUMN,
    BoardBackbone,
    backbones_of,
    best_rows,
    candidates,
    floor_draws,
    in_order,
    is_floor,
)

BEST = [  # columns of tables of best layers
    *("backbone", "family", "trained", *COLUMN, "pooling", "layer", "depth"),
    *("value", "ci_low", "ci_high", "n", "partial"),
]


@dataclass(frozen=True, slots=True)
class HonestChoice:
    """The layer of one backbone in one column, chosen on halves of the data."""

    score: float  # mean of the chosen layers on the other halves, in percent
    optimism: float  # by how much the best layer's score on all data exceeds it
    shares: tuple[tuple[int, float], ...]  # of the splits that chose a block, the commonest first


@dataclass(frozen=True, slots=True)
class BetterPooling:
    """The best layer of a backbone in another pooling, where it scores higher than the one that is shown."""

    pooling: str
    value: float
    layer: int
    depth: int


@dataclass(frozen=True)
class Column:
    """A column of the leaderboard: the primary metric of a task on a dataset, and its scores.

    Scores over different images or another ground truth, such as those of a limited run, have columns of
    their own, whatever the dataset is called: only what stands in one column is ranked.
    """

    task: str
    dataset: str
    protocol: str
    metric: str  # the primary one
    heading: str
    partial: bool  # whether some scores are of a part of the official data
    data: str = ""  # digest of the images and their ground truth
    apart: bool = False  # whether other columns of its task, dataset and protocol have other data
    rows: pd.DataFrame = field(default_factory=pd.DataFrame, compare=False, repr=False)  # of all metrics

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What tells it from the other columns; the dataset with its data, where records say which."""
        return (self.task, f"{self.dataset} {self.data}".strip(), self.protocol, self.metric)

    @property
    def source(self) -> tuple[str, str, str, str]:
        """Task, dataset, protocol and data: what its scores by other metrics have, too."""
        return (self.task, self.dataset, self.protocol, self.data)

    @property
    def dataset_name(self) -> str:
        """The dataset, and its data where that tells columns apart."""
        return f"{self.dataset} [{self.data}]" if self.apart else self.dataset

    def select(self, records: pd.DataFrame) -> pd.DataFrame:
        """The records among some that are of its task, dataset, data and protocol, all metrics."""
        for name, value in zip(COLUMN[:4], self.source, strict=True):
            same = records[name].to_numpy(object) == value
            records = records if same.all() else records[same]  # each time there is less to look through
        return records

    @cached_property
    def scored(self) -> pd.DataFrame:
        """Its scores by its metric, in every pooling."""
        return self.rows[self.rows["metric"] == self.metric]

    @cached_property
    def backbones(self) -> tuple[BoardBackbone, ...]:
        return backbones_of(self.rows)

    @cached_property
    def poolings(self) -> dict[str, str]:
        """For each backbone the pooling that the leaderboard takes."""
        rows = self.scored[self.scored["primary"].astype(bool)]
        return dict(zip(rows["backbone"], rows["pooling"], strict=True))

    @cached_property
    def other_poolings(self) -> tuple[str, ...]:
        """Other poolings in which its metric exists, in order."""
        rows = self.scored[~self.scored["primary"].astype(bool)]
        return tuple(sorted({str(pooling) for pooling in rows["pooling"]}, key=pooling_rank))

    def in_pooling(self, pooling: str | None = None) -> pd.DataFrame:
        """Its rows, all metrics, in one pooling; without one, in each backbone's primary pooling."""
        wanted = self.rows["backbone"].map(self.poolings) if pooling is None else pooling
        return self.rows[self.rows["pooling"] == wanted]

    @cached_property
    def candidates(self) -> pd.DataFrame:
        """What the best layer is chosen from: scored blocks of the primary pooling, no random floor."""
        rows = self.in_pooling()
        return candidates(rows[(rows["metric"] == self.metric) & ~is_floor(rows)])

    @cached_property
    def best(self) -> pd.DataFrame:
        """The best layer of each backbone that has a score, in the order of the tables.

        Candidates are the blocks 1..depth (neither what enters block 1 nor the output of the final norm);
        ties go to the lower layer. The random floor has none, since its layers are draws.
        """
        return in_order(best_rows(self.candidates), self.backbones)

    @cached_property
    def at_best(self) -> pd.DataFrame:
        """All metrics of the layers that are best in the column's."""
        rows = self.rows[(self.rows["tap"] == "block") & (self.rows["metric"] != "")]
        keys = ["backbone", "layer", "pooling"]
        best = set(self.best[keys].itertuples(index=False, name=None))
        is_best = [key in best for key in rows[keys].itertuples(index=False, name=None)]
        return rows[np.array(is_best, bool)]

    @cached_property
    def floors(self) -> pd.DataFrame:
        """What `floor_draws` says of the leaderboard's scores of random floors, by its metric."""
        floors = floor_draws(self.scored)
        return floors[floors["primary"].astype(bool)]

    @cached_property
    def honest(self) -> Mapping[str, HonestChoice]:
        """The choice of the layer on halves of the data by backbone; none where the data were not split."""
        best = dict(zip(self.best["backbone"], self.best["value"].astype(float), strict=True))
        choices = {}
        for name, rows in self.candidates.groupby("backbone"):
            score, chosen = chosen_elsewhere(rows)
            if not math.isnan(score):
                shares = zip(chosen["layer"].tolist(), chosen["chosen"].tolist(), strict=True)
                choices[str(name)] = HonestChoice(score, best[name] - score, tuple(shares))
        return choices

    @cached_property
    def better_poolings(self) -> Mapping[str, BetterPooling]:
        """For each backbone whose best score is of another pooling than the leaderboard's, that score."""
        primary = dict(zip(self.best["backbone"], self.best["value"], strict=True))
        better: dict[str, BetterPooling] = {}
        for pooling in self.other_poolings:
            for row in best_rows(self.scored[self.scored["pooling"] == pooling]).to_dict("records"):
                name, value = str(row["backbone"]), float(row["value"])
                known = better[name].value if name in better else primary.get(name, -math.inf)
                if value > known:
                    better[name] = BetterPooling(pooling, value, int(row["layer"]), int(row["depth"]))
        return better


def chosen_elsewhere(rows: pd.DataFrame) -> tuple[float, pd.DataFrame]:
    """Mean score of what halves of the data chose among some rows, on the other halves, and these rows.

    The commonest stand first. NaN where they were not split together, which says nothing about the choice.
    """
    rows = rows[rows["chosen"] > 0].sort_values(["chosen", "layer"], ascending=[False, True], kind="stable")
    shares, scores = rows["chosen"].astype(float), rows["held_out"].astype(float)
    whole = math.isclose(math.fsum(shares), 1.0, abs_tol=1e-6)
    return math.fsum(shares * scores) if whole else math.nan, rows


def columns_of(scores: pd.DataFrame) -> tuple[Column, ...]:
    """The leaderboard's columns in order: one for each primary metric of a task, dataset, protocol and data.

    Scores are of single layers as they are, each once. Of one task, dataset and protocol the complete data
    come first, then what most backbones are scored on.
    """
    ranked = scores[scores["primary"].astype(bool) & (scores["metric"] != "")]
    rows = dict(iter(scores.groupby(COLUMN[:4], sort=False)))
    shown = dict(iter(ranked.groupby(COLUMN[:4], sort=False)))

    def rank(column: Column) -> tuple[object, ...]:
        source = task_rank(column.task), column.dataset, column.protocol != "standard", column.protocol
        count = shown[column.source]["backbone"].nunique()
        return (*source, column.partial, -count, metric_rank(column.task, column.metric), column.data)

    keys = set(zip(*(ranked[name].tolist() for name in COLUMN), strict=True))
    columns = [
        _column(key, keys, rows[key[:4]], partial=bool(shown[key[:4]]["partial"].any())) for key in keys
    ]
    return tuple(sorted(columns, key=rank))


def _column(
    key: tuple[str, ...], keys: Collection[tuple[str, ...]], rows: pd.DataFrame, *, partial: bool
) -> Column:
    """A column whose heading names dataset, protocol and data only where its task has several of them."""
    task, dataset, protocol, data, metric = key
    same = [other for other in keys if other[0] == task]
    apart = len({other[3] for other in same if other[1:3] == (dataset, protocol)}) > 1
    heading = f"{task} {metric}"
    heading += f", {dataset}" if len({other[1] for other in same}) > 1 else ""
    heading += f" ({protocol})" if len({other[2] for other in same}) > 1 else ""
    heading += f" [{data}]" if apart else ""
    heading += " †" if partial else ""
    return Column(task, dataset, protocol, metric, heading, partial, data, apart, rows)
