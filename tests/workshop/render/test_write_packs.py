"""Packs are written reproducibly, and have no shard that is not whole."""

import os
from pathlib import Path

import pytest

from layerboard.tasks.datasets.packs.pack import read_shard
from layerboard.zoo.atomic import file_sha256
from layerboard.zoo.errors import InputError
from workshop.render import write_packs as writing
from workshop.render.write_packs import PackedFile, packed_files, write_dataset, write_shard


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Four files of two classes."""
    for name in ("b/2", "a/1", "b/10", "a/0"):
        path = tmp_path / "data" / "d" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
    return tmp_path / "data"


def test_equal_files_give_an_equal_pack_whatever_the_shards(data: Path, tmp_path: Path) -> None:
    files = packed_files(data, data / "d", ("a", "b"))
    assert [(each.path, each.label) for each in files] == [
        *(("d/a/0", 0), ("d/a/1", 0), ("d/b/10", 1), ("d/b/2", 1))
    ]
    packs = {"x": {"s": files}, "y": {"s": files}, "z": {"s": files[:1], "t": files[1:]}}
    for seconds, (name, shards) in enumerate(packs.items()):
        for path in data.rglob("*"):
            os.utime(path, (seconds, 1))
        write_dataset(data, tmp_path / name, "d", shards, ("a", "b"))
    assert file_sha256(tmp_path / "x/d/s.arrow") == file_sha256(tmp_path / "y/d/s.arrow")
    assert read_shard(tmp_path / "z/d/t.arrow")["path"].to_pylist() == [each.path for each in files[1:]]


def test_a_dataset_that_is_there_is_kept(data: Path, tmp_path: Path) -> None:
    files = packed_files(data, data / "d")
    write_dataset(data, tmp_path / "pack", "one", {"s": files})
    before = (tmp_path / "pack/one/s.arrow").stat().st_mtime_ns
    for name in ("one", "two"):
        write_dataset(data, tmp_path / "pack", name, {"s": files})
    assert (tmp_path / "pack/one/s.arrow").stat().st_mtime_ns == before
    assert {path.name for path in (tmp_path / "pack").iterdir()} == {"one", "two"}


def test_groups_are_small_and_each_row_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "GROUP_ROWS", 3)
    monkeypatch.setattr(writing, "GROUP_BYTES", 1000)
    sizes = [0, 1, 2000, 5, 999, 3, 4, 70_000, 0, 1]
    rows = []
    for number, size in enumerate(sizes):
        (tmp_path / str(number)).write_bytes(os.urandom(size))
        rows.append(PackedFile(str(number), size))
    write_shard(tmp_path / "s.arrow", tmp_path, rows)
    shard = read_shard(tmp_path / "s.arrow")
    assert shard["bytes"].num_chunks == 4
    assert [len(content.as_py()) for content in shard["bytes"]] == sizes
    for number, content in enumerate(shard["bytes"]):
        assert content.as_py() == (tmp_path / str(number)).read_bytes()


def test_a_shard_that_changes_while_it_is_packed_is_not_in_the_pack(data: Path, tmp_path: Path) -> None:
    files = packed_files(data, data / "d")
    (data / "d/b/2").write_bytes(b"longer")
    with pytest.raises(InputError, match=r"changed from 3 to 6 bytes; pack again"):
        write_dataset(data, tmp_path / "pack", "d", {"s": files[:2], "t": files[2:]})
    (data / "d/b/2").unlink()
    with pytest.raises(InputError, match=r"cannot read .*2: No such file"):
        write_dataset(data, tmp_path / "pack", "d", {"s": files[:2], "t": files[2:]})
    assert [path.name for path in (tmp_path / "pack/d").iterdir()] == ["s.arrow"]
