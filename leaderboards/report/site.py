"""The report as a folder for any static host, including a Hugging Face Space of sdk ``static``.

The site of many submissions has all leaderboards, the changes, and a page for each submission, too.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup

from layerboard.leaderboards.blocks.csv import csv_text, numbers_text
from layerboard.leaderboards.blocks.display import page_name
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.exchange.repository import EVERY, Repository
from layerboard.leaderboards.records.files import RESULTS_VERSION
from layerboard.leaderboards.report.content import Report
from layerboard.leaderboards.report.page import ASSETS
from layerboard.leaderboards.report.templates.environment import filled
from layerboard.leaderboards.sections.means import table_with_means
from layerboard.zoo.atomic import write_whole
from layerboard.zoo.errors import printable

CARD = """\
---
title: {title}
emoji: 📏
colorFrom: blue
colorTo: gray
sdk: static
app_file: index.html
pinned: false
---

# {title}

Which frozen vision backbone, and which of its layers, is best for which task: {what}. `index.html` needs
nothing but a browser; beside it are the numbers as CSV.

`literature.html` has the numbers that others have published, with their sources.

Written by `layerboard report --site`.
"""

LINK = '<p><a href="literature.html">Numbers that others have published</a></p></footer>'


def write_site(
    pages: Mapping[str, str],
    reports: Sequence[Report],
    folder: Path,
    history: Mapping[str, str],
    beside: Mapping[str, str],
) -> list[Path]:
    """Write the page of each suite, by its name, and its numbers; other files in the folder stay.

    ``history`` are the `history_pages` of a results repository, if it is one; ``beside`` are the files of the
    literature, to which every page of a suite links.
    """
    names = {suite: page_name(suite) for suite in pages}
    single = len(pages) == 1 and not history
    linked = {suite: str(page).replace("</footer>", LINK, 1) for suite, page in pages.items()}
    texts = {"index.html" if single else f"{names[suite]}.html": page for suite, page in linked.items()}
    if not single:
        texts["index.html"] = str(filled("site", pages=names))
    tables = [numbers for report in reports for numbers in report.numbers]
    texts |= {f"{numbers.name}.csv": numbers_text(numbers) for numbers in tables}
    listed = ", ".join(names.values())
    texts |= {**history, **beside}
    title, what = (f"layerboard {listed}", "the suite") if single else ("layerboard", "suites")
    texts["README.md"] = CARD.format(title=title, what=f"{what} {listed}")
    for name, text in texts.items():
        write_whole(folder / name, printable(text))
    return [folder / name for name in sorted(texts)]


def history_pages(repository: Repository, boards: Sequence[Board], since: str) -> dict[str, str]:
    """Files of the site by name, beside the page and the CSV of each board, to which they link."""
    submissions = repository.submissions
    start, count = repository.start, len(submissions)
    style = Markup((ASSETS / "report.css").read_text(encoding="utf-8"))  # noqa: S704 - our own file
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
