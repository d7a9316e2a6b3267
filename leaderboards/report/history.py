"""The pages of a site of many submissions: all leaderboards, what changed, and a page for each submission."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
from markupsafe import Markup

from layerboard.leaderboards.board import Board
from layerboard.leaderboards.display import score_text
from layerboard.leaderboards.pages.csv import csv_text
from layerboard.leaderboards.records.files import RESULTS_VERSION, safe_name
from layerboard.leaderboards.records.manifest import CLAIMS, MANIFEST, claim_of
from layerboard.leaderboards.report.html import filled
from layerboard.leaderboards.report.page import ASSETS
from layerboard.leaderboards.repository import EVERY, Repository
from layerboard.leaderboards.sections.means import with_means
from layerboard.leaderboards.sections.tables import main_table
from layerboard.leaderboards.submission import Submission
from layerboard.tasks.blocks import Numbers
from layerboard.zoo.atomic import file_sha256

STYLE = ASSETS / "report.css"


def history_pages(repository: Repository, boards: Sequence[Board], since: str) -> dict[str, str]:
    """Files of the site by name, beside the page and the CSV of each board, to which they link."""
    submissions, left_out = repository.submissions, list[str]()
    start, count = repository.start, len(submissions)
    repository.results(count, left_out)
    facts = [_facts(each, repository) for each in submissions]
    shared = {
        "style": Markup(STYLE.read_text(encoding="utf-8")),  # noqa: S704 - our own file
        "up": "",
        "version": RESULTS_VERSION,
        "newest": facts[-1]["date"],
        "boards": [(board, _table(board)) for board in boards],
        "submissions": facts[::-1],
        "left_out": left_out,
        "since": since or (submissions[start - 1].name if start else "the beginning"),
    }
    pages = {
        "index.html": filled("leaderboards", **shared),
        "changes.html": filled("changes", **shared, **_changes(repository, start, count)),
        "changes.csv": csv_text(Numbers(repository.changes(start, count, EVERY), "changes")),
    }
    for number, each in enumerate(facts):
        values = shared | each | _changes(repository, number, number + 1) | {"up": "../"}
        pages[each["file"]] = filled("submission", **values)
    return pages


def _table(board: Board) -> pd.DataFrame:
    """The table of best layers; where several measured, it says beside each backbone who did."""
    table = with_means(main_table(board), board)
    notes = table["measured"] if board.claims else [""] * len(table)
    names = zip(table["backbone"], notes, strict=True)
    cells = [{"text": name, "note": note, "left": True} for name, note in names]
    table = table.assign(backbone=pd.Series(cells, dtype=object))
    return table.drop(columns=["family", "measured"], errors="ignore")


def _facts(submission: Submission, repository: Repository) -> dict[str, Any]:
    """What the pages say of a submission, but of its scores."""
    name, manifest = submission.name, submission.manifest
    return {
        "name": name,
        "file": f"submissions/{safe_name(name)}.html",
        "date": manifest.date[:10],
        "measured": CLAIMS[claim_of(submission.folder)],
        "manifest": manifest,
        "tasks": sorted({result.records["task"].iloc[0] for result in submission.results}),
        "replaced": [each.name for each in repository.submissions if each.manifest.replaces == name],
        "digest": file_sha256(submission.folder / MANIFEST),
    }


def _changes(repository: Repository, start: int, stop: int) -> dict[str, Any]:
    """What some submissions changed, in numbers and as the rows of a table."""
    changes = repository.changes(start, stop)
    counts = changes["change"].value_counts()
    rows = [
        (
            row["backbone"],
            {"text": f"{row['task']} {row['metric']}", "note": f"{row['dataset']} ({row['protocol']})"},
            *(_score(row[f"value_{when}"], row[f"layer_{when}"]) for when in ("before", "now")),
            row["change"],
        )
        for row in changes.to_dict("records")
    ]
    return {"rows": rows, "counts": [f"{count:,} {kind}" for kind, count in counts.items()]}


def _score(value: str, layer: str) -> str:
    return f"{score_text(float(value))} ({layer})" if value else ""
