"""The pages of a site of many submissions: all leaderboards, what changed, and a page for each submission."""

from collections.abc import Sequence
from typing import Any

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
    submissions = repository.submissions
    start, count = repository.start, len(submissions)
    facts = [_facts(each, repository) for each in submissions]
    shared = {"version": RESULTS_VERSION, "newest": facts[-1]["date"], "up": ""}
    shared["style"] = Markup(STYLE.read_text(encoding="utf-8"))  # noqa: S704 - our own file
    left_out: list[str] = []
    repository.results(count, left_out)
    since = since or (submissions[start - 1].name if start else "the beginning")
    tables = [(board, with_means(main_table(board), board)) for board in boards]
    pages = {
        "index.html": filled(
            "leaderboards", tables=tables, submissions=facts[::-1], since=since, left_out=left_out, **shared
        ),
        "changes.html": filled("changes", since=since, **_changes(repository, start, count), **shared),
        "changes.csv": csv_text(Numbers(repository.changes(start, count, EVERY), "changes")),
    }
    for number, each in enumerate(facts):
        values = shared | each | _changes(repository, number, number + 1) | {"up": "../"}
        pages[each["file"]] = filled("submission", **values)
    return pages


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
        [
            *(row[name] for name in ("change", "backbone", "task", "dataset", "protocol", "metric")),
            *(_score(row[f"value_{when}"], row[f"layer_{when}"]) for when in ("before", "now")),
        ]
        for row in changes.to_dict("records")
    ]
    return {"rows": rows, "counts": [f"{count:,} {kind}" for kind, count in counts.items()]}


def _score(value: str, layer: str) -> str:
    return f"{score_text(float(value))} ({layer})" if value else ""
