"""Progress of calls from Python: in a terminal, in a notebook, nowhere."""

import io
import sys
from types import ModuleType, SimpleNamespace

import pytest

from layerboard.benchmark.engines import progress as notebook
from layerboard.benchmark.engines.progress import (
    OneLine,
    Silent,
    Terminal,
    in_notebook,
    over_all,
    reporter_for,
)


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that a notebook talks to."""
    ipython = ModuleType("IPython")
    vars(ipython)["get_ipython"] = lambda: SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", ipython)


def test_who_looks_on_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert isinstance(reporter_for(None), Silent)
    assert isinstance(reporter_for(False), Silent)
    assert isinstance(reporter_for(True), Terminal)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert isinstance(reporter_for(None), Terminal)


@pytest.mark.usefixtures("kernel")
def test_a_notebook_is_recognised() -> None:
    assert in_notebook()
    assert isinstance(reporter_for(None), OneLine)
    assert isinstance(reporter_for(False), Silent)


def test_ipython_in_a_terminal_is_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    ipython = ModuleType("IPython")
    vars(ipython)["get_ipython"] = lambda: SimpleNamespace()
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    assert not in_notebook()


def test_one_line_is_written_over_and_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter(range(100))
    monkeypatch.setattr(notebook.time, "monotonic", lambda: next(times))
    stream = io.StringIO()
    report = OneLine(stream)
    with over_all(report, "all", 20, "images") as inner, inner.bar("mini-fs  train", 10, "images") as advance:
        advance(5)
        report.say("a line that stays")
        advance(5)
    written = stream.getvalue()
    assert "all: 5 of 20 images, " in written
    assert " s left" in written
    assert screen(written) == ["a line that stays", ""]


def screen(written: str) -> list[str]:
    """What is to be seen in the end, without trailing spaces."""
    lines = []
    for line in written.split("\n"):
        cells: list[str] = []
        for part in line.split("\r"):
            cells[: len(part)] = part
        lines.append("".join(cells).rstrip())
    return lines
