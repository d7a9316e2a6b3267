"""The page of claims: its commands can be typed, name tasks that there are, and its links lead somewhere."""

import re
import shlex

import pytest

from layerboard.benchmark.commands.app import command_line, repeat_options
from layerboard.tasks.framework.registry import find_tasks
from workshop.site.pages import DOCS

PAGE = DOCS / "explanation" / "claims.md"
TEXT = PAGE.read_text(encoding="utf-8")
CALLS = re.findall(r"(?:`|^layerboard )(run [^`\n]+)", TEXT, re.MULTILINE)


@pytest.mark.parametrize("call", sorted({*CALLS}))
def test_each_command_is_read_by_the_product(call: str) -> None:
    words = repeat_options(shlex.split(call))
    context = command_line().commands["run"].make_context("layerboard", words[1:])
    assert find_tasks(context.params["tasks"] or ["knn"])


def test_each_claim_has_a_place_a_command_a_figure_and_what_it_is_about() -> None:
    lines = (line for line in TEXT.splitlines() if line.startswith("|") and "`run" in line)
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    assert len(rows) >= 45
    assert [row for row in rows if len(row) != 5 or not all(row)] == []
    kinds = ("networks", "methods", "sizes", "depth", "twins", "nothing here")
    assert all(f"\n| {kind} | " in TEXT for kind in kinds)
    assert [row for row in rows if not row[-1].startswith(kinds)] == []
