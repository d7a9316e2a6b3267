"""The page that reads the mini suite's analyses quotes the committed numbers."""

import re
from pathlib import Path

import pandas as pd

from layerboard.leaderboards.blocks.csv import read_numbers
from layerboard.leaderboards.board.tidy import INSIDE
from layerboard.leaderboards.writers.build import tables_folder

PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "inside.md"

COLUMNS = {
    "head IoU": ("saliency", "saliency-iou-best-held-out", "patch", "-1", "attention"),
    "rollout IoU": ("saliency", "rollout-iou", "cls", "12", "attention"),
    "norm ratio": ("residuals", "norm-ratio", "patch", "12", "attention"),
    "radius, block 1": ("receptive-field", "erf-half-radius", "", "1", "block"),
    "radius, block 12": ("receptive-field", "erf-half-radius", "", "12", "block"),
    "own place": ("localisation", "localisation-top1", "patch", "12", "block"),
    "one token": ("token-probes", "fewshot-10", "token", "12", "block"),
}
"""Task, metric, pooling (any if empty), layer and tap of each column but the first."""


def numbers() -> pd.DataFrame:
    frame = read_numbers(tables_folder() / "mini.inside.csv", INSIDE)
    return frame[(frame["head"] == "-1") & (frame["value"] != "") & (frame["other"] == "")]


def of_column(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    task, metric, pooling, layer, tap = COLUMNS[column]
    rows = frame[(frame["task"] == task) & (frame["metric"] == metric) & (frame["layer"] == layer)]
    rows = rows[(rows["pooling"] == pooling) | (pooling == "")]
    rows = rows[(rows["tap"] == tap) | (rows["layer"] == "-1")]
    return rows[rows["dataset"] != "mini-partimagenet"].set_index("backbone")


def test_the_page_quotes_the_committed_numbers() -> None:
    frame = numbers()
    ((head, body),) = re.findall(
        r"^\| backbone \|(.*)\|\n\|[-|: ]+\|\n((?:\|.*\|\n)+)", PAGE.read_text(encoding="utf-8"), re.M
    )
    names = [name.strip() for name in head.split("|")]
    assert names[1:] == list(COLUMNS)
    ratio = frame[frame["metric"] == "attention-distance-ratio"].astype({"value": float})
    lowest = ratio.groupby("backbone")["value"].min()
    for line in body.splitlines():
        backbone, first, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert first == (f"{lowest[backbone]:.3f}" if backbone in lowest else "")
        for column, cell in zip(COLUMNS, cells, strict=True):
            rows = of_column(frame, column)
            there = rows.index == backbone
            assert cell == (f"{float(rows.loc[there, 'value'].iloc[0]):.3f}" if there.any() else "")
