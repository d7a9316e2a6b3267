import pandas as pd
import pytest

from layerboard.leaderboards.blocks.display import number_text, ranges_text, score_text, task_display
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.sections.best import best_blocks
from layerboard.leaderboards.sections.provenance import empty_cells
from layerboard.leaderboards.writers.markdown import markdown_table, plain
from tests.leaderboards.builder import NAN, floor, frame, layers, unsure
from tests.leaderboards.goldens import EXPECTED, PAGES, page, uncertain, write_measured
from tests.leaderboards.shown import render_blocks, render_page


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_the_stored_one_whatever_the_order_of_the_records(name):
    expected = (EXPECTED / f"{name}.md").read_text(encoding="utf-8")
    found = page(name, seed=7)
    assert found == expected, "read the page as it is now, then: python -m tests.leaderboards.goldens"


def test_without_items_the_page_says_that_nothing_was_compared(tmp_path):
    sentence = "Which backbones may be the best is not marked"
    for items in (None, tmp_path):
        text = render_blocks(best_blocks(Board.of(uncertain(), items=items)))
        assert sentence in text
        assert "`≈` marks backbones" not in text
    write_measured(tmp_path)
    text = render_blocks(best_blocks(Board.of(uncertain(), items=tmp_path)))
    assert "`≈` marks backbones" in text
    assert sentence not in text
    assert sentence not in render_blocks(best_blocks(Board.of(frame(unsure(layers([1.0]))))))


def test_a_task_without_any_score_has_empty_tables():
    page = render_page(frame(layers([NAN, NAN]), floor([1.0], task="davis", metric="J&F")), "mini")
    assert "\n**Class token**.\n" in page
    assert "| mini-dino  |     |     |" in page
    assert page.count("Random floor: 1.0 (1 draw).") == 1
    assert "nan" not in page.lower()


def test_a_gap_without_a_reason_and_one_in_another_pooling_are_named():
    secondary = layers([NAN], pooling="mean", primary=False, reason="no grid")
    assert empty_cells(Board.of(frame(layers([NAN], reason=""), secondary))) == [
        "mini-dino: knn on mini-imagenet (standard), layer 1: no reason was recorded.",
        "mini-dino: knn on mini-imagenet (standard), mean of the patch tokens, layer 1: no grid.",
    ]


def test_counts_and_dates_that_differ_are_ranges():
    records = frame(layers([1.0], date="2026-01-31T05:00:00+00:00"), layers([1.0], backbone="b", n=399))
    page = render_page(records, "mini")
    assert "n = 399 to 400 images" in page
    assert "from 2026-01-31 to 2026-11-20" in page


def test_numbers_are_formatted_without_a_negative_zero():
    assert [score_text(value) for value in (61.25, 100.0, -0.01, NAN)] == ["61.2", "100.0", "0.0", ""]
    near = (
        (100.0, 92.8, 100.0),
        (0.0, 0.0, 3.66),
        (99.0, 96.0, 99.8),
        (98.0, 96.9, 99.0),
        (50.0, 50.0, 50.0),
    )
    assert [score_text(*score) for score in near] == [
        *("100.0 (92.8 to 100)", "0.0 (0 to 3.7)", "99.0 (96.0 to 99.8)", "98.0 ± 1.0", "50.0 ± 0.0")
    ]
    assert number_text(0.99, 0.9, 0.995) == "0.990 (0.900 to 0.995)"
    assert [number_text(value) for value in (0.12345, 9.9994, 12.34, -0.0001, -0.5, NAN)] == [
        *("0.123", "9.999", "12.3", "0.000", "-0.500", "")
    ]
    assert number_text(56.04, 55.78, 56.3) == "56.0 ± 0.3"
    assert ranges_text([5, 1, 2, 3, 9, 8]) == "1 to 3, 5, 8, 9"


def test_a_table_without_rows_is_its_head():
    assert markdown_table(pd.DataFrame({"a": [], "b": []})).splitlines()[0].replace(" ", "") == "|a|b|"
    assert plain("a\n b") == "a b"
    assert task_display("unheard-of").metrics == ()
