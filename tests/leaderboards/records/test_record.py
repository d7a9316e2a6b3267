import numpy as np
import pandas as pd
import pytest

from layerboard.leaderboards.board.frames import latest
from layerboard.leaderboards.records.checksum import write_checked
from layerboard.leaderboards.records.record import (
    COLUMNS,
    add_suite,
    of_suite,
    read_frame,
    read_records,
    suites_of,
    to_frame,
)
from layerboard.zoo.errors import InputError
from tests.leaderboards.builder import NAN, frame, layers, record


def test_a_file_gives_back_what_was_written(tmp_path):
    written = frame(layers([1.5, NAN, 3.0], 4.0))
    write_checked(written, tmp_path / "deep" / "a.parquet")
    pd.testing.assert_frame_equal(read_records([tmp_path]), written)


def test_files_of_several_folders_are_joined_in_sorted_order(tmp_path):
    for name in ("b", "a"):
        write_checked(to_frame([record(backbone=name)]), tmp_path / name / "one.parquet")
    found = read_records([tmp_path])
    assert list(found["backbone"]) == ["a", "b"]
    assert tuple(found.columns) == COLUMNS
    assert found["trained"].dtype == np.bool_


def test_a_failed_write_keeps_the_old_file_and_leaves_nothing(tmp_path, monkeypatch):
    path = tmp_path / "a.parquet"
    write_checked(frame([record()]), path)
    before = path.read_bytes()

    def fail(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_checked(frame([record(value=1.0)]), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("beside", [False, True])
def test_a_table_of_something_else_is_named_also_among_records(tmp_path, beside):
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "b.parquet")
    if beside:
        write_checked(frame([record()]), tmp_path / "a.parquet")
    with pytest.raises(
        InputError, match=r"b\.parquet but found a table without suite, backbone, .*; remove that file"
    ):
        read_records([tmp_path])


def test_of_earlier_versions_only_fields_with_defaults_may_be_missing(tmp_path):
    path = tmp_path / "a.parquet"
    write_checked(frame([record()]).drop(columns="ci_low"), path)
    assert np.isnan(read_frame(path)["ci_low"]).all()
    write_checked(frame([record()]).drop(columns="metric"), path)
    with pytest.raises(InputError, match=r"a\.parquet but found a table without metric; remove that file"):
        read_records([tmp_path])


def test_no_records_say_what_writes_them(tmp_path):
    with pytest.raises(InputError, match=r"found none; `layerboard run` writes them"):
        read_records([tmp_path])


def test_records_may_belong_to_several_suites():
    both = add_suite(to_frame([record(suite="mini", backbone="a")]), "b, c")
    assert add_suite(both, "mini").equals(both)
    records = pd.concat([both, to_frame([record(suite="mini", backbone="b")])], ignore_index=True)
    assert suites_of(records) == ["b, c", "mini"]
    assert list(of_suite(records, "mini")["backbone"]) == ["a", "b"]
    other = of_suite(records, "b, c")
    assert list(other["backbone"]) == ["a"]
    assert list(other["suite"]) == ["b, c"]
    assert of_suite(records, "c").empty


def test_of_each_key_the_last_one_is_kept_in_the_order_of_keys():
    random = np.random.default_rng(0)
    rows = [
        record(
            backbone=str(random.choice(["b", "B", "a-", "a", "é"])),
            layer=int(random.choice([2, 10, 9])),
            head=int(random.choice([-1, 0])),
            date=str(random.choice(["2026", "2027"])),
            fingerprint=str(random.choice(["f", "g"])),
            value=float(random.choice([9.0, 10.0])),
        )
        for _ in range(120)
    ]
    last = {}
    for row in sorted(rows, key=lambda row: (row.date, row.fingerprint, str(row.value))):
        last[row.backbone, row.layer, row.head] = row
    pd.testing.assert_frame_equal(
        latest(to_frame(rows)), to_frame([last[key] for key in sorted(last)]), check_dtype=False
    )
    once = latest(to_frame(rows))
    assert latest(once) is once
