"""What a run tells while it goes on."""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from time import perf_counter
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

PACE_SECONDS = 600
"""Speed and time left are told by what was done in so many seconds, pauses for scoring among them."""

LINE_SECONDS = 60
"""Where no bars are shown, a line says how far the outermost stage is, so often at most."""


class Advance(Protocol):
    """Told how much was done."""

    def __call__(self, amount: float) -> None:
        """That many more are done."""
        ...


class Reporter(Protocol):
    """Hears what a run does."""

    def bar(self, title: str, total: int, unit: str) -> AbstractContextManager[Advance]:
        """A stage of ``total`` units."""
        ...

    def say(self, line: str) -> None:
        """Print a line that stays on the screen."""
        ...


class Silent:
    """A reporter that tells nothing, for runs from Python."""

    @contextmanager
    def bar(self, title: str, total: int, unit: str) -> Iterator[Advance]:
        """A stage that is not shown."""
        del title, total, unit
        yield lambda amount: None

    def say(self, line: str) -> None:
        """Swallow a line."""


class OneBar:
    """Adds what several jobs do up in one bar that is open already."""

    def __init__(self, advance: Advance, report: Reporter) -> None:
        self._advance, self._report = advance, report

    @contextmanager
    def bar(self, title: str, total: int, unit: str) -> Iterator[Advance]:
        """The open bar."""
        del title, total, unit
        yield self._advance

    def say(self, line: str) -> None:
        """A line that stays."""
        self._report.say(line)


class _Counting:
    """A reporter whose bars of one unit also move a bar over all of them."""

    def __init__(self, report: Reporter, advance: Advance, unit: str) -> None:
        self._report, self._advance, self._unit = report, advance, unit

    @contextmanager
    def bar(self, title: str, total: int, unit: str) -> Iterator[Advance]:
        """A stage, which counts for the whole where it is of its unit."""
        with self._report.bar(title, total, unit) as advance:
            yield advance if unit != self._unit else partial(self._both, advance)

    def say(self, line: str) -> None:
        """A line that stays."""
        self._report.say(line)

    def _both(self, advance: Advance, amount: float) -> None:
        advance(amount)
        self._advance(amount)


@contextmanager
def over_all(report: Reporter, title: str, total: int, unit: str) -> Iterator[Reporter]:
    """A reporter that also shows how much of all stages of a unit is done; where there is none, the same."""
    if not total:
        yield report
        return
    with report.bar(title, total, unit) as advance:
        yield _Counting(report, advance, unit)


class _Speed(ProgressColumn):
    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f} {task.fields['unit']}/s")


class Terminal:
    """Bars with units per second and time left, and lines, on standard error; several bars may be open.

    Where standard error is no terminal, a file for example, there are lines only, one a minute of a long run.
    """

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True, highlight=False, soft_wrap=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            _Speed(),
            TimeRemainingColumn(),
            console=self.console,
            transient=True,
            speed_estimate_period=PACE_SECONDS,
        )
        self._shown = self.console.is_terminal
        self._open = 0
        self._told = 0.0
        self._lock = threading.Lock()

    @contextmanager
    def bar(self, title: str, total: int, unit: str) -> Iterator[Advance]:
        """A bar that goes away when the stage is over."""
        with self._lock:
            self._open += 1
            if self._open == 1 and self._shown:
                self._progress.start()
            stage = self._progress.add_task(title, total=total, unit=unit)
            outermost = self._open == 1
            self._told = perf_counter() if outermost else self._told

        def advance(amount: float) -> None:
            self._progress.advance(stage, amount)
            if outermost and not self._shown:
                self._tell(stage)

        try:
            yield advance
        finally:
            with self._lock:
                self._progress.remove_task(stage)
                self._open -= 1
                if not self._open and self._shown:
                    self._progress.stop()

    def _tell(self, stage: TaskID) -> None:
        """Say how far a stage is, if that was not said lately."""
        with self._lock:
            if perf_counter() - self._told < LINE_SECONDS:
                return
            self._told = perf_counter()
        task = next(one for one in self._progress.tasks if one.id == stage)
        left = task.time_remaining
        minutes = "" if left is None else f", about {max(1, round(left / 60)):,} min left"
        self.say(
            f"{task.description}: {task.completed:,.0f} of {task.total:,.0f} {task.fields['unit']}{minutes}"
        )

    def say(self, line: str) -> None:
        """Print a line as it is."""
        self.console.print(line, markup=False)
