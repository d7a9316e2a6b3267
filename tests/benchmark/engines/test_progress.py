"""What a run tells, on a terminal and in a file."""

import io

import pytest
from rich.console import Console

from benchmark.engines.progress import Terminal


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
