"""What a run tells while it goes on."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text


class Advance(Protocol):
    """Told how much was done."""

    def __call__(self, amount: float) -> None:
        """That many more are done."""
        ...


class Reporter(Protocol):
    """Hears what a run does."""

    @contextmanager
    def bar(self, title: str, total: int, unit: str) -> Iterator[Advance]:
        """A stage of ``total`` units."""
        yield lambda amount: None

    def say(self, line: str) -> None:
        """A line that stays."""
        ...


class Silent:
    """Tells nothing."""

    @contextmanager
    def bar(self, title: str, total: int, unit: str) -> Iterator[Advance]:
        """A stage that is not shown."""
        del title, total, unit
        yield lambda amount: None

    def say(self, line: str) -> None:
        """Nothing."""


class _Speed(ProgressColumn):
    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f} {task.fields['unit']}/s")


class Terminal:
    """Bars with units per second and time left, and lines, on standard error."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True, highlight=False, soft_wrap=True)

    @contextmanager
    def bar(self, title: str, total: int, unit: str) -> Iterator[Advance]:
        """A bar that goes away when the stage is over."""
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            _Speed(),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=self.console, transient=True) as progress:
            stage = progress.add_task(title, total=total, unit=unit)
            yield lambda amount: progress.advance(stage, amount)

    def say(self, line: str) -> None:
        """Print a line as it is."""
        self.console.print(line, markup=False)
