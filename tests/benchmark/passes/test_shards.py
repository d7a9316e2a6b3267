"""Shards are there whole or not at all, and damage is found."""

import shutil
import threading
from pathlib import Path

import numpy as np
import pytest
import torch

from layerboard.benchmark.passes.shards import Shards


def filled(folder: Path, count: int = 3) -> Shards:
    store = Shards(folder, count)
    for index in range(count):
        store.write(index, {"cls.1": torch.full((2, 4), float(index)), "shown": torch.ones(2).byte()})
    return store


def test_reads_what_it_wrote(tmp_path: Path) -> None:
    filled(tmp_path)
    store = Shards(tmp_path, 3)
    assert store.missing == ()
    assert store.names(1) == ("cls.1", "shown")
    np.testing.assert_array_equal(store.read(2, "cls.1"), np.full((2, 4), 2.0))
    assert set(store.arrays(0)) == {"cls.1", "shown"}


def test_missing_shards_are_named(tmp_path: Path) -> None:
    filled(tmp_path, 2)
    assert Shards(tmp_path, 4).missing == (2, 3)
    assert Shards(tmp_path / "nowhere", 2).missing == (0, 1)


@pytest.mark.parametrize("damage", ["truncate", "flip"])
def test_a_damaged_shard_is_missing_and_removed(tmp_path: Path, damage: str) -> None:
    filled(tmp_path)
    (victim,) = tmp_path.glob("000001.*")
    payload = bytearray(victim.read_bytes())
    if damage == "truncate":
        payload = payload[:-3]
    else:
        payload[-5] ^= 0xFF
    victim.write_bytes(payload)
    assert Shards(tmp_path, 3).missing == (1,)
    assert not victim.exists()


def test_shards_of_another_folder_or_number_are_missing_and_removed(tmp_path: Path) -> None:
    for name in ("mini-dino", "mini-moco"):
        filled(tmp_path / name)
    other, own = (next((tmp_path / name).glob("000001.*")) for name in ("mini-dino", "mini-moco"))
    own.unlink()
    moved = (other.rename(own.with_name(other.name)), own.with_name(other.name.replace("000001", "000003")))
    shutil.copyfile(moved[0], moved[1])
    assert Shards(tmp_path / "mini-moco", 4).missing == (1, 3)
    assert not any(path.exists() for path in moved)


def test_files_of_others_and_of_killed_writers_are_left_alone(tmp_path: Path) -> None:
    filled(tmp_path)
    names = ("._x.safetensors", "a.b.safetensors", "000009.zzzzzzzz.safetensors", ".partial-abc")
    for name in names:
        (tmp_path / name).write_text("mine")
    (tmp_path / "000003.00000000.safetensors").mkdir()
    assert Shards(tmp_path, 4).missing == (3,)
    assert {(tmp_path / name).read_text() for name in names} == {"mine"}


def test_two_writers_of_one_shard_do_no_harm(tmp_path: Path) -> None:
    threads = [threading.Thread(target=filled, args=(tmp_path,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Shards(tmp_path, 3).missing == ()
    assert len(list(tmp_path.iterdir())) == 3
