"""What a run tells: on a terminal, in a file, in a notebook, nowhere."""

import io
import sys
import time
from datetime import datetime
from types import ModuleType, SimpleNamespace

import pytest
from rich.console import Console

from layerboard.benchmark.engines import progress as notebook
from layerboard.benchmark.engines.progress import (
    Message,
    OneLine,
    Reporter,
    Silent,
    Terminal,
    in_notebook,
    over_all,
    reporter_for,
    until_end,
)


@pytest.mark.parametrize("terminal", [True, False])
def test_bars_are_for_terminals_and_leave_no_blank_lines_elsewhere(terminal: bool) -> None:
    said = io.StringIO()
    report = Terminal(Console(file=said, force_terminal=terminal, width=100))
    with report.bar("outer", 3, "images") as advance, report.bar("inner", 2, "images"):
        advance(1)
        report.say("a line")
    report.say("another line")
    if terminal:
        assert "outer" in said.getvalue()
    else:
        assert said.getvalue() == "a line\nanother line\n"


def test_where_no_bar_is_shown_a_long_stage_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("layerboard.benchmark.engines.progress.perf_counter", lambda: now[0])
    said = io.StringIO()
    report = Terminal(Console(file=said, force_terminal=False, width=200))
    with report.bar("all backbones", 1200, "images") as advance, report.bar("one", 5, "images") as inner:
        for _ in range(5):
            now[0] += 25
            advance(100)
            inner(1)
    lines = [line.partition(", about")[0] for line in said.getvalue().splitlines()]
    assert lines == ["all backbones: 300 of 1,200 images"]  # after 75 s; the next is due after 135 s


def test_a_stage_that_does_not_advance_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("layerboard.benchmark.engines.progress.LINE_SECONDS", 0.01)
    said = io.StringIO()
    report = Terminal(Console(file=said, force_terminal=False, width=100))
    with report.bar("all backbones", 14, "images"), report.bar("vit  receptive-field", 448, "gradients"):
        begin = time.monotonic()
        while said.getvalue().count("\n") < 2 and time.monotonic() - begin < 10:
            time.sleep(0.01)
    line = "all backbones: 0 of 14 images; vit  receptive-field: 0 of 448 gradients"
    assert {*said.getvalue().splitlines()} == {line}


def test_who_waits_for_hours_is_told_when_they_end(monkeypatch: pytest.MonkeyPatch) -> None:
    class Clock(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
            return datetime(2026, 11, 27, 14, 10)

    monkeypatch.setattr("layerboard.benchmark.engines.progress.datetime", Clock)
    assert until_end(42.4) == "about 42 s left at this pace"
    assert until_end(61) == "about 1 min left at this pace"
    assert until_end(3599) == "about 1 h 00 min left at this pace"
    assert until_end(3.5 * 3600) == "about 3 h 30 min left at this pace, ends about 17:40"
    assert until_end(20 * 3600) == "about 20 h 00 min left at this pace, ends about Sat 28 Nov, 10:10"
    assert until_end(1e15).endswith(" min left at this pace")


class Heard(Reporter):
    """A reporter that keeps what is done in each bar."""

    def __init__(self) -> None:
        super().__init__(self.take)
        self.titles: dict[tuple[int, int], str] = {}
        self.done: dict[str, float] = {}

    def take(self, message: Message) -> None:
        kind, stage, content = message
        if kind == "start":
            self.titles[stage] = content[0]
            self.done[content[0]] = 0
        elif kind == "advance":
            self.done[self.titles[stage]] += content
        elif kind == "say":
            self.done[content] = -1


def test_stages_of_one_unit_move_a_bar_over_all() -> None:
    heard = Heard()
    with over_all(heard, "all", 7, "images") as report:
        with report.bar("first", 3, "images") as advance:
            advance(3)
        with report.bar("second", 4, "images") as advance, report.bar("scoring", 2, "tasks") as other:
            advance(2)
            other(1)
        report.say("a line")
    assert heard.done == {"all": 5, "first": 3, "second": 2, "scoring": 1, "a line": -1}


def test_where_there_is_nothing_to_do_there_is_no_bar_over_all() -> None:
    heard = Heard()
    with over_all(heard, "all", 0, "images") as report:
        assert report is heard
    assert heard.done == {}


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
    assert "all: 5 of 20 images, 1/s, about 18 s left at this pace" in shown
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
