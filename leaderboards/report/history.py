"""The pages of a site of many submissions: all leaderboards, changes, and a page for each submission."""

import os
from collections.abc import Sequence
from typing import Any

import pandas as pd
from markupsafe import Markup

from layerboard.leaderboards.blocks.csv import csv_text
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.exchange.repository import EVERY, Repository
from layerboard.leaderboards.records.files import RESULTS_VERSION
from layerboard.leaderboards.report.page import ASSETS
from layerboard.leaderboards.report.templates.environment import filled
from layerboard.leaderboards.sections.means import table_with_means

STYLE = ASSETS / "report.css"


def history_pages(repository: Repository, boards: Sequence[Board], since: str) -> dict[str, str]:
    """Files of the site by name, beside the page and the CSV of each board, to which they link."""
    submissions = repository.submissions
    start, count = repository.start, len(submissions)
    style = Markup(STYLE.read_text(encoding="utf-8"))  # noqa: S704 - our own file
    shared = {"submissions": submissions, "version": RESULTS_VERSION, "style": style, "up": ""}
    parent = f"{submissions[0].folder.parent}{os.sep}"  # on this machine
    shared |= {"boards": [(board, _table(board)) for board in boards]}
    shared |= {"left_out": [reason.replace(parent, "") for reason in repository.left_out]}
    shared |= {"since": since or (submissions[start - 1].name if start else "the beginning")}
    pages = {
        "index.html": filled("leaderboards", **shared),
        "changes.html": filled("changes", **shared, **_changes(repository, start, count)),
        "changes.csv": csv_text(repository.changes(start, count, EVERY)),
    }
    for number, each in enumerate(submissions):
        values = shared | {"up": "../", "submission": each} | _changes(repository, number, number + 1)
        pages[f"submissions/{each.name}.html"] = filled("submission", **values)
    return pages


def _table(board: Board) -> pd.DataFrame:
    """The table of best layers; if several parties measured, it says who measured each backbone."""
    cells = [
        {"text": backbone.label, "note": board.claims.get(backbone.name, ""), "left": True}
        for backbone in board.scored_backbones
    ]
    table = table_with_means(board).assign(backbone=pd.Series(cells, dtype=object))
    return table.drop(columns=["family", "measured"], errors="ignore")


def _changes(repository: Repository, start: int, stop: int) -> dict[str, Any]:
    changes = repository.changes(start, stop)
    return {"changes": changes.to_dict("records"), "counts": changes["change"].value_counts().items()}
