"""Writing: atomic, repeatable, and never over somebody else's files."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tasks.mini import write
from tasks.mini.counts import TOTAL_IMAGES
from tasks.mini.writers import WRITERS
from tasks.mini.writers.base import Note, Writer, save_text
from zoo.errors import InputError


def _render(root: Path, unit: int) -> list[Note]:
    save_text(root / "toy" / f"{unit}.txt", [str(unit)])
    return [{"unit": unit}]


def _finish(root: Path, notes: Sequence[Sequence[Note]]) -> None:
    save_text(root / "toy" / "all.txt", [str(note["unit"]) for unit in notes for note in unit])


def _fail(root: Path, unit: int) -> list[Note]:
    raise OSError("disk full")


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "WRITERS", (Writer("toy", (1, 3, 2), _render, _finish),))


def test_units_add_up_to_the_total() -> None:
    assert sum(sum(writer.images) for writer in WRITERS) == TOTAL_IMAGES


@pytest.mark.usefixtures("toy")
def test_notes_reach_finish_in_unit_order(tmp_path: Path) -> None:
    write.write_mini_datasets(tmp_path / "data", workers=0)
    assert (tmp_path / "data" / "toy" / "all.txt").read_text() == "0\n1\n2\n"
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
    assert write.is_complete(tmp_path / "data")


@pytest.mark.usefixtures("toy")
def test_a_complete_folder_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write.write_mini_datasets(tmp_path / "data", workers=0)
    monkeypatch.setattr(write, "WRITERS", (Writer("toy", (1,), _fail, _finish),))
    seen: list[tuple[int, int]] = []
    write.write_mini_datasets(tmp_path / "data", workers=0, progress=lambda *step: seen.append(step))
    assert seen == [(TOTAL_IMAGES, TOTAL_IMAGES)]


@pytest.mark.usefixtures("toy")
def test_an_older_version_is_replaced(tmp_path: Path) -> None:
    root = tmp_path / "data"
    root.mkdir()
    (root / write.MARKER).write_text("0\n")
    (root / "stale.txt").write_text("old")
    write.write_mini_datasets(root, workers=0)
    assert write.is_complete(root)
    assert not (root / "stale.txt").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


@pytest.mark.usefixtures("toy")
def test_the_slower_of_two_processes_keeps_the_first_ones_files(tmp_path: Path) -> None:
    root = tmp_path / "data"

    def other(done: int, total: int) -> None:
        if not root.exists():
            write.write_mini_datasets(root, workers=0)
            (root / "first.txt").write_text("first")

    write.write_mini_datasets(root, workers=0, progress=other)
    assert (root / "first.txt").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


@pytest.mark.usefixtures("toy")
def test_foreign_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="expected an empty or no folder"):
        write.write_mini_datasets(tmp_path, workers=0)


def test_a_failure_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "WRITERS", (Writer("toy", (1,), _fail, _finish),))
    with pytest.raises(OSError, match="disk full"):
        write.write_mini_datasets(tmp_path / "data", workers=0)
    assert list(tmp_path.iterdir()) == []


def test_workers_find_the_units_and_import_nothing_heavy() -> None:
    code = (
        "import sys, tasks.mini.write; "
        "heavy = {'torch', 'transformers', 'scipy', 'sklearn', 'pandas', 'datasets'} & set(sys.modules); "
        "sys.exit(str(heavy) if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
