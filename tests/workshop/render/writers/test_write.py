"""Writing: in pieces, repeatable, checked, and never over somebody else's files."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from layerboard.zoo.errors import InputError
from workshop.render.writers import write
from workshop.render.writers.base import Note, Writer, save_text
from workshop.render.writers.write import Piece, finish, missing_pieces, render_piece


def _render(root: Path, unit: int) -> list[Note]:
    save_text(root / "toy" / f"{unit}.txt", [str(unit)])
    return [{"unit": unit}]


def _finish(root: Path, notes: Sequence[Note]) -> None:
    save_text(root / "toy" / "all.txt", [str(note["unit"]) for note in notes])


def _fail(root: Path, unit: int) -> list[Note]:
    save_text(root / "toy" / "half.txt", ["half"])
    raise OSError("disk full")


"""Images of all datasets."""


def fill(root: Path) -> list[int]:
    """Render what is missing; gives its units."""
    missing = missing_pieces(root)
    for piece in missing:
        render_piece(root, piece)
    finish(root)
    return [piece.unit for piece in missing]


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "WRITERS", (Writer("toy", (1, 3, 2), _render, _finish),))


@pytest.fixture
def root(toy: None, tmp_path: Path) -> Path:
    """Complete toy datasets."""
    fill(tmp_path / "data")
    return tmp_path / "data"


def test_notes_reach_finish_in_unit_order(root: Path) -> None:
    assert (root / "toy" / "all.txt").read_text() == "0\n1\n2\n"
    assert [path.name for path in root.parent.iterdir()] == ["data"]


def test_a_complete_folder_is_left_alone(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    monkeypatch.setattr(write, "WRITERS", (Writer("toy", (1, 3, 2), _fail, _finish),))
    assert fill(root) == []
    assert before == {path: path.stat().st_mtime_ns for path in root.rglob("*")}


@pytest.mark.usefixtures("toy")
def test_an_older_version_is_replaced(tmp_path: Path) -> None:
    root = tmp_path / "data"
    root.mkdir()
    (root / write.MARKER).write_text("0\n")
    (root / "stale.txt").write_text("old")
    fill(root)
    assert missing_pieces(root) == ()
    assert not (root / "stale.txt").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_a_piece_that_another_process_has_rendered_keeps_its_files(root: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (root / "toy").iterdir()}
    render_piece(root, Piece("toy", 1, 3))
    assert before == {path: path.stat().st_mtime_ns for path in (root / "toy").iterdir()}


def test_a_complete_folder_without_manifests_is_rendered_beside_and_compared(root: Path) -> None:
    for path in (root / write.MANIFESTS).iterdir():
        path.unlink()
    (root / write.MANIFESTS).rmdir()
    (root / "toy" / "2.txt").write_text("3\n")
    before = (root / "toy" / "1.txt").stat().st_mtime_ns
    assert fill(root) == [1, 2, 0]
    assert (root / "toy" / "1.txt").stat().st_mtime_ns == before
    assert (root / "toy" / "2.txt").read_text() == "2\n"


@pytest.mark.parametrize("damage", ["flip", "truncate", "remove", "manifest"])
def test_a_damaged_piece_is_found_and_rendered_again(root: Path, damage: str) -> None:
    path = root / "toy" / "1.txt" if damage != "manifest" else root / write.MANIFESTS / "toy-001.json"
    status, content = path.stat(), bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    if damage == "remove":
        path.unlink()
    else:
        path.write_bytes(content[:-1] if damage == "truncate" else content)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert fill(root) == [1]
    assert (root / "toy" / "1.txt").read_text() == "1\n"
    assert missing_pieces(root) == ()


@pytest.mark.parametrize("name", ["all.txt", "manifest"])
def test_damaged_annotations_are_written_again_from_notes(root: Path, name: str) -> None:
    path = root / "toy" / name if name != "manifest" else root / write.MANIFESTS / "toy.json"
    path.write_text("0\n2\n1\n")
    assert fill(root) == []
    assert (root / "toy" / "all.txt").read_text() == "0\n1\n2\n"


@pytest.mark.usefixtures("toy")
def test_foreign_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="expected an empty or no folder"):
        missing_pieces(tmp_path)


def test_a_failure_leaves_whole_pieces_only_and_goes_on(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "toy" / "1.txt").unlink()
    monkeypatch.setattr(write, "WRITERS", (Writer("toy", (1, 3, 2), _fail, _finish),))
    with pytest.raises(OSError, match="disk full"):
        fill(root)
    assert [path.name for path in root.parent.iterdir()] == ["data"]
    assert not (root / "toy" / "half.txt").exists()
    monkeypatch.setattr(write, "WRITERS", (Writer("toy", (1, 3, 2), _render, _finish),))
    assert fill(root) == [1]


def test_workers_find_the_pieces_and_import_nothing_heavy() -> None:
    code = (
        "import sys, workshop.render.writers.write; "
        "heavy = {'torch', 'transformers', 'scipy', 'sklearn', 'pandas', 'datasets'} & set(sys.modules); "
        "sys.exit(str(heavy) if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
