"""A suite's numbers as a tidy frame: every score by a primary metric, and the CKA of last blocks."""

from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from leaderboards.choices.best import best_layers
from leaderboards.choices.selection import COLUMN, backbones_of, is_analysis, newest, score_rows
from leaderboards.display import COMPARISON_TASK, fixed, metric_rank, pooling_rank, task_rank
from leaderboards.pages.csv import read_numbers
from leaderboards.pages.similarity import last_blocks
from leaderboards.records.record import of_suite
from zoo.spec import Layer

DECIMALS = 4
KEY = [
    *("backbone", "task", "dataset", "protocol", "pooling", "metric"),
    *("layer", "tap", "other", "other_layer", "other_tap"),
]
UNCERTAIN = ["ci_low", "ci_high", "chosen", "held_out"]
TIDY = [
    *("backbone", "family", "trained", *KEY[1:], "value", "ci_low", "ci_high"),
    *("n", "partial", "data", "best", "tied", "chosen", "held_out"),
]
"""Columns of the CSV. The ``other`` ones are empty for scores, ``value`` is where there is no score, and what
says how sure a number is (`leaderboards.records.record.Record`) is where that is not known. ``data`` is the
digest by which datasets of one name are told apart."""


def tidy_frame(records: pd.DataFrame, suite: str) -> pd.DataFrame:
    """The numbers of one suite as text, columns `TIDY`, in the order of the page.

    Scores by the primary metric of every layer in every pooling, the random floor's draws too, and the CKA of
    the last blocks of each two backbones; ``best`` marks the layer that the leaderboard shows, ``tied`` those
    that cannot be told from their backbone's best one. Analyses have numbers of their own.
    """
    own = newest(of_suite(records, suite))
    own = own[~is_analysis(own)]
    scores = score_rows(own)
    named = scores[scores["primary"].astype(bool) & (scores["metric"] != "")]
    primary = set(zip(named["task"], named["metric"], strict=True))
    asked = [key in primary for key in zip(scores["task"], scores["metric"], strict=True)]
    scores = scores[np.array(asked, bool)]
    rows = pd.concat([frame for frame in (scores, last_blocks(own)) if len(frame)] or [scores])
    rows = rows.assign(best=_best(own, rows)).reset_index(drop=True)
    ranks = {backbone.name: rank for rank, backbone in enumerate(backbones_of(own))}
    keys = [_rank(row, ranks) for row in rows.to_dict("records")]
    order = sorted(range(len(rows)), key=keys.__getitem__)
    return _text(rows.iloc[order].reset_index(drop=True), {b.name: b.family for b in backbones_of(own)})


def read_tidy(path: Path) -> pd.DataFrame:
    """A CSV that was written from `tidy_frame`, as text; raises InputError where it is something else."""
    return read_numbers(path, TIDY)


def _best(records: pd.DataFrame, rows: pd.DataFrame) -> list[bool]:
    """Whether each row is one that the leaderboard shows."""
    columns = ["backbone", *COLUMN, "pooling", "layer"]
    shown = set(best_layers(records)[columns].itertuples(index=False, name=None))
    scores = (rows["task"] != COMPARISON_TASK) & (rows["tap"] == "block")
    keys = rows[columns].itertuples(index=False, name=None)
    return [bool(score) and key in shown for score, key in zip(scores, keys, strict=True)]


def _rank(row: Mapping[Hashable, Any], ranks: dict[str, int]) -> tuple[object, ...]:
    """Sort key of a row: column, backbone, pooling, layer."""
    task, other, tap = str(row["task"]), str(row["other"]), row["tap"]
    layer = Layer.of_record(int(row["layer"]), tap)
    return (
        (task_rank(task), row["dataset"], row["protocol"] != "standard", row["protocol"]),
        (metric_rank(task, str(row["metric"])), ranks[str(row["backbone"])], ranks.get(other, -1)),
        (pooling_rank(str(row["pooling"])), tap != "block", tap != "final", layer.place),
    )


def _text(rows: pd.DataFrame, families: dict[str, str]) -> pd.DataFrame:
    """Rows with every number as the CSV writes it."""
    pairs = rows["other"] != ""
    text = pd.DataFrame({column: rows[column].astype(str) for column in TIDY})
    text["family"] = rows["backbone"].map(families)
    for column in ("value", *UNCERTAIN):
        text[column] = [fixed(float(value), DECIMALS) for value in rows[column]]
    text["other_layer"] = text["other_layer"].where(pairs, "")
    return text
