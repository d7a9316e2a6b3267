import csv
import io
import re

import pandas as pd
import pytest

from layerboard.leaderboards.blocks.blocks import Numbers, Page
from layerboard.leaderboards.blocks.csv import csv_page, read_numbers
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.tidy import TIDY, tidy_frame
from layerboard.leaderboards.inside.page import inside_page
from layerboard.leaderboards.writers.build import leaderboard_page
from layerboard.leaderboards.writers.markdown import markdown_page
from tests.leaderboards.analyses import distances
from tests.leaderboards.builder import NAN, floor, frame, layers, pair, record, unsure
from tests.leaderboards.reader import page_html

HOSTILE = '=<script>"a",|*`b`\n,=1+1'


def test_a_page_without_numbers_has_no_csv():
    assert csv_page(Page("p", "T", ())) == ""


NAMES = [
    "=HYPERLINK(1)",
    "+1+1",
    "-a",
    "@a",
    "\ta",
    "'=1",
    "''=1",
    "'a",
    "-",
    "=<script>alert(1)</script>",
    HOSTILE,
]


def test_no_cell_is_a_formula_and_all_come_back(tmp_path):
    records = frame(*(layers([1.0, -2.0], backbone=name) for name in NAMES))
    numbers = Numbers(tidy_frame(Board.of(records, "mini")), "mini")
    text = csv_page(Page("mini", "T", (numbers,)))
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0] == TIDY
    assert {len(row) for row in rows} == {len(TIDY)}
    texts = [cell for row in rows for cell in row if not re.fullmatch(r"-?[0-9.]+", cell)]
    assert not any(cell.startswith(tuple("=+-@\t")) for cell in texts)
    assert [row[TIDY.index("value")] for row in rows[1:]] == ["1.0000", "-2.0000"] * len(NAMES)
    (tmp_path / "mini.csv").write_text(text, newline="")
    found = read_numbers(tmp_path / "mini.csv", TIDY)
    assert set(found["backbone"]) == {*NAMES}
    pd.testing.assert_frame_equal(found.astype(object), numbers.frame.astype(object))


@pytest.mark.parametrize("write", [markdown_page, page_html])
def test_no_tag_of_a_record_reaches_a_page(write):
    name = "./<script>alert(1)</script>/<img src=x onerror=alert(1)>"
    hostile = dict.fromkeys(("backbone", "coverage", "dataset", "unit", "split"), name) | {"partial": True}
    gap = record(**hostile, layer=3, value=NAN, reason=name)
    scores = unsure(layers([1.0, 2.0], **hostile))
    for page in (
        leaderboard_page(Board.of(frame(scores, [gap, pair(name, 3, "b", 3, 0.5)], floor([1.0])), "mini")),
        inside_page(Board.of(frame(distances([[0.1, 0.3]], backbone=name, dataset=name, unit=name)), "mini")),
    ):
        text = write(page)
        assert "<script" not in text
        assert "<img" not in text
        assert text.count("alert(1)") > 4
