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
    times = iter(range(60, 160))  # the clock began earlier than the stage
    monkeypatch.setattr(notebook.time, "monotonic", lambda: next(times))
    shown: list[str] = []
    report = OneLine(shown.append)
    with over_all(report, "all", 20, "images") as inner, inner.bar("mini-fs  train", 10, "images") as advance:
        advance(5)
        report.say("a line that stays")
        advance(5)
    assert "all: 5 of 20 images, 1/s, about 18 s left" in shown
    assert any(text.startswith("a line that stays\nall: 10 of 20 images, ") for text in shown)
    assert shown[-1] == "a line that stays"


def test_a_cell_holds_one_output_that_is_updated(monkeypatch: pytest.MonkeyPatch) -> None:
    outputs: list[list[object]] = []  # of a cell, each with what it has shown

    def display(content: object, *, raw: bool, display_id: bool) -> SimpleNamespace:
        assert raw
        assert display_id
        outputs.append([content])
        return SimpleNamespace(update=lambda content, raw: outputs[-1].append(content))

    module = ModuleType("IPython.display")
    vars(module)["display"] = display
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    report = OneLine()
    for line in ("one", "two"):
        report.say(line)
    assert outputs == [[{"text/plain": "one"}, {"text/plain": "one\ntwo"}]]
