"""All numbers of a page as one tidy frame of text: scores and CKA, or numbers of analyses."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import pandas as pd

from layerboard.leaderboards.blocks.blocks import Numbers
from layerboard.leaderboards.blocks.display import fixed, metric_rank, pooling_rank, task_rank
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.frames import COLUMN
from layerboard.leaderboards.records.key import COMPARISON_TASK
from layerboard.zoo.spec import Layer

DECIMALS = 4
CHOICES = ["best", "loss", "maybe_best", "chosen", "held_out"]  # columns of the primary metric alone
NUMBERS = ["value", "ci_low", "ci_high", "loss", "chosen", "held_out"]
# Columns of the CSV: ``other`` ones are empty for scores, ``value`` without a score, and those on uncertainty
# if it is unknown; the digest ``data`` distinguishes datasets of one name.
TIDY = [
    *("backbone", "family", "trained", "task", "dataset", "protocol", "pooling", "metric"),
    *("layer", "tap", "other", "other_layer", "other_tap", "value", "ci_low", "ci_high"),
    *("n", "partial", "data", "best", "loss", "maybe_best", "chosen", "held_out"),
]
INSIDE_DECIMALS = 6
# Columns of the CSV of analyses: ``layer`` is -1 for a whole backbone, ``head`` is -1 for all heads together,
# ``other`` is the backbone that it is compared with; ``reason`` says why a ``value`` is empty.
INSIDE = [
    *("backbone", "family", "trained", "task", "dataset", "protocol", "pooling", "metric"),
    *("layer", "tap", "head", "other", "value", "ci_low", "ci_high", "n", "partial", "data", "reason"),
]

# columns that decide the order of rows
ORDER = ["task", "dataset", "protocol", "metric", "backbone", "pooling", "layer", "tap", "head", "other"]

Row = Mapping[Hashable, Any]  # a record, by field


@lru_cache(maxsize=3)
def numbers_of(board: Board) -> Numbers:
    """The numbers that the page of a board, or of its analyses or costs, offers as a file.

    Those of one suite's pages are kept, since its report offers the same ones.
    """
    return Numbers(inside_frame(board) if board.part else tidy_frame(board), board.page)


def tidy_frame(board: Board) -> pd.DataFrame:
    """The numbers of one suite as text, columns `TIDY`, in the order of the page.

    They are the scores by every metric of every layer in every pooling, including draws of the random floor,
    and the CKA between last blocks of each two backbones. ``best`` marks the layer and pooling that the
    leaderboard shows, ``loss`` is by how many points the true best of the column is above it, at most, and
    ``maybe_best`` marks those that are not shown to be worse than the best of their own backbone: these and
    held-out choices are of the primary metric, and empty for all others. Analyses and CKA of all layers have
    files of their own.
    """
    primary = [(column.task, column.metric) for column in board.columns]
    scores = board.scores[board.scores["metric"] != ""]
    rows = pd.concat([frame for frame in (scores, board.last_blocks) if len(frame)] or [scores])
    families = {backbone.name: backbone.family for backbone in board.backbones}
    fields = ["backbone", *COLUMN, "pooling", "layer"]
    chosen = pd.MultiIndex.from_frame(rows[fields]).isin(pd.MultiIndex.from_frame(board.best[fields]))
    chosen = chosen & (rows["tap"] == "block") & (rows["task"] != COMPARISON_TASK)
    losses = pd.concat([pd.Series(dtype=float), *(bounds.rows["loss"] for bounds in board.bounds.values())])
    rows = rows.assign(best=chosen, loss=losses.reindex(rows.index), family=rows["backbone"].map(families))

    def rest(row: Row) -> tuple[object, ...]:
        tap, layer = row["tap"], Layer.of_record(row["layer"], row["tap"])
        ends = (tap != "block", tap != "final")
        return (board.ranks.get(row["other"], -1), pooling_rank(row["pooling"]), *ends, layer.place)

    rows = _in_order(rows, board.ranks, rest)
    text = _texts(rows, TIDY, DECIMALS)
    ranks = pd.MultiIndex.from_frame(rows[["task", "metric"]]).isin(primary)
    text.loc[~ranks, CHOICES] = ""
    return text.assign(other_layer=text["other_layer"].where(rows["other"] != "", ""))


def inside_frame(board: Board) -> pd.DataFrame:
    """The numbers of a board of analyses or of costs as text, columns `INSIDE`, in the order of the page.

    The many numbers of two layers are only in the records and arrays.
    """

    def rest(row: Row) -> tuple[object, ...]:
        layer = Layer(row["layer"], row["tap"])
        return (pooling_rank(row["pooling"]), layer.place, row["head"], row["other"])

    rows = board.records[board.records["other_layer"] < 0]
    return _texts(_in_order(rows, board.ranks, rest), INSIDE, INSIDE_DECIMALS)


def _in_order(
    rows: pd.DataFrame, ranks: Mapping[str, int], rest: Callable[[Row], tuple[object, ...]]
) -> pd.DataFrame:
    """Rows sorted by what they were measured on, metric and backbone, and then by ``rest``."""
    named = {*zip(rows["task"], rows["metric"], strict=True)}  # few: ranks are found once
    metrics = {(task, metric): (task_rank(task), metric_rank(task, metric)) for task, metric in named}
    keys = []
    for row in rows[ORDER].to_dict("records"):
        task, metric = metrics[row["task"], row["metric"]]
        source = (task, row["dataset"], row["protocol"] != "standard", row["protocol"])
        keys.append((source, metric, ranks[row["backbone"]], rest(row)))
    return rows.iloc[sorted(range(len(rows)), key=keys.__getitem__)].reset_index(drop=True)


def _texts(rows: pd.DataFrame, columns: Sequence[str], decimals: int) -> pd.DataFrame:
    text = pd.DataFrame({column: rows[column].astype(str) for column in columns})
    for column in NUMBERS:
        if column in text:
            text[column] = [fixed(float(value), decimals) for value in rows[column]]
    return text
