"""What the columns of a file of records may contain."""

from pathlib import Path

import pytest

from layerboard.leaderboards.blocks.display import page_problem
from layerboard.leaderboards.exchange.merge import results_of
from layerboard.leaderboards.records import fields
from layerboard.leaderboards.records.checksum import write_checked
from layerboard.leaderboards.records.record import read_frame
from layerboard.zoo.errors import DamagedError
from tests.leaderboards.builder import frame, layers, record

NAME = Path("mini-dino") / "knn.mini-imagenet.standard.parquet"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"dtype": "float8"}, "there is no number format 'float8'"),
        ({"depth": 1_000_000}, "its depth is 1000000, expected 0 to 1,000"),
        ({"layer": -2}, "its layer is -2"),
        ({"input_size": 10**7}, "its input_size is 10000000"),
        ({"n": -1}, "its n is -1"),
        ({"depth": 1.5}, "its column depth is double, expected int in every row"),
        ({"value": "97"}, "its column value is .*string, expected float in every row"),
        ({"trained": 1}, "its column trained is int64, expected bool in every row"),
        ({"backbone": 7}, "its column backbone is int64, expected str in every row"),
        ({"coverage": None}, "its column coverage is null, expected str in every row"),
        ({"reason": "x" * 70_000}, "its column reason has a text of more than 65,536 bytes"),
        ({"tap": f"1+{10**9}"}, "there is no layer"),
        ({"tap": "1+x"}, ".*'x'; delete the file and run again"),
        ({"tap": "blok"}, "there is no tap 'blok'"),
    ],
)
def test_a_field_that_no_run_writes_is_damage(tmp_path: Path, changes: dict[str, object], words: str) -> None:
    rows = frame(layers([1.0, 2.0])).assign(**changes)
    write_checked(rows, tmp_path / "a.parquet")
    with pytest.raises(DamagedError, match=f"cannot read records .*a.parquet: {words}"):
        read_frame(tmp_path / "a.parquet")


def test_large_tables_of_little_bytes_are_not_unpacked(tmp_path: Path) -> None:
    rows = frame([record()])
    many = rows.loc[rows.index.repeat(200_000)]
    write_checked(many, tmp_path / "a.parquet")
    with pytest.raises(DamagedError, match=r"it has 200,000 rows .*, more than any run writes"):
        read_frame(tmp_path / "a.parquet")
    (tmp_path / "b.parquet").symlink_to("/dev/zero")
    with pytest.raises(DamagedError, match="it is a pipe, a device or a socket"):
        read_frame(tmp_path / "b.parquet")


def test_texts_count_as_often_as_they_are_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = frame([record()]).assign(reason="x" * 1000)
    write_checked(rows.loc[rows.index.repeat(100)], tmp_path / "a.parquet")
    monkeypatch.setattr(fields, "MOST_BYTES", 100_000)
    assert len(read_frame(tmp_path / "a.parquet")) == 100
    monkeypatch.setattr(fields, "MOST_BYTES", 99_999)
    with pytest.raises(DamagedError, match="its column reason has 100,000 bytes, more than any run writes"):
        read_frame(tmp_path / "a.parquet")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"backbone": ["mini-dino", "mini-clip"]}, "it is of 2 backbones or tasks, expected one"),
        ({"task": ["knn", "fewshot"]}, "it is of 2 backbones or tasks"),
        ({"tap": ["block", "1+2"]}, "it is of 2 backbones or tasks"),
        ({"backbone": "mini-clip"}, "it is not of the backbone and task that its path names"),
        ({"dataset": "other"}, "it is not of the backbone and task that its path names"),
        ({"other": "mini-clip"}, "it is not of the backbone and task that its path names"),
        ({"layer": 1}, "it has a number twice"),
        ({"date": "2099-01-01T00:00:00+00:00"}, "the date 2099-01-01T00:00:00.00:00 is in the future"),
        ({"date": "yesterday"}, "'yesterday' is no date"),
    ],
)
def test_a_file_is_of_the_one_backbone_and_task_of_its_path(tmp_path: Path, change, words: str) -> None:  # type: ignore[no-untyped-def]
    write_checked(frame(layers([1.0, 2.0])), tmp_path / "records" / NAME)
    assert len(results_of(tmp_path)) == 1
    write_checked(frame(layers([1.0, 2.0])).assign(**change), tmp_path / "records" / NAME)
    with pytest.raises(DamagedError, match=words):
        results_of(tmp_path)


def test_a_suite_has_a_page_of_its_own() -> None:
    for suite in ("literature", "LITERATURE", "mini!", "mini.inside", "Mini"):
        assert "the page of the suite" in page_problem(["mini", suite])
    assert page_problem(["mini", "mini-referee", "standard"]) == ""
