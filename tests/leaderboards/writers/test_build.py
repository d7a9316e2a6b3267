import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from layerboard.leaderboards.blocks.csv import text_digest
from layerboard.leaderboards.blocks.display import page_name
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.tidy import INSIDE, TIDY, tidy_frame
from layerboard.leaderboards.exchange.check import check_pages, table_differences
from layerboard.leaderboards.records.files import scored_path, task_key
from layerboard.leaderboards.records.items import write_items
from layerboard.leaderboards.records.key import TOLERANCE, Tolerance
from layerboard.leaderboards.records.record import to_frame
from layerboard.leaderboards.writers.build import tables_folder
from tests.leaderboards.builder import NAN, floor, frame, layers, measured, pair, record, unsure
from tests.leaderboards.goldens import uncertain, write_measured
from tests.leaderboards.shown import bounded, render_page, write_pages

NAME = "mini-dino, knn on mini-imagenet (standard): "


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    write_pages(small(), folder)
    return folder


@pytest.fixture
def committed(written, tmp_path):
    """A folder with the pages of three layers, the floor and a comparison."""
    return Path(shutil.copytree(written, tmp_path / "tables"))


def small(values=(10.0, 30.0, 20.0), cka=0.5, **changes):
    comparisons = [pair("mini-dino", 3, "mini-clip", 3, cka), pair("mini-clip", 3, "mini-clip", 3, 1.0)]
    return frame(layers(values, **changes), floor([1.0, 2.0]), comparisons)


def numbers(records):
    """The rows of the CSV of the mini leaderboard."""
    return tidy_frame(Board.of(records, "mini"))


def differences(before, now):
    """What the check says of the numbers that were committed and those of today."""
    return table_differences(before, now, TOLERANCE)


def test_each_suite_gets_a_page_and_a_csv_and_nothing_else_is_left(tmp_path):
    records = frame(layers([1.0]), layers([2.0], suite="paper"))
    paths = write_pages(records, tmp_path / "new")
    assert [path.name for path in paths] == ["mini.csv", "mini.md", "paper.csv", "paper.md"]
    assert sorted((tmp_path / "new").iterdir()) == paths


def test_a_suite_cannot_write_elsewhere(tmp_path):
    paths = write_pages(frame([record(suite="../a/b c")]), tmp_path)
    assert paths == [tmp_path / "a-b-c.csv", tmp_path / "a-b-c.md"]
    assert "(a-b-c.csv)" in paths[1].read_text()
    assert page_name("..") == "unnamed"


def test_the_csv_has_one_row_a_layer_with_four_decimals(committed):
    lines = (committed / "mini.csv").read_text().splitlines()
    start = "knn,mini-imagenet,standard,cls,top-1"
    comparison = "mini-clip,CLIP,True,cka,mini-imagenet,standard,cls,CKA"
    assert lines == [
        ",".join(TIDY),
        f"mini-dino,DINO,True,{start},1,block,,,,10.0000,,,400,False,,False,,,,False,,",
        f"mini-dino,DINO,True,{start},2,block,,,,30.0000,,,400,False,,True,,,,False,,",
        f"mini-dino,DINO,True,{start},3,block,,,,20.0000,,,400,False,,False,,,,False,,",
        f"random,random,False,{start},1,block,,,,1.0000,,,400,False,,False,,,,False,,",
        f"random,random,False,{start},2,block,,,,2.0000,,,400,False,,False,,,,False,,",
        f"{comparison},3,block,mini-clip,3,block,1.0000,,,4,False,,,,,,,,",
        f"{comparison},3,block,mini-dino,3,block,0.5000,,,4,False,,,,,,,,",
    ]


def test_the_csv_says_how_sure_a_score_is():
    records = frame(unsure(layers([10.0, 30.0]), half=1.5, chosen={2: 1.0}, maybe=[1]))
    of_backbone = ["maybe_best_of_backbone", "chosen", "held_out_of_layer"]
    columns = ["ci_low", "ci_high", "loss", "maybe_best", "held_out", *of_backbone]
    assert numbers(records)[columns].to_numpy().tolist() == [
        ["8.5000", "11.5000", "", "", "", "True", "0.0000", ""],
        ["28.5000", "31.5000", "", "", "29.5000", "False", "1.0000", "29.5000"],
    ]
    losses = {("mini-dino", 1): (26.54321, False), ("mini-dino", 2): (0.0, True)}
    board = bounded(Board.of(records, "mini"), {"knn top-1": losses})
    assert tidy_frame(board)[["loss", "maybe_best"]].to_numpy().tolist() == [
        ["26.5432", "False"],
        ["0.0000", "True"],
    ]


def test_backbones_are_compared_by_the_items_of_the_run(tmp_path):
    write_measured(tmp_path / "items")
    write_pages(uncertain(), tmp_path, tmp_path / "items")
    assert "68.0 ± 9.0 (2/3 cls) ≈" in (tmp_path / "mini.md").read_text()
    assert check_pages(uncertain(), tmp_path) == []  # which knows no items


def test_a_table_says_of_how_many_groups_its_items_are(tmp_path):
    records = frame(unsure(layers([50.0, 40.0]), half=1.5))
    items = measured([0, 100] * 5)
    for clusters, words in ((items.keys, ""), (("video",) * 4 + items.keys[4:], " in 7 independent groups")):
        places = {(1, "block", "cls"): replace(items, clusters=clusters)}
        write_items(places, tmp_path / scored_path(task_key("knn", "mini-imagenet", "standard"), "mini-dino"))
        page = render_page(records, "mini", tmp_path)
        assert f"**Class token**, n = 400 images{words}." in page


def test_current_pages_have_no_difference(committed):
    assert check_pages(small(date="2027-01-01", version="9", device="cuda"), committed) == []
    assert check_pages(small(values=(10.4, 29.6, 20.5), cka=0.519), committed) == []


def test_other_metrics_may_also_move_by_one_of_their_units():
    def both(value):
        other = layers([value], metric="top-5", primary=False, n=20)
        return numbers(frame(layers([50.0]), other))

    assert differences(both(60.0), both(65.0)) == []  # one image of twenty
    assert differences(both(60.0), both(66.0)) == [
        NAME + "1 row moved by more than 0.5, most layer 1, cls: committed 60, now 66"
    ]


def test_a_value_beyond_the_tolerance_is_named(committed):
    assert check_pages(small(values=(10.0, 31.0, 17.5)), committed) == [
        f"mini.csv: {NAME}2 rows moved by more than 0.5, most layer 3, cls: committed 20, now 17.5"
    ]
    assert check_pages(small(values=(10.0, 31.0, 17.5)), committed, Tolerance(score=3.0)) == []


def test_of_intervals_only_whether_they_are_there_is_compared():
    narrow = numbers(frame(unsure(layers([1.0, 2.0]), 3.0, {1: 1.0})))
    wide = numbers(frame(unsure(layers([1.0, 2.0]), 9.0, {2: 1.0}, maybe=[1])))
    bare = numbers(frame(layers([1.0, 2.0])))
    assert differences(narrow, wide) == []
    assert differences(narrow, bare) == [
        NAME + "2 rows with an interval, now without an interval, first layer 1, cls"
    ]
    assert differences(bare, wide) == [
        NAME + "2 rows without an interval, now with an interval, first layer 1, cls"
    ]


def test_cka_has_its_own_tolerance():
    assert differences(numbers(small()), numbers(small(cka=0.53))) == [
        "mini-clip, cka on mini-imagenet (standard): 1 row moved by more than 0.02, "
        "most layer 3, cls with mini-dino layer 3: committed 0.5, now 0.53"
    ]


def test_rows_that_came_or_went_are_counted():
    more = numbers(small())
    fewer = more[~((more["backbone"] == "mini-dino") & (more["layer"] == "1"))]
    assert differences(more, fewer) == [NAME + "1 row that the records lack; run the suite in full"]
    assert differences(fewer, more) == [NAME + "lacks 1 row of the records; write the leaderboard again"]


def test_scores_that_vanished_or_appeared_are_named():
    whole, gap = numbers(small()), numbers(small(values=(10.0, NAN, 20.0)))
    assert differences(whole, gap) == [NAME + "1 row scored, now empty, first layer 2, cls"]
    assert differences(gap, whole) == [NAME + "1 row empty, now scored, first layer 2, cls"]


def test_counts_and_partial_data_are_compared():
    assert differences(numbers(small()), numbers(small(n=399, partial=True))) == [
        NAME + "n was 400, is 399",
        NAME + "partial was False, is True",
    ]


def test_sets_of_data_by_one_name_are_told_apart():
    def of(*sets):
        return numbers(frame(*(layers([10.0, best], data=data) for data, best in sets)))

    first = ("aaaa1111", 30.0)
    one, both = of(first), of(first, ("bbbb2222", 50.0))
    assert sorted(zip(both["data"], both["value"], strict=True))[1::2] == [
        ("aaaa1111", "30.0000"),
        ("bbbb2222", "50.0000"),
    ]
    assert differences(both, both) == []
    moved = of(first, ("bbbb2222", 40.0))
    start = NAME.removesuffix(": ")
    assert differences(both, moved) == [
        f"{start}, data bbbb2222: 1 row moved by more than 0.5, most layer 2, cls: committed 50, now 40"
    ]
    assert differences(both, one) == [
        f"{start}, data bbbb2222: 2 rows that the records lack; run the suite in full"
    ]
    assert differences(one, both) == [
        f"{start}, data bbbb2222: lacks 2 rows of the records; write the leaderboard again"
    ]
    assert differences(one, of(("cccc3333", 30.0))) == []  # one set each: rendered elsewhere


def test_absent_files_are_named(tmp_path):
    sentences = check_pages(small(), tmp_path)
    assert sentences == [
        f"{name} is not in {tmp_path}; write the leaderboard again" for name in ("mini.md", "mini.csv")
    ]


def test_a_page_of_other_numbers_is_named(committed):
    page, digest = committed / "mini.md", text_digest((committed / "mini.csv").read_text())
    page.write_text(page.read_text().replace(digest, "0" * len(digest)))
    assert check_pages(small(), committed) == [
        "mini.md was not written with mini.csv; write the leaderboard again"
    ]


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "value\nmuch\n", "value\n1.0\n"])
def test_a_damaged_csv_is_a_sentence(committed, text):
    (committed / "mini.csv").write_text(text)
    [sentence] = check_pages(small(), committed)
    assert sentence.startswith("expected ")
    assert sentence.endswith("write it again")


def test_no_records_write_nothing(tmp_path):
    assert write_pages(to_frame([]), tmp_path) == []


def test_the_committed_numbers_have_the_columns_of_today():
    for path in tables_folder().glob("*.csv"):
        if not path.stem.endswith(".cka"):  # a matrix, whose columns are layers
            with path.open(encoding="utf-8") as file:
                columns = next(file).strip().split(",")
            assert columns == (INSIDE if path.stem.endswith(".inside") else TIDY)


def test_a_folder_keeps_no_page_and_no_figure_that_is_gone_and_every_file_of_its_user(committed):
    assert (committed / "mini.cka.md").is_file()
    assert [*(committed / "mini.cka").glob("*.svg")]
    own = [committed / "notes.md", committed / "mini" / "notes.txt", committed / "mini.cost.md"]
    for path in own:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    paths = write_pages(frame(layers([10.0])), committed)
    assert sorted(path for path in committed.rglob("*") if path.is_file()) == sorted([*paths, *own])
    assert not (committed / "mini.cka").exists()
