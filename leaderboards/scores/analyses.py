"""Which analyses some records hold, and what may be said of their numbers: nothing that ranks."""

from collections import Counter
from dataclasses import dataclass, replace

import pandas as pd

from leaderboards.display import metric_rank, pooling_rank, task_rank
from leaderboards.scores.frames import is_floor
from zoo.spec import Layer


@dataclass(frozen=True, slots=True)
class Analysis:
    """One analysis of a dataset under a protocol."""

    task: str
    dataset: str
    protocol: str
    metrics: tuple[str, ...]  # the primary one first; empty where nothing could be measured
    data: str = ""  # digest of the images
    apart: bool = False  # whether it stands beside the same one of other images

    @property
    def place(self) -> str:
        """The dataset, and its data where that tells analyses apart."""
        return f"{self.dataset} [{self.data}]" if self.apart else self.dataset

    def rows(self, records: pd.DataFrame) -> pd.DataFrame:
        same = (records["task"] == self.task) & (records["dataset"] == self.dataset)
        return records[same & (records["protocol"] == self.protocol) & (records["data"] == self.data)]


def analyses_of(records: pd.DataFrame) -> tuple[Analysis, ...]:
    """The analyses of some records, all of which are of analyses, in order."""
    keys = sorted(
        set(zip(*(records[name] for name in ("task", "dataset", "protocol", "data")), strict=True)),
        key=lambda key: (task_rank(key[0]), key[1], key[2] != "standard", key[2], key[3]),
    )
    several = Counter(key[:3] for key in keys)
    analyses = []
    for task, dataset, protocol, data in keys:
        apart = several[task, dataset, protocol] > 1
        analysis = Analysis(task, dataset, protocol, (), data, apart)
        rows = analysis.rows(records[records["metric"] != ""])
        primary = set(rows.loc[rows["primary"].astype(bool), "metric"])
        ranks = {name: (name not in primary, metric_rank(task, name)) for name in set(rows["metric"])}
        analyses.append(replace(analysis, metrics=tuple(sorted(ranks, key=ranks.__getitem__))))
    return tuple(analyses)


def measured(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of blocks with a number of one layer; the random floor, whose layers are draws, has none."""
    return rows[rows["value"].notna() & ~is_floor(rows) & (rows["other_layer"] < 0)]


def views_of(rows: pd.DataFrame) -> list[tuple[str, str]]:
    """The tokens and taps of which some rows have a number, in order."""
    keys = set(zip(measured(rows)["pooling"], measured(rows)["tap"], strict=True))
    return sorted(keys, key=lambda key: (pooling_rank(key[0]), Layer(1, key[1]).place))
