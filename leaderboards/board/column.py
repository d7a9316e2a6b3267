"""The columns of a leaderboard with their scores: poolings, candidates, best layers, held-out choices."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from layerboard.leaderboards.blocks.display import metric_rank, place_text, pooling_rank, score_text
from layerboard.leaderboards.board import frames
from layerboard.leaderboards.records.items import Place
from layerboard.zoo.spec import stands_for_set

COLUMN_FIELDS = ("task", "dataset", "data", "protocol", "metric", "partial")  # identify the column


@dataclass(frozen=True, slots=True)
class HeldOutChoice:
    """The layer of one backbone in one column, chosen on halves of the data."""

    score: float  # mean score of the chosen layers on the other halves, in percent
    optimism: float  # by how much the best layer's score on all data exceeds it
    shares: tuple[tuple[int, float], ...]  # blocks chosen in the splits, the most frequent first


@dataclass(frozen=True, slots=True)
class Side:
    """A layer of a backbone, or a set of layers, with its score in a column."""

    backbone: str
    layer: int  # block, from 1
    depth: int  # blocks of the backbone
    pooling: str
    score: float  # percent
    tap: str = "block"
    transform: str = ""  # transform of the features

    @property
    def place(self) -> Place:
        return self.layer, self.tap, self.pooling

    @property
    def text(self) -> str:
        """The score with its layer: ``61.2 (9/12 cls)``, or with its set."""
        alone = place_text(self.layer, self.depth, self.pooling)
        return f"{score_text(self.score)} ({self.tap if stands_for_set(self.tap) else alone})"


@dataclass(frozen=True, kw_only=True)
class Column(frames.RecordGroup):
    """A column of the leaderboard: the primary metric of a task on a dataset, and scores by all metrics.

    Scores over different images or another ground truth, such as those of a limited run, have columns of
    their own, whatever the dataset is called: only scores in one column are ranked.
    """

    metric: str  # the primary one
    heading: str
    partial: bool  # whether some scores are on a part of the official data

    @property
    def key(self) -> tuple[str, str, str, str]:
        """The identity of the column; the dataset with its digest, if records have one."""
        return (self.task, f"{self.dataset} {self.data}".strip(), self.protocol, self.metric)

    @property
    def title(self) -> str:
        """The heading of its section on every layer."""
        mark = " †" if self.partial else ""
        return f"{self.task} on {self.dataset_name} ({self.protocol}): {self.metric}, %{mark}"

    @cached_property
    def scored(self) -> pd.DataFrame:
        """All scores by the column's metric, in every pooling."""
        return self.rows[self.rows["metric"] == self.metric]

    @cached_property
    def family(self) -> pd.DataFrame:
        """The scored blocks in all poolings, which compete with each other; no random floor."""
        return frames.candidates(self.scored[~frames.is_floor(self.scored)])

    @cached_property
    def poolings(self) -> Mapping[str, str]:
        """The pooling in which each backbone is shown, everywhere: that of its best score.

        The best is over all blocks and poolings. Of equal scores the one in the primary pooling counts, then
        that of the lower layer. Random floors, whose layers are draws, and backbones without a score are
        shown in the primary pooling.
        """
        usual = self.scored[self.scored["primary"].astype(bool)]
        rows = self.family.assign(rank=self.family["pooling"].map(pooling_rank))
        rows = rows.sort_values(["value", "primary", "layer", "rank"], ascending=[False, False, True, True])
        best = rows.drop_duplicates("backbone")
        pairs = [*zip(usual["backbone"], usual["pooling"], strict=True)]
        return dict(pairs) | dict(zip(best["backbone"], best["pooling"], strict=True))

    @cached_property
    def other_poolings(self) -> tuple[str, ...]:
        """Poolings in which backbones have scores that are not shown, in order."""
        hidden = self.scored[self.scored["pooling"] != self.scored["backbone"].map(self.poolings)]
        return tuple(sorted({str(pooling) for pooling in hidden["pooling"]}, key=pooling_rank))

    def in_pooling(self, pooling: str | None = None) -> pd.DataFrame:
        """Rows by all metrics, as shown; or for another pooling, those of backbones not shown in it."""
        shown = self.rows["backbone"].map(self.poolings)
        if pooling is None:
            return self.rows[self.rows["pooling"] == shown]
        return self.rows[(self.rows["pooling"] == pooling) & (shown != pooling)]

    @cached_property
    def candidates(self) -> pd.DataFrame:
        """Scored blocks in the shown poolings, from which the best layers are taken; no random floor."""
        rows = self.in_pooling()
        return frames.candidates(rows[(rows["metric"] == self.metric) & ~frames.is_floor(rows)])

    @cached_property
    def best(self) -> pd.DataFrame:
        """The best layer of each backbone that has a score, in table order.

        It is the best over all poolings, too (`poolings`). Candidates are the blocks 1..depth (neither the
        input of block 1 nor the output of the final norm); ties go to the lower layer. The random floor has
        none, since its layers are draws.
        """
        return frames.in_order(frames.best_rows(self.candidates), self.backbones)

    @cached_property
    def at_best(self) -> pd.DataFrame:
        """All metrics of the layers that are best in the column's metric."""
        rows = self.rows[(self.rows["tap"] == "block") & (self.rows["metric"] != "")]
        return rows.merge(self.best[["backbone", "layer", "pooling"]])

    @cached_property
    def floors(self) -> pd.DataFrame:
        """The `floor_draws` of the leaderboard's scores of random floors, by its metric."""
        rows = self.in_pooling()
        return frames.floor_draws(rows[rows["metric"] == self.metric])

    @cached_property
    def held_out(self) -> Mapping[str, HeldOutChoice]:
        """The choice of the layer on halves of the data, by backbone; empty if the data were not split."""
        best = dict(zip(self.best["backbone"], self.best["value"].astype(float), strict=True))
        choices = {}
        for name, rows in self.candidates.groupby("backbone"):
            score, chosen = chosen_elsewhere(rows)
            if not math.isnan(score):
                shares = zip(chosen["layer"].tolist(), chosen["chosen"].tolist(), strict=True)
                choices[str(name)] = HeldOutChoice(score, best[name] - score, tuple(shares))
        return choices


def chosen_elsewhere(rows: pd.DataFrame) -> tuple[float, pd.DataFrame]:
    """Mean held-out score of the rows that halves of the data chose, and these rows.

    The most frequent come first. NaN if they were not split together, since the choice is unknown then.
    """
    rows = rows[rows["chosen"] > 0].sort_values(["chosen", "layer"], ascending=[False, True], kind="stable")
    shares, scores = rows["chosen"].astype(float), rows["held_out"].astype(float)
    whole = math.isclose(math.fsum(shares), 1.0, abs_tol=1e-6)
    return math.fsum(shares * scores) if whole else math.nan, rows


def columns_of(scores: pd.DataFrame) -> tuple[Column, ...]:
    """The leaderboard's columns in order: one for each primary metric of a task, dataset, protocol and data.

    ``scores`` are of single layers without transforms, each once. Of one task, dataset and protocol, the
    complete data come first, then those with scores of most backbones. A heading has dataset, protocol and
    data only if its task has several of them.
    """
    ranked = frames.groups_of(scores[scores["primary"].astype(bool) & (scores["metric"] != "")])
    columns: dict[Column, tuple[object, ...]] = {}
    for group in ranked:
        same = [other for other in ranked if other.task == group.task]
        facts = (*group.source, group.apart, group.select(scores))
        partial, count = bool(group.rows["partial"].any()), group.rows["backbone"].nunique()
        for metric in group.metrics:
            heading = f"{group.task} {metric}"
            heading += f", {group.dataset}" if len({other.dataset for other in same}) > 1 else ""
            heading += f" ({group.protocol})" if len({other.protocol for other in same}) > 1 else ""
            heading += f" [{group.data}]" * group.apart + " †" * partial
            column = Column(*facts, metric=metric, heading=heading, partial=partial)
            columns[column] = (group.rank, partial, -count, metric_rank(group.task, metric), group.data)
    return tuple(sorted(columns, key=columns.__getitem__))
