import csv
import io

import pandas as pd

from leaderboards.pages.blocks import Numbers, Page
from leaderboards.pages.csv import csv_page, read_numbers
from leaderboards.pages.tidy import TIDY, tidy_frame
from tests.leaderboards.builder import frame, layers

HOSTILE = '<script>"a",|*`b`\n,=1+1'


def test_a_page_without_numbers_has_no_csv():
    assert csv_page(Page("p", "T", ())) == ""


def test_hostile_names_come_back_as_they_were(tmp_path):
    numbers = Numbers(tidy_frame(frame(layers([1.0, 2.0], backbone=HOSTILE)), "mini"), "mini")
    text = csv_page(Page("mini", "T", (numbers,)))
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0] == TIDY
    assert [row[0] for row in rows[1:]] == [HOSTILE, HOSTILE]
    assert {len(row) for row in rows} == {len(TIDY)}
    (tmp_path / "mini.csv").write_text(text, newline="")
    pd.testing.assert_frame_equal(
        read_numbers(tmp_path / "mini.csv", TIDY).astype(object), numbers.frame.astype(object)
    )
