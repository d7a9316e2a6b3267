import math

import pandas as pd

from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.report.content import report_of
from layerboard.leaderboards.report.page import report_page
from tests.leaderboards.builder import frame
from tests.leaderboards.report.boards import FACTS, HOSTILE, KNN, content, cost, small, usual_page


def test_what_was_measured_is_told_and_the_rest_follows_from_facts():
    report = report_of(Board.of(small()), FACTS)
    knn = report.scores[report.scores["column"] == KNN]
    rows = {(row["backbone"], row["layer"]): row for row in knn.to_dict("records")}
    assert len(report.measured_costs)
    assert [rows["mini-clip", layer]["ms"] for layer in (1, 2, 3)] == [2.0, 4.0, 6.0]
    assert rows["mini-clip", 2]["parameters"] == 2  # millions
    assert rows["mini-fs", 3]["parameters"] == 1
    assert rows["mini-fs", 3]["dim"] == 64
    assert math.isnan(rows["mini-fs", 3]["ms"])
    assert math.isnan(rows[HOSTILE, 1]["parameters"])
    assert [name for name, _ in report.axes] == ["ms", "parameters", "dim"]


def test_nothing_is_made_up_where_nothing_is_known():
    records = small()
    report = report_of(Board.of(records[records["task"] != "cost"]), {})
    assert report.measured_costs.empty
    assert report.axes == ()


def test_times_that_other_work_disturbed_are_called_so_where_they_are_shown():
    waited = frame([cost("mini-clip", -1, "waiting", 50.0)])
    page = report_page(content(pd.concat([small(), waited], ignore_index=True)))
    warning = "Other work on the machine disturbed the times of mini-clip on a card"
    for name in ("answer", "cost-section"):
        assert warning in page.split(f'<section id="{name}"')[1].split("</section>")[0]
    assert "Other work on the machine" not in usual_page()
    alone = small()[small()["backbone"] == "mini-clip"]
    page = report_page(content(pd.concat([alone, waited], ignore_index=True)))
    verdict = page.split('class="verdict"')[1].split("</p>")[0]
    assert "ms an image for all tasks together (other work disturbed the timing), " in verdict
