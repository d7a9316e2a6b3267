"""The numbers of a suite's analyses as a tidy frame: one row a number, of layers and of single heads."""

from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from leaderboards.choices.selection import backbones_of, is_analysis, newest
from leaderboards.display import fixed, metric_rank, pooling_rank, task_rank
from leaderboards.records.record import of_suite
from zoo.spec import Layer

DECIMALS = 6
INSIDE = [
    *("backbone", "family", "trained", "task", "dataset", "protocol", "pooling", "metric"),
    *("layer", "tap", "head", "other", "value", "ci_low", "ci_high", "n", "partial", "data", "reason"),
]
"""Columns of the CSV. ``head`` is -1 for all heads together; ``other`` is the backbone that it is compared
with; ``data`` tells datasets of one name apart; ``reason`` says why a ``value`` is empty."""


def inside_frame(records: pd.DataFrame, suite: str) -> pd.DataFrame:
    """The analyses of one suite as text, columns `INSIDE`, in the order of the page.

    Numbers of two layers, which are many, are in the records and arrays alone.
    """
    own = newest(of_suite(records, suite))
    own = own[is_analysis(own) & (own["other_layer"] < 0)].reset_index(drop=True)
    ranks = {backbone.name: rank for rank, backbone in enumerate(backbones_of(own))}
    keys = [_rank(row, ranks) for row in own.to_dict("records")]
    rows = own.iloc[sorted(range(len(own)), key=keys.__getitem__)].reset_index(drop=True)
    text = pd.DataFrame({column: rows[column].astype(str) for column in INSIDE})
    for column in ("value", "ci_low", "ci_high"):
        text[column] = [fixed(float(value), DECIMALS) for value in rows[column]]
    return text


def _rank(row: Mapping[Hashable, Any], ranks: dict[str, int]) -> tuple[object, ...]:
    """Sort key of a row: analysis, metric, backbone, layer, head."""
    task = str(row["task"])
    return (
        (task_rank(task), row["dataset"], row["protocol"] != "standard", row["protocol"]),
        (metric_rank(task, str(row["metric"])), ranks[str(row["backbone"])]),
        (pooling_rank(str(row["pooling"])), Layer(int(row["layer"]), row["tap"]).place, int(row["head"])),
    )
