"""Pages of the same results are written once, and again as soon as anything that they are made of changes."""

import json
import os
import shutil
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from layerboard.benchmark.plan.facts import known_trainings
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.near_duplicates import NearDuplicates, write_near_duplicates
from layerboard.leaderboards.records import files, state
from layerboard.leaderboards.records.arrays import write_arrays
from layerboard.leaderboards.records.checksum import write_checked
from layerboard.leaderboards.records.files import NEAR_DUPLICATES
from layerboard.leaderboards.records.record import folder_records, of_suite
from layerboard.leaderboards.writers import build, current
from layerboard.leaderboards.writers.build import write_board
from layerboard.zoo.atomic import write_whole
from tests.leaderboards.builder import frame, layers, pair, write_layers


def write_changed(board, output):
    return current.write_changed(board, output, state.state_of(output))


def board_of(output, suite="mini"):
    records = of_suite(folder_records(output / "records"), suite)
    known = {name: training for name, training in known_trainings().items() if name.startswith("mini")}
    return Board.of(records, suite, items=output / "items", arrays=output / "arrays", trainings=known)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A small output folder with pages and a figure, and a package of one file."""
    place = tmp_path_factory.mktemp("made")
    output, package = place / "out", place / "package"
    (package / "writers").mkdir(parents=True)
    (package / "writers" / "build.py").write_text("DECIMALS = 1\n")
    alike = pair("mini-dino", 2, "mini-dino", 1, 0.5, depth=2)
    write_checked(frame(layers([10.0, 20.0]), [alike]), output / "records" / "all.parquet")
    write_layers(output / "items", "mini-dino", [[0.0, 20.0], [20.0, 20.0]])
    for folder in ("arrays", "examples"):
        write_arrays({"map": np.zeros(3)}, output / folder / "mini-dino" / "knn.npz")
    write_near_duplicates({"photos": NearDuplicates("photos", "mini-dino", 40, 0.5)}, output)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "PACKAGE", package)
        assert write_changed(board_of(output), output)[1]
    return place


@pytest.fixture
def output(made, tmp_path, monkeypatch):
    """A copy of it, times of files included."""
    shutil.copytree(made, tmp_path / "copy")
    monkeypatch.setattr(state, "PACKAGE", tmp_path / "copy" / "package")
    return tmp_path / "copy" / "out"


def written(output):
    files = {path: path.stat() for path in (output / "tables").rglob("*") if path.is_file()}
    return {path: (status.st_mtime_ns, status.st_ino) for path, status in files.items()}


@pytest.fixture
def quick(monkeypatch):
    """Pages are written without being made; the times at which this was done."""
    times = []

    def write(board, folder):
        times.append(len(times))
        pages = [folder / f"{board.page}{ending}" for ending in (".csv", ".md")]
        for path in (*pages, folder / board.page / "knn.svg"):
            write_whole(path, f"written for the {len(times)}. time")
        return pages

    monkeypatch.setattr("layerboard.leaderboards.writers.build.write_board", write)
    return times


def test_pages_of_the_same_results_stay_and_are_those_that_would_be_written(output, tmp_path, monkeypatch):
    before, folder = written(output), tmp_path / "again"
    assert {path.suffix for path in before} == {".csv", ".md", ".svg", ".json"}
    with monkeypatch.context() as patch:
        patch.setattr("layerboard.leaderboards.writers.build.pages_of", None)  # is not called
        pages, changed = write_changed(board_of(output), output)
    assert (changed, written(output)) == (False, before)
    assert pages == [output / "tables" / path.name for path in write_board(board_of(output), folder)]
    fresh = {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.*") if path.is_file()}
    assert fresh == {path: (output / "tables" / path).read_bytes() for path in fresh}
    facts = json.loads((output / "tables" / ".mini.json").read_text())
    assert {*map(Path, facts["files"])} == {*fresh}


def add_records(output):
    write_checked(frame(layers([90.0, 95.0], backbone="mini-fs")), output / "records" / "by-hand.parquet")


def change_item(output):
    path = next((output / "items").rglob("*.parquet"))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    times = path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def edit_page(output):
    page = output / "tables" / "mini.md"
    page.write_text(page.read_text().replace("mini-dino", "mini-dina"))


def first(folder, ending="*.*"):
    return next(path for path in sorted(folder.rglob(ending)) if path.is_file())


STALE = {
    "other records put into the folder": add_records,
    "an item, with its time put back": change_item,
    "an array": lambda output: first(output / "arrays").unlink(),
    "an example": lambda output: first(output / "examples").write_bytes(b"another"),
    "a count of near-duplicates": lambda output: (output / NEAR_DUPLICATES).unlink(),
    "an edited page": edit_page,
    "a removed table": lambda output: (output / "tables" / "mini.csv").unlink(),
    "a removed figure": lambda output: first(output / "tables", "*.svg").unlink(),
    "an edited source": lambda output: first(output.parent / "package").write_text("DECIMALS = 2\n"),
    "a new source": lambda output: (output.parent / "package" / "new.csv").write_text("a"),
    "no facts": lambda output: (output / "tables" / ".mini.json").unlink(),
    "damaged facts": lambda output: (output / "tables" / ".mini.json").write_text('{"made of"'),
    "facts of another kind": lambda output: (output / "tables" / ".mini.json").write_text("[1]"),
}


@pytest.mark.parametrize("change", STALE.values(), ids=STALE)
def test_whatever_pages_are_made_of_makes_them_stale(output, quick, change):
    change(output)
    pages, changed = write_changed(board_of(output), output)
    assert changed
    assert {page.read_text() for page in pages} == {"written for the 1. time"}
    assert write_changed(board_of(output), output) == (pages, False)  # they are current again
    assert len(quick) == 1


def test_a_library_or_what_a_board_knows_makes_them_stale(output, quick, monkeypatch):
    board = board_of(output)
    assert write_changed(replace(board, trainings={}), output)[1]
    assert write_changed(board, output)[1]
    seen = board.only(board.records.assign(seen="†"))  # what the registry says of trainings
    assert write_changed(seen, output)[1]
    assert not write_changed(seen, output)[1]
    monkeypatch.setattr(
        files, "version", lambda name: "0.1" if name == "vl-convert-python" else version(name)
    )
    assert write_changed(seen, output)[1]


def test_suites_of_one_folder_are_current_each(output, quick):
    write_checked(frame(layers([30.0, 40.0], suite="other")), output / "records" / "other.parquet")
    suites = [board_of(output, suite) for suite in ("mini", "other")]
    assert [write_changed(board, output)[1] for board in suites] == [True, True]
    assert [write_changed(board, output)[1] for board in suites] == [False, False]
    assert len(quick) == 2


def test_a_failed_write_leaves_pages_stale(output, monkeypatch):
    def raising(*_):
        raise OSError("disk full")

    add_records(output)
    with monkeypatch.context() as patch:
        patch.setattr("layerboard.leaderboards.writers.build.write_page_figures", raising)
        with pytest.raises(OSError, match="disk full"):
            write_changed(board_of(output), output)
    assert write_changed(board_of(output), output)[1]


def test_of_two_runs_that_write_at_once_neither_says_that_its_pages_are_there(output, quick, monkeypatch):
    add_records(output)
    write = build.write_board

    def writing(board, folder):
        monkeypatch.setattr(build, "write_board", write)
        pages = write(board, folder)
        write_changed(board, output)  # the other run
        return pages

    monkeypatch.setattr(build, "write_board", writing)
    assert [write_changed(board_of(output), output)[1] for _ in range(3)] == [True, True, False]
    assert len(quick) == 3
