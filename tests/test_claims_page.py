"""The page of claims: its commands can be typed and carried out, and what it says is shown is on pages."""

import re
import shlex
from pathlib import Path

import pytest

from layerboard.benchmark.commands.app import command_line, repeat_options
from layerboard.benchmark.plan.suites import SUITES
from layerboard.tasks.framework.protocols import find_protocol
from layerboard.tasks.framework.registry import find_tasks
from layerboard.zoo.registry.find import find
from tests.shared import table_rows
from tests.test_house import ROOT
from workshop.site.pages import DOCS

PAGES = [DOCS / "explanation" / f"{name}.md" for name in ("claims", "scale")]
TEXT = PAGES[0].read_text(encoding="utf-8")
CALL = re.compile(r"(?:`|^layerboard )(run [^`\n]+)", re.MULTILINE)
CALLS = {call for page in PAGES for call in CALL.findall(page.read_text(encoding="utf-8"))}

TABLES = sorted((ROOT / "leaderboards" / "tables").glob("*.md"))
WRITTEN = "\n".join(path.read_text(encoding="utf-8") for path in TABLES)
FIGURES = dict(table_rows(Path(__file__).with_name("claims.csv")))
"""By the first words of what is shown: what the committed pages call it."""


@pytest.mark.parametrize("call", sorted(CALLS))
def test_each_command_is_read_by_the_product(call: str) -> None:
    words = repeat_options(shlex.split(call))
    params = command_line().commands["run"].make_context("layerboard", words[1:]).params
    assert find_tasks(params["tasks"] or ["knn"])
    assert params["suite"] in {None, *(suite.name for suite in SUITES)}
    assert all(map(find_protocol, ",".join(params["protocol"] or ["standard"]).split(",")))
    named = [name for name in params["backbones"] or () if not name.startswith("timm:")]
    assert not named or find(named)


def rows() -> list[list[str]]:
    lines = (line for line in TEXT.splitlines() if line.startswith("|") and "`run" in line)
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_each_claim_has_a_place_a_command_a_figure_and_what_it_is_about() -> None:
    assert len(rows()) >= 45
    assert [row for row in rows() if len(row) != 5 or not all(row)] == []
    kinds = ("networks", "methods", "sizes", "depth", "twins", "nothing here")
    assert all(f"\n| {kind} | " in TEXT for kind in kinds)
    assert [row for row in rows() if not row[-1].startswith(kinds)] == []


def test_what_is_said_to_be_shown_is_on_committed_pages() -> None:
    """Of two protocols on real data, and of a GPU, there are none."""
    lacking = []
    for shown in {row[3] for row in rows()} - {"one column a protocol", "`largest-batch`, on a GPU"}:
        titles = [title for words, title in FIGURES.items() if shown.startswith(words)]
        titles += re.findall("`(.+?)`", shown)
        known = titles or shown.startswith("the same")
        lacking += [shown] if not known or not all(title in WRITTEN for title in titles) else []
    assert lacking == []
