import numpy as np
import pyarrow.parquet as pq
import pytest

from layerboard.leaderboards.records.files import safe_name, scored_path, task_key
from layerboard.leaderboards.records.items import read_items, write_items
from layerboard.tasks.framework.base import Items, Statistic
from layerboard.zoo.errors import InputError
from tests.leaderboards.builder import NAN, measured

FIRST, SECOND, LAST = (1, "block", "cls"), (2, "block", "mean"), (2, "final", "cls")


def partition(labels, *starts) -> Items:
    keys = tuple(f"r{i}" for i in range(len(labels)))
    values = {"label": labels} | {f"start {rank}": start for rank, start in enumerate(starts, start=1)}
    arrays = {name: np.array(value, np.float64) for name, value in values.items()}
    statistics = {name: Statistic(name, "partition") for name in ("purity", "ARI")}
    return Items("parts", keys, ("image",) * len(keys), ("",) * len(keys), arrays, statistics)


def assert_same(found: Items, expected: Items) -> None:
    assert (found.unit, found.keys, found.clusters, found.strata) == (
        *(expected.unit, expected.keys, expected.clusters, expected.strata),
    )
    assert found.statistics == expected.statistics
    assert list(found.values) == list(expected.values)
    for name, values in expected.values.items():
        assert found.values[name].dtype == np.float64
        np.testing.assert_array_equal(found.values[name], values.astype(np.float32))


def test_a_file_gives_back_what_was_written_in_its_order(tmp_path):
    written = {LAST: measured([1, 0, NAN]), FIRST: measured([0.5, 0.25, 1]), SECOND: measured([3, 4])}
    write_items(written, tmp_path / "deep" / "a.parquet")
    found = read_items(tmp_path / "deep" / "a.parquet")
    assert list(found) == list(written)
    for place, items in written.items():
        assert_same(found[place], items)
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["a.parquet"]


def test_partitions_are_whole_numbers_in_the_file(tmp_path):
    written = {FIRST: partition([0, 1, 1], [1, 0, 0], [0, 0, 1])}
    write_items(written, tmp_path / "a.parquet")
    types = {field.name: str(field.type) for field in pq.read_schema(tmp_path / "a.parquet")}
    assert types["label"] == types["start 1"] == types["start 2"] == "int32"
    assert types["key"].startswith("dictionary<values=string")
    assert_same(read_items(tmp_path / "a.parquet")[FIRST], written[FIRST])


def test_a_column_that_a_place_does_not_measure_is_absent_and_one_without_values_is_not(tmp_path):
    written = {
        FIRST: measured([1, 0], metric="top-1"),
        SECOND: measured([NAN, NAN], metric="top-5"),
        LAST: partition([0, 1], [1, 0]),
    }
    write_items(written, tmp_path / "a.parquet")
    for place, items in read_items(tmp_path / "a.parquet").items():
        assert_same(items, written[place])


def test_only_the_places_that_are_asked_for_are_read(tmp_path):
    path = tmp_path / "a.parquet"
    write_items({place: measured([*place[:1], 1]) for place in (FIRST, SECOND, LAST)}, path)
    assert pq.ParquetFile(path).num_row_groups == 3
    found = read_items(path, [LAST, FIRST, (2, "block", "cls")])
    assert set(found) == {FIRST, LAST}
    assert_same(found[LAST], measured([2, 1]))
    assert read_items(path, [(7, "block", "cls")]) == read_items(path, []) == {}


def test_nothing_measured_is_a_file_without_rows(tmp_path):
    for number, written in enumerate(({}, {FIRST: measured([])})):
        write_items(written, tmp_path / f"{number}.parquet")
        assert read_items(tmp_path / f"{number}.parquet") == {}


def test_a_metric_is_the_same_statistic_of_every_layer(tmp_path):
    with pytest.raises(ValueError, match=r"top-1 is \('top-1', 'items'\) of one layer and Statistic"):
        write_items({FIRST: measured([1]), SECOND: measured([1], over="clusters")}, tmp_path / "a.parquet")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", ["cut", "flipped", "other", "bare", "absent"])
def test_a_damaged_file_is_named_in_one_sentence(tmp_path, damage):
    path = tmp_path / "a.parquet"
    write_items({FIRST: measured([1, 0])}, path)
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-20])
    elif damage == "flipped":
        content = bytearray(path.read_bytes())
        content[60] ^= 1
        path.write_bytes(content)
    elif damage == "other":
        path.write_text("key,value\n")
    elif damage == "bare":
        pq.write_table(pq.read_table(path).replace_schema_metadata({}), path)
    else:
        path.unlink()
    with pytest.raises(InputError, match=r"expected per-item .*a\.parquet.*delete the file and run again"):
        read_items(path)


def test_files_are_named_after_backbones_and_task():
    key = task_key("knn", "imagenet", "standard")
    assert scored_path(key, "a/b", "c").as_posix() == "a__b--c/knn.imagenet.standard.parquet"
    assert safe_name("/abs/path/") == "abs__path"
    assert safe_name("猫.jpg_") == "猫.jpg_"


@pytest.mark.parametrize(
    "name", ["./own-vit", "../own-vit", ".own-vit", "own\n-vit", "own-vit" * 60, ".", "own:vit", "own-vit. "]
)
def test_names_that_cannot_stand_as_they_are_give_visible_files_of_their_own(name):
    found = safe_name(name)
    assert found != safe_name("own-vit")
    assert found[0] not in "._"
    assert found.isprintable()
    assert not set(found) & set('<>:"|?*')
    assert len(found) < 200
    assert found.startswith("own") or name == "."
