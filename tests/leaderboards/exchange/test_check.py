"""A baseline that somebody keeps: what moved, by how much, and what is none of its business."""

import shutil

import pytest

from layerboard.leaderboards.exchange.check import (
    SHOWN,
    cut_files,
    moved_table,
    read_baseline,
    regression_check,
    tidy_records,
)
from layerboard.leaderboards.records.checksum import write_checked
from layerboard.leaderboards.records.key import Tolerance
from layerboard.zoo.errors import InputError
from tests.leaderboards.builder import NAN, frame, layers, pair
from tests.leaderboards.shown import write_pages

CLIP = {"backbone": "mini-clip", "family": "CLIP"}


def numbers(dino=(50.0, 60.0), clip=(40.0,), cka=0.5, **changes):
    own = [layers(list(dino), **changes), layers(list(clip), **CLIP)]
    return tidy_records(frame(*own, [pair("mini-clip", 1, "mini-dino", len(dino), cka, depth=1)]))


def moved(now, *backbones, tolerance=1.0):
    return regression_check(numbers(), now, backbones, Tolerance(score=tolerance))[1]


def test_equal_numbers_have_not_moved():
    assert regression_check(numbers(), numbers(), (), Tolerance()) == (4, ())


def test_what_moved_is_told_the_furthest_first():
    found = moved(numbers(dino=(47.0, 62.0), clip=(41.0,)))
    assert [(one.row["layer"], one.distance) for one in found] == [("1", 3.0), ("2", 2.0)]
    first, _ = moved_table(found).to_dict("records")
    assert (first["backbone"], first["layer"], first["moved"]) == ("mini-dino", "1 cls", "-3")
    assert (first["baseline"], first["now"], first["why"]) == ("50.0000", "47.0000", "by more than 1")


def test_only_the_backbones_that_are_asked_for_count():
    now = numbers(dino=(47.0, 60.0), clip=(20.0,), cka=0.6)
    assert [one.row["task"] for one in moved(now, "mini-dino")] == ["knn", "cka"]
    assert len(moved(now, "mini-*")) == 3
    with pytest.raises(InputError, match="there is no backbone 'mini-dnio'; did you mean 'mini-dino'"):
        moved(now, "mini-dnio")


def test_cka_has_a_tolerance_of_its_own():
    assert [one.row["task"] for one in moved(numbers(cka=0.53))] == ["cka"]
    assert moved(numbers(cka=0.51)) == ()


def test_numbers_that_are_gone_or_of_other_items_count_and_new_ones_do_not():
    reasons = [one.reason for one in moved(numbers(dino=(50.0,)))]
    assert reasons == ["not measured on these images"] * 2  # and the CKA of that layer
    assert [one.reason for one in moved(numbers(data="d2"))] == ["not measured on these images"] * 2
    assert [one.reason for one in moved(numbers(n=300))] == ["of 300 items, before of 400"] * 2
    assert [one.reason for one in moved(numbers(dino=(NAN, 60.0)))] == ["has no score now"]
    baseline = numbers()
    assert regression_check(baseline[baseline["layer"] == "1"], numbers(), (), Tolerance())[1] == ()


def test_of_many_the_furthest_are_shown():
    many = tidy_records(frame(layers([float(layer) for layer in range(30)])))
    now = tidy_records(frame(layers([3.0 * layer for layer in range(30)])))
    _, found = regression_check(many, now, (), Tolerance())
    assert len(found) == 29
    assert moved_table(found)["layer"].tolist() == [f"{layer} cls" for layer in range(30, 30 - SHOWN, -1)]


def test_a_baseline_is_an_output_or_its_tables(tmp_path):
    records = frame(layers([50.0, 60.0], suite="mini\nother"), layers([40.0], **CLIP))
    write_checked(records, tmp_path / "out" / "records" / "any.parquet")
    write_pages(records, tmp_path / "csv", endings=["csv"])
    shutil.copytree(tmp_path / "csv", tmp_path / "old" / "tables")
    found = [read_baseline(tmp_path / name) for name in ("out", "csv", "old")]
    assert [len(one) for one in found] == [3, 3, 3]
    assert regression_check(found[0], found[1], (), Tolerance(score=0))[1] == ()
    assert regression_check(found[2], found[0], (), Tolerance(score=0))[1] == ()


def test_a_baseline_that_nothing_vouches_for_is_said(tmp_path):
    records = frame(layers([50.0, 60.0], suite="mini\nother"), layers([40.0], **CLIP))
    write_pages(records, tmp_path, endings=["csv"])
    for path in tmp_path.iterdir():
        if path.suffix != ".csv":
            path.unlink()  # what tells a whole file from a cut one
    cut, unsealed = cut_files(tmp_path)
    assert cut == []
    assert unsealed.startswith("Nothing says whether numbers were cut from ")


def test_a_baseline_that_is_none_is_named(tmp_path):
    with pytest.raises(InputError, match=f"a baseline .* in {tmp_path}, found none"):
        read_baseline(tmp_path)
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="expected a leaderboard table in"):
        read_baseline(tmp_path)
