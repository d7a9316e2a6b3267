"""Progress of a run: bars and lines in a terminal or a notebook, from whichever process."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from importlib import import_module
from itertools import count
from time import perf_counter
from typing import Any, Protocol

from rich import progress as rich
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from layerboard.zoo.errors import printable

PACE_SECONDS = 600  # window for speed and time left, which includes pauses for scoring
LINE_SECONDS = 60  # without bars, a line reports the outermost and the newest stage this often

Advance = Callable[[float], None]  # called with the amount of further work done in a stage


class Reporter(Protocol):
    """Receives the progress of a run."""

    def bar(self, title: str, total: int, unit: str) -> AbstractContextManager[Advance]:
        """Open a stage of ``total`` units."""
        ...

    def say(self, line: str) -> None:
        """Print a line that stays on the screen."""
        ...


def _ignore(told: float | str) -> None:
    """Do nothing with what is done, or said."""


class Silent:
    """A reporter without bars of its own: what several jobs do may advance a bar that is open already.

    It shows nothing, for runs from Python, unless it is given another reporter.
    """

    def __init__(self, advance: Advance = _ignore, say: Callable[[str], None] = _ignore) -> None:
        self._advance, self._say = advance, say

    def bar(self, title: str, total: int, unit: str) -> AbstractContextManager[Advance]:
        del title, total, unit
        return nullcontext(self._advance)

    def say(self, line: str) -> None:
        self._say(line)


class _Counting:
    """A reporter whose bars of one unit also advance a bar for their total."""

    def __init__(self, report: Reporter, advance: Advance, unit: str) -> None:
        self._report, self._advance, self._unit, self.say = report, advance, unit, report.say

    @contextmanager
    def bar(self, title: str, total: int, unit: str) -> Iterator[Advance]:
        with self._report.bar(title, total, unit) as advance:

            def both(amount: float) -> None:
                advance(amount)
                self._advance(amount)

            yield both if unit == self._unit else advance


@contextmanager
def over_all(report: Reporter, title: str, total: int, unit: str) -> Iterator[Reporter]:
    """A reporter that also shows the total over all stages of a unit; the same reporter if the total is 0."""
    if not total:
        yield report
        return
    with report.bar(title, total, unit) as advance:
        yield _Counting(report, advance, unit)


class _Speed(rich.ProgressColumn):
    def render(self, task: rich.Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f} {task.fields['unit']}/s")


class PrintableConsole(Console):
    """A console that shows only `printable` text, so that file names cannot control the terminal."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for each in super().render(renderable, options):
            yield each if each.control else Segment(printable(each.text), each.style)


def _far(stage: rich.Task) -> str:
    """How far a stage is, and how long it still takes."""
    left, unit = stage.time_remaining, stage.fields["unit"]
    minutes = "" if left is None else f", about {max(1, round(left / 60)):,} min left"
    return f"{stage.description}: {stage.completed:,.0f} of {stage.total:,.0f} {unit}{minutes}"


class Terminal:
    """Bars with units per second and time left, and lines, on standard error; several bars may be open.

    If standard error is not a terminal, such as a file, only lines are printed, one per minute of a long run:
    how far the outermost stage is, and the newest one, which takes the time.
    """

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or PrintableConsole(stderr=True, highlight=False, soft_wrap=True)
        self._progress = rich.Progress(
            rich.TextColumn("{task.description}"),
            rich.BarColumn(),
            rich.MofNCompleteColumn(),
            _Speed(),
            rich.TimeRemainingColumn(),
            console=self.console,
            transient=True,
            speed_estimate_period=PACE_SECONDS,
        )
        self._bars = self.console.is_terminal
        self._open, self._last_line, self._over = 0, 0.0, threading.Event()
        self._lock = threading.Lock()

    @contextmanager
    def bar(self, title: str, total: int, unit: str) -> Iterator[Advance]:
        """Show a bar that disappears at the end of the stage."""
        with self._lock:
            self._open += 1
            if self._open == 1 and self._bars:
                self._progress.start()
            stage = self._progress.add_task(title, total=total, unit=unit)
            if self._open == 1 and not self._bars:
                self._last_line, self._over = perf_counter(), threading.Event()
                threading.Thread(target=self._beat, args=(self._over,), daemon=True).start()

        def advance(amount: float) -> None:
            self._progress.advance(stage, amount)
            if not self._bars:
                self._tell()

        try:
            yield advance
        finally:
            with self._lock:
                self._progress.remove_task(stage)
                self._open -= 1
                if not self._open and self._bars:
                    self._progress.stop()
                if not self._open:
                    self._over.set()

    def _beat(self, over: threading.Event) -> None:
        """Tell how far the run is while a stage does not advance, until all are over."""
        while not over.wait(LINE_SECONDS):
            self._tell()

    def _tell(self) -> None:
        """Print how far the outermost and the newest stage are, unless that was printed recently."""
        with self._lock:
            stages = [self._progress.tasks[index] for index in (0, -1)] if self._open else []
            if not stages or perf_counter() - self._last_line < LINE_SECONDS:
                return
            self._last_line = perf_counter()
        self.say("; ".join(dict.fromkeys(map(_far, stages))))

    def say(self, line: str) -> None:
        with suppress(OSError):  # nobody reads it any more; the work goes on
            self.console.print(line, markup=False)


Message = tuple[str, tuple[int, int], object]  # kind, (worker, number of the bar), content


class ForwardingReporter:
    """A reporter that sends its reports on, under a worker's number, which no other sender has."""

    _numbers = count()

    def __init__(self, send: Callable[[Message], None], worker: int) -> None:
        self._send, self._worker = send, worker

    @contextmanager
    def bar(self, title: str, total: int, unit: str) -> Iterator[Advance]:
        key = self._worker, next(self._numbers)
        self._send(("start", key, (title, total, unit)))
        try:
            yield lambda amount: self._send(("advance", key, amount))
        finally:
            self._send(("stop", key, None))

    def say(self, line: str) -> None:
        self._send(("say", (self._worker, 0), line))


class ForwardedReports:
    """Repeats here what is reported elsewhere."""

    def __init__(self, report: Reporter) -> None:
        self._report = report
        self._bars: dict[tuple[int, int], tuple[AbstractContextManager[Advance], Advance]] = {}
        self._lock = threading.Lock()

    def repeat(self, message: Message) -> None:
        """Report here what one message reports."""
        kind, key, content = message
        with self._lock:
            if kind == "start":
                bar = self._report.bar(*content)  # type: ignore[misc]
                self._bars[key] = bar, bar.__enter__()
            elif kind == "advance":
                self._bars[key][1](content)  # type: ignore[arg-type]
            elif kind == "stop":
                self._bars.pop(key)[0].__exit__(None, None, None)
            else:
                self._report.say(str(content))

    def forget(self, worker: int) -> None:
        """Close the bars of a lost worker."""
        for key in [key for key in self._bars if key[0] == worker]:
            self.repeat(("stop", key, None))


PERIOD = 0.2  # seconds between two states of the line in a notebook
WIDEST = 100  # characters of that line


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def reporter_for(progress: bool | None) -> Reporter:
    """The reporter for a call from Python: silent, bars in a terminal, or one line in a notebook.

    For None, progress is shown in a notebook or a terminal.
    """
    if progress is False or (progress is None and not (in_notebook() or sys.stderr.isatty())):
        return Silent()
    return OneLine() if in_notebook() else Terminal()


class OneLine:
    """Lines that stay, and below them one with the state of the oldest open stage, in one output of a cell.

    The output is replaced, so that a saved notebook holds it once, and as it was last. It needs no widget.
    """

    def __init__(self, show: Callable[[str], None] | None = None) -> None:
        self._show = show or output_of_cell()
        self._stages: list[Callable[[], str]] = []
        self._lines: list[str] = []
        self._shown, self._time = "", 0.0
        self._lock = threading.Lock()

    @contextmanager
    def bar(self, title: str, total: int, unit: str) -> Iterator[Advance]:
        """Show a stage; the line disappears when the last stage is over."""
        done, begin = 0.0, time.monotonic()

        def text() -> str:
            speed = done / max(time.monotonic() - begin, 1e-9)
            left = f", {(total - done) / speed:.0f} s left" if speed else ""
            return f"{title}: {done:,.0f} of {total:,} {unit}, {speed:,.0f}/s{left}"

        def advance(amount: float) -> None:
            nonlocal done
            with self._lock:
                done += amount
                if time.monotonic() - self._time > PERIOD:
                    self._write(self._stages[0]())

        with self._lock:
            self._stages.append(text)
        try:
            yield advance
        finally:
            with self._lock:
                self._stages.remove(text)
                if not self._stages:
                    self._write("")

    def say(self, line: str) -> None:
        with self._lock:
            self._lines.append(line)
            self._write("")

    def _write(self, line: str) -> None:
        text = printable("\n".join([*self._lines, *filter(None, [line[:WIDEST]])]))
        if text != self._shown:
            self._show(text)
        self._shown, self._time = text, time.monotonic()


def output_of_cell() -> Callable[[str], None]:
    """A function that shows a text in the notebook's cell, and replaces it by the next one."""
    handle: Any = None

    def show(text: str) -> None:
        nonlocal handle
        display = import_module("IPython.display").display  # only in a notebook, which has it
        content = {"text/plain": text}
        if handle is None:
            handle = display(content, raw=True, display_id=True)
        else:
            handle.update(content, raw=True)

    return show
