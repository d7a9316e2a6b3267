"""Temporary files go away with their writers, and with nobody else's."""

import os
import sys
import time
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from layerboard.zoo import atomic
from layerboard.zoo.atomic import PARTIAL, remove_leftovers, temporary_folder, whole_file

HOUR = 3600.0


def age(path: Path, seconds: float = HOUR) -> None:
    """Make a file look old."""
    then = time.time() - seconds
    os.utime(path, (then, then))


def require_age_to_tell(remove: Callable[[list[Path]], None], folder: Path) -> None:
    """What is older than a day is removed."""
    young, old = folder / f"{PARTIAL}young", folder / f"{PARTIAL}old"
    for path, hours in ((young, 1), (old, 25)):
        path.write_bytes(b"half")
        age(path, hours * HOUR)
    remove([folder])
    assert [path.name for path in folder.iterdir()] == [young.name]


def test_what_a_killed_writer_left_is_removed_and_other_files_stay(tmp_path: Path) -> None:
    left = tmp_path / "below" / f"{PARTIAL}abc"
    folder = tmp_path / f"{PARTIAL}folder"
    fresh, other = tmp_path / f"{PARTIAL}new", tmp_path / "other"
    (folder / "inside").mkdir(parents=True)
    left.parent.mkdir()
    for path in (left, fresh, other):
        path.write_bytes(b"half")
    for path in (left, folder, other):
        age(path)
    remove_leftovers([tmp_path, tmp_path / "none"])
    assert sorted(path.name for path in tmp_path.rglob("*")) == sorted(["below", fresh.name, "other"])


def test_what_is_being_written_stays(tmp_path: Path) -> None:
    with whole_file(tmp_path / "file") as draft, temporary_folder(tmp_path) as folder:
        for path in (draft, folder):
            age(path, 48 * HOUR)
        remove_leftovers([tmp_path])
        assert draft.exists()
        assert folder.exists()
        draft.write_text("whole")
    assert (tmp_path / "file").read_text() == "whole"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_where_locks_do_not_work_it_is_the_age_that_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(handle: int, operation: int) -> None:
        raise OSError("no locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    require_age_to_tell(remove_leftovers, tmp_path)


def test_windows_has_no_such_locks_and_renames_no_open_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setitem(sys.modules, "fcntl", None)
    spec = spec_from_file_location("atomic_on_windows", atomic.__file__)
    assert spec is not None and spec.loader is not None  # noqa: PT018
    there = module_from_spec(spec)
    spec.loader.exec_module(there)
    replace = os.replace

    def closed(source: Path, target: Path) -> None:
        handles = [os.readlink(handle) for handle in Path("/proc/self/fd").iterdir() if handle.is_symlink()]
        assert str(source) not in handles
        replace(source, target)

    monkeypatch.setattr(os, "replace", closed)
    with there.temporary_folder(tmp_path) as folder:
        there.write_whole(folder / "file", "whole")
        assert (folder / "file").read_text() == "whole"
    require_age_to_tell(there.remove_leftovers, tmp_path)
