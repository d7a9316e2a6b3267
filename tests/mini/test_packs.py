"""The mini suite's datasets in the package: whole, read in place, and said where they are not."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from layerboard.benchmark.plan.suites import MINI_SUITE
from layerboard.mini import packs
from layerboard.mini.checkpoints import WEIGHTS
from layerboard.tasks.datasets.base import images_of
from layerboard.tasks.datasets.packs.pack import open_pack, read_shard
from layerboard.zoo.errors import InputError


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the packs, which an installation may have damaged."""
    shutil.copytree(packs.DATA, tmp_path / "data")
    monkeypatch.setattr(packs, "DATA", tmp_path / "data")
    return tmp_path / "data"


def test_every_byte_and_every_dataset_is_there() -> None:
    pack = open_pack(f"hf:{packs.DATA}")
    paths = [path for file in packs.DATA.rglob("*.arrow") for path in read_shard(file)["path"].to_pylist()]
    assert all(len(pack.read(path)) == pack.stamp(path)[0] for path in paths)
    root = packs.packaged_data()
    for entry in MINI_SUITE.datasets:
        assert not entry.read(root).coverage.partial, entry.name


def test_data_and_weights_are_small() -> None:
    folders = (packs.DATA, WEIGHTS)
    files = (path for folder in folders for path in folder.rglob("*") if path.is_file())
    assert sum(path.stat().st_size for path in files) < 40e6


def test_pictures_are_of_several_classes() -> None:
    pictures = packs.packaged_pictures(8)
    assert {picture.mode for picture in pictures} == {"RGB"}
    assert len({np.asarray(picture).tobytes() for picture in pictures}) == 8


def test_nothing_is_written_beside_the_packs(copied: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in copied.rglob("*")}
    root = packs.packaged_data()
    assert MINI_SUITE.datasets[0].read(root)
    assert before == {path: path.stat().st_mtime_ns for path in copied.rglob("*")}


@pytest.mark.parametrize("damage", ["missing", "without a shard", "shorter"])
def test_a_damaged_installation_says_so(copied: Path, damage: str) -> None:
    (shard,) = (copied / "mini-coco").iterdir()
    if damage == "missing":
        shutil.rmtree(copied)
    elif damage == "without a shard":
        shard.unlink()
    else:
        shard.write_bytes(shard.read_bytes()[:-8])
    with pytest.raises(
        InputError, match=r"the mini suite's data cannot be read: .*; install the package again"
    ):
        packs.packaged_data()


def test_other_pixels_are_not_read(copied: Path) -> None:
    (shard,) = (copied / "mini-davis").iterdir()
    content = bytearray(shard.read_bytes())
    content[content.index(b"\xff\xd8\xff") + 2000] ^= 1
    shard.write_bytes(content)
    root = packs.packaged_data()
    with pytest.raises(InputError, match="found other bytes"):
        [sample.open() for sample in images_of(MINI_SUITE.datasets[2].read(root))]
