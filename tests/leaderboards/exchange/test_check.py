"""A baseline that somebody keeps: what moved, by how much, and what is none of its business."""

import shutil

import pytest

from layerboard.leaderboards.exchange.check import cut_files, moved_numbers, read_baseline, tidy_records
from layerboard.leaderboards.records.checksum import write_checked
from layerboard.leaderboards.records.key import Tolerance
from layerboard.zoo.errors import InputError
from tests.leaderboards.builder import NAN, frame, layers, pair
from tests.leaderboards.shown import write_pages

CLIP = {"backbone": "mini-clip", "family": "CLIP"}


def numbers(dino=(50.0, 60.0), clip=(40.0,), cka=0.5, **changes):
    own = [layers(list(dino), **changes), layers(list(clip), **CLIP)]
    return tidy_records(frame(*own, [pair("mini-clip", 1, "mini-dino", len(dino), cka, depth=1)]))


BASELINE = numbers()


def moved(now, *backbones, tolerance=1.0):
    return moved_numbers(BASELINE, now, backbones, Tolerance(score=tolerance))[1]


def test_equal_numbers_have_not_moved():
    count, found = moved_numbers(BASELINE, numbers(), (), Tolerance())
    assert (count, len(found)) == (4, 0)


def test_what_moved_is_told_the_furthest_first():
    found = moved(numbers(dino=(47.0, 62.0), clip=(41.0,)))
    assert found["moved"].tolist() == ["-3", "+2"]
    first, _ = found.to_dict("records")
    assert (first["backbone"], first["layer"], first["moved"]) == ("mini-dino", "1 cls", "-3")
    assert (first["baseline"], first["now"], first["why"]) == ("50.0000", "47.0000", "by more than 1")


def test_only_the_backbones_that_are_asked_for_count():
    now = numbers(dino=(47.0, 60.0), clip=(20.0,), cka=0.6)
    assert [score.split()[0] for score in moved(now, "mini-dino")["score"]] == ["knn", "cka"]
    assert len(moved(now, "mini-*")) == 3
    with pytest.raises(InputError, match="there is no backbone 'mini-dnio'; did you mean 'mini-dino'"):
        moved(now, "mini-dnio")


def test_cka_has_a_tolerance_of_its_own():
    assert [score.split()[0] for score in moved(numbers(cka=0.53))["score"]] == ["cka"]
    assert moved(numbers(cka=0.51)).empty


def test_numbers_that_are_gone_or_of_other_items_count_and_new_ones_do_not():
    reasons = moved(numbers(dino=(50.0,)))["why"]
    assert [*reasons] == ["not measured on these images"] * 2  # and the CKA of that layer
    assert [*moved(numbers(data="d2"))["why"]] == ["not measured on these images"] * 2
    assert [*moved(numbers(n=300))["why"]] == ["of 300 items, before of 400"] * 2
    assert [*moved(numbers(dino=(NAN, 60.0)))["why"]] == ["has no score now"]
    assert moved_numbers(BASELINE[BASELINE["layer"] == "1"], BASELINE, (), Tolerance())[1].empty


def test_a_baseline_is_an_output_or_its_tables(tmp_path):
    records = frame(layers([50.0, 60.0], suite="mini\nother"), layers([40.0], **CLIP))
    write_checked(records, tmp_path / "out" / "records" / "any.parquet")
    write_pages(records, tmp_path / "csv")
    shutil.copytree(tmp_path / "csv", tmp_path / "old" / "tables")
    found = [read_baseline(tmp_path / name) for name in ("out", "csv", "old")]
    assert [len(one) for one in found] == [3, 3, 3]
    assert moved_numbers(found[0], found[1], (), Tolerance(score=0))[1].empty
    assert moved_numbers(found[2], found[0], (), Tolerance(score=0))[1].empty


def test_a_baseline_that_nothing_vouches_for_is_said(tmp_path):
    records = frame(layers([50.0, 60.0], suite="mini\nother"), layers([40.0], **CLIP))
    write_pages(records, tmp_path)
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
