"""Scores over other images or another ground truth are never ranked together."""

import pytest

from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.tidy import CHOICES, tidy_frame
from layerboard.leaderboards.sections.layers import layer_blocks
from layerboard.leaderboards.sections.provenance import empty_cells
from layerboard.leaderboards.sections.similarity import cka_tables
from tests.leaderboards.builder import floor, frame, layers, pair, record, unsure, write_layers
from tests.leaderboards.shown import render_blocks, render_page

CLIP = {"backbone": "mini-clip", "family": "CLIP"}
FOUR = {"data": "44444444", "partial": True, "coverage": "limited to 4 images a class: 8 used"}
SIX = {"data": "66666666", "partial": True, "coverage": "limited to 6 images a class: 12 used"}


def limited():
    """DINO on four images a class, CLIP and MAE on six."""
    mae = layers([10.0, 20.0], backbone="mini-mae", family="MAE", **SIX)
    return frame(layers([60.0, 90.0], **FOUR), layers([50.0, 40.0], **CLIP, **SIX), mae)


def test_rows_of_different_images_stand_in_columns_of_their_own():
    first, second = Board.of(limited()).columns
    assert (first.heading, second.heading) == ("knn top-1 [66666666] †", "knn top-1 [44444444] †")
    assert first.key != second.key
    page = render_page(limited(), "mini")
    rows = {line.split("|")[2].strip(): line for line in page.splitlines() if line.count("|") == 5}
    assert "**50.0 (1/2 cls)**" in rows["mini-clip"]
    assert "**90.0 (2/2 cls)**" in rows["mini-dino"]
    assert "**Different images.**" in page
    assert "- knn top-1 \\[44444444\\] †: limited to 4 images a class: 8 used" in page
    assert "### knn on mini-imagenet \\[66666666\\] (standard)" in page
    assert empty_cells(Board.of(limited())) == []


def test_the_same_images_share_a_column_however_many_of_them_were_scored():
    records = frame(layers([1.0, 2.0], n=400, data="a"), layers([1.0, 3.0], n=398, **CLIP, data="a"))
    assert [column.heading for column in Board.of(records).columns] == ["knn top-1"]
    assert "Different images" not in render_page(records, "mini")


def test_complete_data_come_first():
    both = [*layers([1.0], data="aa"), *layers([2.0], **CLIP, **SIX), *layers([2.0], backbone="x", **SIX)]
    assert [column.data for column in Board.of(frame(both)).columns] == ["aa", "66666666"]


def test_comparisons_of_other_images_have_tables_of_their_own():
    pairs = [pair("mini-dino", 3, "mini-clip", 3, 0.5, data=data) for data in ("a", "b")]
    tables = cka_tables(Board.of(frame(pairs)))
    assert [table.dataset_name for table in tables] == ["mini-imagenet [a]", "mini-imagenet [b]"]
    assert [len(table.rows) for table in tables] == [1, 1]


@pytest.mark.parametrize("value", [float("inf"), float("-inf")])
def test_what_is_infinite_is_no_score(value):
    records = frame(layers([5.0, value, 3.0]), layers([4.0], **CLIP))
    assert Board.of(records).best["value"].tolist() == [4.0, 5.0]
    assert empty_cells(Board.of(records)) == [
        "mini-dino: knn on mini-imagenet (standard), layer 2: not a number: infinite."
    ]
    assert "inf" not in set(tidy_frame(Board.of(records, "mini"))["value"])


def test_the_numbers_hold_every_pooling_and_metric():
    mean = {"pooling": "mean", "primary": False}
    other = [record(metric="top-5", primary=False, layer=1)]
    records = frame(layers([1.0, 2.0]), layers([3.0, 1.0], **mean), other, floor([1.0]))
    found = tidy_frame(Board.of(records, "mini"))
    shown = found[["backbone", "pooling", "layer", "value", "best"]].to_numpy().tolist()
    assert shown == [
        ["mini-dino", "cls", "1", "1.0000", "False"],
        ["mini-dino", "cls", "2", "2.0000", "False"],
        ["mini-dino", "mean", "1", "3.0000", "True"],
        ["mini-dino", "mean", "2", "1.0000", "False"],
        ["random", "cls", "1", "1.0000", "False"],
        ["mini-dino", "cls", "1", "50.0000", ""],
    ]
    assert found.loc[5, [*CHOICES]].tolist() == [""] * 7
    page = render_page(records, "mini")
    assert "**3.0 (1/2 mean)**" in page
    assert page.index("Features: mean: mean of the patch tokens (knn).") < page.index("## Every layer")
    assert page.index("**Mean of the patch tokens**") < page.index("**Class token**")  # the shown one first


def test_one_unit_is_not_several():
    blocks = layer_blocks(Board.of(frame(layers([1.0], n=1, unit="queries"))))
    assert "n = 1 query." in render_blocks(blocks)


def test_measurements_that_are_there_are_not_called_absent(tmp_path):
    records = frame(unsure(layers([50.0, 60.0])), unsure(layers([40.0, 50.0], **CLIP)))
    write_layers(tmp_path, "mini-dino", {2: [50.0, 70.0]})
    write_layers(tmp_path, "mini-clip", {2: [40.0, 60.0]}, prefix="another ")
    page = render_page(records, "mini", tmp_path)
    assert "per-item scores of the same images, which the test needs, were missing" in " ".join(page.split())
