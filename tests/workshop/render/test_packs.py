"""Rendering in processes, from scripts without a guard and after kills, and packs of what was rendered."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from layerboard.benchmark.engines.progress import Silent
from layerboard.benchmark.plan.suites import MINI_SUITE
from layerboard.mini.packs import DATA, packaged_data
from layerboard.tasks.datasets.reading.files import read_bytes
from layerboard.zoo.errors import InputError
from tests.benchmark.runs import environment
from workshop.render import packs as rendering
from workshop.render.__main__ import require_same_bytes
from workshop.render.packs import pack_data
from workshop.render.writers.write import Piece, missing_pieces

PIECES = (Piece("davis", 1, 8), Piece("coco", 2, 8))
"""Small ones."""

SCRIPT = """
import sys
from pathlib import Path
from layerboard.benchmark.engines.base import WorkerDiedError
from layerboard.benchmark.engines.progress import Silent
from layerboard.benchmark.plan.suites import MINI_SUITE
from layerboard.mini.packs import DATA, packaged_data
from layerboard.tasks.datasets.reading.files import read_bytes
from layerboard.zoo.errors import InputError
from workshop.render.packs import render_pieces
from workshop.render.__main__ import require_same_bytes
from workshop.render.packs import pack_data
from workshop.render.writers.write import Piece
print("once", flush=True)
try:
    render_pieces(Path(sys.argv[1]), [Piece("davis", 1, 8), Piece("coco", 2, 8)] * {times}, 2, Silent())
    print("done")
except WorkerDiedError as error:
    print(error)
"""

linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")


def start(tmp_path: Path, times: int) -> subprocess.Popen[str]:
    """A script without a main guard that renders with two processes."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(times=times))
    command = [sys.executable, str(script), str(tmp_path / "data")]
    where = {**environment(), "PYTHONPATH": str(Path(__file__).parents[3])}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=where)


def children(parent: int) -> set[int]:
    """Processes whose parent that is."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found.add(int(path.parent.name))
    return found


def rendering_for_long(tmp_path: Path) -> tuple[subprocess.Popen[str], set[int]]:
    """A script that renders, once a piece is done, and the processes below it."""
    parent = start(tmp_path, 500)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("data/.manifests/*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    below = children(parent.pid)
    assert len(below) >= 2
    return parent, below


def alive(processes: set[int]) -> set[int]:
    """Those of them that run."""
    return {one for one in processes if Path(f"/proc/{one}").exists()}


@linux
@pytest.mark.slow
def test_a_killed_rendering_leaves_no_process_and_goes_on(tmp_path: Path) -> None:
    parent, below = rendering_for_long(tmp_path)
    parent.kill()
    parent.communicate()
    deadline = time.monotonic() + 20
    while alive(below) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(below)
    assert set(PIECES) - set(missing_pieces(tmp_path / "data"))


@linux
@pytest.mark.slow
def test_a_killed_process_is_a_sentence(tmp_path: Path) -> None:
    parent, below = rendering_for_long(tmp_path)
    workers = {one for one in below if "spawn_main" in Path(f"/proc/{one}/cmdline").read_text()}
    os.kill(min(workers), signal.SIGKILL)
    out, error = parent.communicate(timeout=60)
    assert out.startswith("once\na process of the run was ended from outside"), error
    assert not alive(workers)


def test_only_what_is_missing_is_rendered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Piece] = []
    monkeypatch.setattr(rendering, "missing_pieces", lambda root: PIECES)
    monkeypatch.setattr(rendering, "_render", lambda root, piece, report: given.append(piece))
    monkeypatch.setattr(rendering, "finish", lambda root: None)
    root = rendering.rendered_data(tmp_path, 1, Silent())
    assert (root.parent, tuple(given)) == (tmp_path / "mini-data", PIECES)
    monkeypatch.setattr(rendering, "missing_pieces", lambda root: ())
    rendering.rendered_data(tmp_path, 1, Silent())
    assert tuple(given) == PIECES


def test_packs_of_the_same_files_have_the_same_bytes(tmp_path: Path) -> None:
    """The packaged ones, written again from their own files."""
    root, copy = packaged_data(), tmp_path / "rendered"
    for entry in MINI_SUITE.datasets:
        for path in (path for paths in entry.contents(root).values() for path in paths):
            target = copy / path.relative_to(root)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(read_bytes(path))
    pack_data(copy, tmp_path / "packs")
    require_same_bytes(tmp_path / "packs", DATA)
    (tmp_path / "packs" / "more.txt").write_text("more")
    with pytest.raises(InputError, match=r"expected the same files in .*, found others: more.txt"):
        require_same_bytes(tmp_path / "packs", DATA)
