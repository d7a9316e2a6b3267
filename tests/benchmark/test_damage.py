"""Records and what belongs to them: what is not as it was written is computed again, from what is stored."""

import shutil
from pathlib import Path

from layerboard.leaderboards.records.files import scored_path, task_key
from layerboard.leaderboards.records.record import read_frame
from tests.benchmark.conftest import BACKBONES, Whole
from tests.benchmark.runs import assert_same_records, run, run_from_store, shards

KNN = scored_path(task_key("knn", "imagenet", "standard"), "mini-fs")
DAVIS = scored_path(task_key("davis", "davis-2017-val", "standard"), "mini-resnet")


def flip(path: Path, place: int) -> None:
    """Flip a bit of a byte."""
    content = bytearray(path.read_bytes())
    content[place] ^= 4
    path.write_bytes(content)


def test_what_is_damaged_or_gone_is_written_again(again: Path, data: Path, whole: Whole) -> None:
    out = again / "out"
    before = {path: path.read_bytes() for path in (out / "items").rglob("*.parquet")}
    (out / "items" / KNN).unlink()
    flip(out / "items" / DAVIS, 60)
    flip(out / "records" / scored_path(task_key("spair", "spair-71k-test", "standard"), "mini-fs"), 700)
    flip(out / "records" / scored_path(task_key("cka", "imagenet", "standard"), "mini-fs", "mini-resnet"), 99)
    scored = out / "records"
    (scored / scored_path(task_key("cluster-image", "imagenet", "standard"), "mini-fs")).unlink()
    (scored / scored_path(task_key("retrieval", "rparis6k", "standard"), "mini-fs")).write_bytes(
        b"no parquet"
    )
    (scored / scored_path(task_key("cka", "imagenet", "standard"), "mini-fs", "mini-fs")).write_bytes(b"PAR1")
    records = run_from_store(again, BACKBONES, data=data)
    assert_same_records(records, whole.records)
    assert {path: path.read_bytes() for path in before} == before


def test_a_folder_in_the_place_of_a_shard_is_named(tmp_path: Path, data: Path) -> None:
    run(tmp_path, ["mini-random"], "knn", data=data)
    taken = sorted(shards(tmp_path / "cache"))
    for path in taken:
        path.unlink()
        (path / "inside").mkdir(parents=True)
    shutil.rmtree(tmp_path / "out")
    failures = run(tmp_path, ["mini-random"], "knn", data=data, fails=True).attrs["failures"]
    assert failures
    for failure in map(str, failures):
        assert "expected a file at '" in failure
        assert failure.endswith("where there is a folder; remove it, or choose another name")


def test_records_of_an_earlier_version_without_their_items_are_computed_again(
    again: Path, data: Path, whole: Whole
) -> None:
    path = again / "out" / "records" / KNN
    read_frame(path).drop(columns="data").to_parquet(path, index=False)
    (again / "out" / "items" / KNN).unlink()
    assert_same_records(run(again, BACKBONES, data=data), whole.records)
    assert (again / "out" / "items" / KNN).is_file()
