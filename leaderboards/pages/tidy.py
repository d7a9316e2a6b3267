"""A suite's numbers as a tidy frame: every score by a primary metric, and the CKA of last blocks."""

from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from leaderboards.board import Board
from leaderboards.display import fixed, metric_rank, pooling_rank, task_rank
from leaderboards.pages.csv import read_numbers
from leaderboards.records.key import COMPARISON_TASK
from leaderboards.scores.frames import COLUMN
from zoo.spec import Layer

DECIMALS = 4
NUMBERS = ["value", "ci_low", "ci_high", "chosen", "held_out"]
# columns of the CSV: ``other`` ones are empty for scores, ``value`` where there is no score, what tells how
# sure a number is where that is not known; by the digest ``data`` datasets of one name are told apart
TIDY = [
    *("backbone", "family", "trained", "task", "dataset", "protocol", "pooling", "metric"),
    *("layer", "tap", "other", "other_layer", "other_tap", "value", "ci_low", "ci_high"),
    *("n", "partial", "data", "best", "tied", "chosen", "held_out"),
]


def tidy_frame(board: Board) -> pd.DataFrame:
    """The numbers of one suite as text, columns `TIDY`, in the order of the page.

    Scores by the primary metric of every layer in every pooling, the random floor's draws too, and the CKA of
    the last blocks of each two backbones; ``best`` marks the layer that the leaderboard shows, ``tied`` those
    that cannot be told from their backbone's best one. Analyses have numbers of their own.
    """
    primary = {(column.task, column.metric) for column in board.columns}
    scores = board.scores
    asked = [key in primary for key in zip(scores["task"], scores["metric"], strict=True)]
    scores = scores[np.array(asked, bool)]
    rows = pd.concat([frame for frame in (scores, board.last_blocks) if len(frame)] or [scores])
    ranks = {backbone.name: rank for rank, backbone in enumerate(board.backbones)}
    keys = [_rank(row, ranks) for row in rows.to_dict("records")]
    rows = rows.iloc[sorted(range(len(rows)), key=keys.__getitem__)].reset_index(drop=True)
    families = {backbone.name: backbone.family for backbone in board.backbones}
    rows = rows.assign(best=_best(board, rows), family=rows["backbone"].map(families))
    text = pd.DataFrame({column: rows[column].astype(str) for column in TIDY})
    for column in NUMBERS:
        text[column] = [fixed(float(value), DECIMALS) for value in rows[column]]
    return text.assign(other_layer=text["other_layer"].where(rows["other"] != "", ""))


def read_tidy(path: Path) -> pd.DataFrame:
    """A CSV that was written from `tidy_frame`, as text; raises InputError where it is something else."""
    return read_numbers(path, TIDY)


def _best(board: Board, rows: pd.DataFrame) -> list[bool]:
    """Whether each row is one that the leaderboard shows."""
    columns = ["backbone", *COLUMN, "pooling", "layer"]
    best = set(board.best[columns].itertuples(index=False, name=None))
    scores = (rows["task"] != COMPARISON_TASK) & (rows["tap"] == "block")
    keys = rows[columns].itertuples(index=False, name=None)
    return [bool(score) and key in best for score, key in zip(scores, keys, strict=True)]


def _rank(row: Mapping[Hashable, Any], ranks: dict[str, int]) -> tuple[object, ...]:
    task, other, tap = str(row["task"]), str(row["other"]), row["tap"]
    layer = Layer.of_record(int(row["layer"]), tap)
    return (
        (task_rank(task), row["dataset"], row["protocol"] != "standard", row["protocol"]),
        (metric_rank(task, str(row["metric"])), ranks[str(row["backbone"])], ranks.get(other, -1)),
        (pooling_rank(str(row["pooling"])), tap != "block", tap != "final", layer.place),
    )
