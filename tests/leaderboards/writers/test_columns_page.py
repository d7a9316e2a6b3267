"""docs/reference/columns.md explains the columns that there are, and no others."""

import re
from pathlib import Path

import pytest

from layerboard.leaderboards.answer.answer import answer_frame
from layerboard.leaderboards.board.tidy import INSIDE, MEASURED, TIDY
from layerboard.leaderboards.findings.paired import Match, match_frame
from layerboard.leaderboards.published import literature
from layerboard.leaderboards.records.record import COLUMNS

TEXT = (Path(__file__).parents[3] / "docs" / "reference" / "columns.md").read_text()
SECTIONS = {part.partition("\n")[0]: part for part in TEXT.split("\n## ")}


def named(section: str) -> set[str]:
    """Names in the first cells of a section's tables, or anywhere in one that has none."""
    text = SECTIONS[section]
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    cells = " ".join(row.split("|")[1] for row in rows) if rows else text
    return set(re.findall(r"`([a-z_0-9]+)`", cells))


def test_the_csv() -> None:
    assert named("The CSV of a leaderboard") == {*TIDY}


def test_the_csv_of_analyses() -> None:
    differ = {*TIDY} ^ {*INSIDE}
    assert named("The CSV of analyses") == differ


def test_records() -> None:
    assert named("Records") == {*COLUMNS} - {*MEASURED} - {"chosen"}
    assert {*MEASURED} <= {*COLUMNS}


def test_published_numbers() -> None:
    assert named("Published numbers") == {*literature.COLUMNS}


@pytest.mark.parametrize("frame", [answer_frame([]), match_frame(Match(("a", "b"), "best", (), ()))])
def test_for_machines(frame) -> None:
    assert {*frame.columns} <= named("For machines")
