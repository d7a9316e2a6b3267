"""All numbers of a page as one tidy frame of text: scores and CKA, or numbers of analyses."""

import math
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

import pandas as pd

from layerboard.leaderboards.blocks.blocks import Numbers
from layerboard.leaderboards.blocks.display import fixed, metric_rank, pooling_rank, task_rank
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.frames import COLUMN
from layerboard.leaderboards.records.key import COMPARISON_TASK
from layerboard.zoo.spec import Layer

DECIMALS = 4
OF_COLUMN = ("best", "loss", "maybe_best", "held_out")  # by the answer of the column that the number is in
OF_BACKBONE = ("maybe_best_of_backbone", "chosen", "held_out_of_layer")  # among blocks of one backbone alone
CHOICES = [*OF_COLUMN, *OF_BACKBONE]  # columns of the primary metric alone
NUMBERS = ["value", "ci_low", "ci_high", "loss", "held_out", "chosen", "held_out_of_layer"]
# Columns of the CSV: ``other`` ones are empty for scores, ``value`` without a score, and those on uncertainty
# if it is unknown; the digest ``data`` distinguishes datasets of one name.
MEASURED = [
    *("backbone", "family", "trained", "task", "dataset", "protocol", "pooling", "metric"),
    *("layer", "tap", "other", "other_layer", "other_tap", "value", "ci_low", "ci_high"),
    *("n", "partial", "data"),
]
TIDY = [*MEASURED, *CHOICES]
INSIDE_DECIMALS = 6
# Columns of the CSV of analyses: ``layer`` is -1 for a whole backbone, ``head`` is -1 for all heads together,
# ``other`` is the backbone that it is compared with; ``reason`` says why a ``value`` is empty.
INSIDE = [
    *("backbone", "family", "trained", "task", "dataset", "protocol", "pooling", "metric"),
    *("layer", "tap", "head", "other", "value", "ci_low", "ci_high", "n", "partial", "data", "reason"),
]


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
    leaderboard shows, whose ``held_out`` is the score with the layer chosen on other data. ``loss`` is by how
    many points the true best of the column is above a layer, at most, and ``maybe_best`` marks those that may
    be it; both are empty if it was not compared. ``maybe_best_of_backbone`` marks those that may be the best
    of their own backbone. These and held-out choices are of the primary metric, and empty for all others.
    Analyses and CKA of all layers have files of their own.
    """
    primary = [(column.task, column.metric) for column in board.columns]
    scores = board.scores[board.scores["metric"] != ""]
    rows = pd.concat([frame for frame in (scores, board.last_blocks) if len(frame)] or [scores])
    families = {backbone.name: backbone.family for backbone in board.backbones}
    fields = ["backbone", *COLUMN, "pooling", "layer"]
    chosen = pd.MultiIndex.from_frame(rows[fields]).isin(pd.MultiIndex.from_frame(board.best[fields]))
    chosen = chosen & (rows["tap"] == "block") & (rows["task"] != COMPARISON_TASK)
    held_out = {
        (*(getattr(column, name) for name in COLUMN), backbone): choice.score
        for column in board.columns
        for backbone, choice in column.held_out.items()
    }
    keys = zip(*(rows[name] for name in (*COLUMN, "backbone")), strict=True)
    known = [held_out.get(key, math.nan) for key in keys]
    nothing = pd.DataFrame(columns=["loss", "maybe"])
    bounds = pd.concat([nothing, *(each.rows[[*nothing]] for each in board.bounds.values())])
    bounds = bounds.reindex(rows.index)
    rows = rows.rename(columns={"maybe_best": "maybe_best_of_backbone", "held_out": "held_out_of_layer"})
    rows = rows.assign(best=chosen, family=rows["backbone"].map(families), held_out=known)
    rows = rows.assign(loss=bounds["loss"], maybe_best=bounds["maybe"].where(bounds["loss"].notna(), ""))
    others, tap = rows["other"].map(lambda name: board.ranks.get(name, -1)), rows["tap"]
    rows = _in_order(rows, board, others, rows["pooling"].map(pooling_rank), tap != "block", tap != "final")
    text = _texts(rows, TIDY, DECIMALS)
    ranks = pd.MultiIndex.from_frame(rows[["task", "metric"]]).isin(primary)
    text.loc[~ranks, CHOICES] = ""
    text.loc[text["best"] != "True", "held_out"] = ""
    return text.assign(other_layer=text["other_layer"].where(rows["other"] != "", ""))


def inside_frame(board: Board) -> pd.DataFrame:
    """The numbers of a board of analyses or of costs as text, columns `INSIDE`, in the order of the page.

    The many numbers of two layers are only in the records and arrays.
    """
    rows = board.records[board.records["other_layer"] < 0]
    rows = _in_order(rows, board, rows["pooling"].map(pooling_rank))
    return _texts(rows, INSIDE, INSIDE_DECIMALS)


def _in_order(rows: pd.DataFrame, board: Board, *further: "pd.Series[Any]") -> pd.DataFrame:
    """Rows by what they were measured on, metric, backbone, ``further`` facts, layer, head and the other."""
    # the same few tasks, metrics and layers are in many rows
    scores = map(cache(metric_rank), rows["task"], rows["metric"])
    layers = map(cache(lambda *layer: Layer.of_record(*layer).place), rows["layer"], rows["tap"])
    tasks, standard = map(cache(task_rank), rows["task"]), rows["protocol"] != "standard"
    subject = tasks, rows["dataset"], standard, rows["protocol"], scores, rows["backbone"].map(board.ranks)
    keys = [*zip(*subject, *further, layers, rows["head"], rows["other"], strict=True)]
    return rows.iloc[sorted(range(len(rows)), key=keys.__getitem__)].reset_index(drop=True)


def _texts(rows: pd.DataFrame, columns: Sequence[str], decimals: int) -> pd.DataFrame:
    text = pd.DataFrame({column: rows[column].astype(str) for column in columns})
    for column in NUMBERS:
        if column in text:
            text[column] = [fixed(float(value), decimals) for value in rows[column]]
    return text
