"""The log of an output folder: what it keeps, and what it says of a run that goes on, ended or was killed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from layerboard.benchmark.engines import progress
from layerboard.benchmark.engines.log import LOG, logged, run_state
from layerboard.benchmark.engines.progress import Silent

LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  (.*)")


def lines(output: Path) -> list[str]:
    """The lines of a log without their times."""
    text = (output / LOG).read_text(encoding="utf-8")
    return [match[1] for match in map(LINE.fullmatch, text.splitlines()) if match]


def test_it_keeps_what_is_said_and_how_far_the_run_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(progress, "perf_counter", lambda: now[0])
    said: list[str] = []
    with logged(Silent(say=said.append), tmp_path / "out") as log:
        log.note("a note")
        with log.bar("all backbones", 1200, "images") as advance:
            now[0] += 61
            advance(300)
        log.say("a line\x1b[31m")
    *first, last = lines(tmp_path / "out")
    assert first[0] == "a note"
    assert first[1].startswith("all backbones: 300 of 1,200 images")
    assert first[2].startswith("a line")
    assert "\x1b" not in first[2]
    assert last == "ended"
    assert said == ["a line\x1b[31m"]  # the note is for the log alone


def test_it_tells_whether_a_run_goes_on(tmp_path: Path) -> None:
    assert run_state(tmp_path) == ""
    with logged(Silent(), tmp_path) as first:
        first.note("one of two")
        assert re.search(r"^A run into .* goes on; at 2.* it said: one of two\.$", run_state(tmp_path))
        with logged(Silent(), tmp_path) as second:
            second.note("the other")
        first.note("still here")
        assert run_state(tmp_path).endswith("still here.")
    assert run_state(tmp_path) == ""


def test_in_a_notebook_it_is_written_to_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    with logged(Silent(), tmp_path) as log:
        log.note("a note")
    assert lines(tmp_path) == ["a note", "ended"]


def test_an_error_and_an_interruption_are_its_end(tmp_path: Path) -> None:
    for error in (KeyboardInterrupt(), ValueError("wrong\nand more")):
        with pytest.raises(type(error)), logged(Silent(), tmp_path):
            raise error
    assert lines(tmp_path) == ["ended early: keyboard interrupt", "ended early: wrong"]
    assert run_state(tmp_path) == ""


def test_a_killed_run_is_told_from_a_living_one(tmp_path: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path\n"
        "from layerboard.benchmark.engines.log import logged\n"
        "from layerboard.benchmark.engines.progress import Silent\n"
        "with logged(Silent(), Path(sys.argv[1])) as log:\n"
        "    log.note('half of it')\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path], check=False)
    assert lines(tmp_path) == ["half of it"]
    assert re.search(r"was killed after 2.*; start it again", run_state(tmp_path))


def test_no_link_is_followed_and_no_run_ends_for_its_log(tmp_path: Path) -> None:
    target = tmp_path / "mine.txt"
    target.write_text("mine")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / LOG).symlink_to(target)
    with logged(Silent(), tmp_path / "out") as log:
        log.note("a note")
    assert target.read_text() == "mine"
