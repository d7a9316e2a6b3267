"""Progress of a run: bars and lines in a terminal or a notebook, from whichever process."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from importlib import import_module
from itertools import count
from time import perf_counter
from typing import Any

from rich import progress as rich
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from layerboard.zoo.errors import printable

PACE_SECONDS = 600  # window for speed and time left, which includes pauses for scoring
LONG_SECONDS = 3600  # from so long on, a reader wants to know the time of day of the end
FAR_SECONDS = 30 * 24 * 3600  # an estimate beyond is of a stage that has hardly begun
LINE_SECONDS = 60  # without bars, a line reports the outermost and the newest stage this often

Advance = Callable[[float], object]  # called with the amount of further work done in a stage


Message = tuple[str, tuple[int, int], Any]
"""The kind of a report, the stage that it is of (process, number there), and the content of its kind.

A stage begins by ``start`` with its title, total and unit, is moved by ``advance`` with an amount of work and
ends by ``stop``; ``say`` has a line.
"""


class Reporter:
    """Tells the progress of a run, as messages that are handed on from process to process to what shows them.

    ``process`` is a number that no other process has which sends to the same place.
    """

    _numbers = count()

    def __init__(self, send: Callable[[Message], object], process: int = 0) -> None:
        self.send, self.process = send, process

    @contextmanager
    def bar(self, title: str, total: int, unit: str) -> Iterator[Advance]:
        """Open a stage of ``total`` units."""
        stage = self.process, next(self._numbers)
        self.send(("start", stage, (title, total, unit)))
        try:
            yield lambda amount: self.send(("advance", stage, amount))
        finally:
            self.send(("stop", stage, None))

    def say(self, *lines: str) -> None:
        """Print lines that stay on the screen."""
        for line in lines:
            self.send(("say", (self.process, 0), line))


class Silent(Reporter):
    """A reporter without bars, which hands on what is said, or shows nothing: for runs from Python."""

    def __init__(self, say: Callable[[str], object] = lambda line: None) -> None:
        super().__init__(lambda message: say(message[2]) if message[0] == "say" else None)


@contextmanager
def over_all(report: Reporter, title: str, total: int, unit: str) -> Iterator[Reporter]:
    """A reporter that also shows the total over all stages of a unit; the same reporter if the total is 0."""
    if not total:
        yield report
        return
    counted: set[tuple[int, int]] = set()  # stages of the unit
    with report.bar(title, total, unit) as advance:

        def send(message: Message) -> None:
            kind, stage, content = message
            if kind == "start" and content[2] == unit:
                counted.add(stage)
            report.send(message)
            if kind == "advance" and stage in counted:
                advance(content)

        yield Reporter(send)


def once_more(report: Reporter) -> Reporter:
    """A reporter whose stages do not count for `over_all`, since what they show was counted already."""

    def send(message: Message) -> None:
        kind, stage, content = message
        report.send((kind, stage, (*content[:2], f"{content[2]} once more") if kind == "start" else content))

    return Reporter(send, report.process)


class _Speed(rich.ProgressColumn):
    def render(self, task: rich.Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f} {task.fields['unit']}/s")


class PrintableConsole(Console):
    """A console that shows only `printable` text, so that file names cannot control the terminal."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for each in super().render(renderable, options):
            yield each if each.control else Segment(printable(each.text), each.style)


class _Left(rich.TimeRemainingColumn):
    def render(self, task: rich.Task) -> Text:
        end = clock_of_end(task.time_remaining or 0)
        return Text.assemble(super().render(task), f"  {end}" if end else "")


def _far(stage: rich.Task) -> str:
    """How far a stage is, and how long it still takes."""
    left, unit = stage.time_remaining, stage.fields["unit"]
    until = "" if left is None else f", {until_end(left)}"
    return f"{stage.description}: {stage.completed:,.0f} of {stage.total:,.0f} {unit}{until}"


def until_end(seconds: float) -> str:
    """How long something still takes if its speed stays, in words; from an hour on also when it ends.

    It does not stay where backbones that come later are larger, or scored by more.
    """
    if seconds < 60:
        return f"about {seconds:.0f} s left at this pace"
    hours, minutes = divmod(max(1, round(seconds / 60)), 60)
    left = f"{hours:,} h {minutes:02} min" if hours else f"{minutes} min"
    return ", ".join(filter(None, [f"about {left} left at this pace", clock_of_end(seconds)]))


def clock_of_end(seconds: float) -> str:
    """The local time of day at which something ends that still takes so long, with the date if not today.

    Empty for what takes less than `LONG_SECONDS`, or so long that nobody can tell.
    """
    if not LONG_SECONDS <= seconds < FAR_SECONDS:
        return ""
    end = datetime.now() + timedelta(seconds=seconds)
    today = end.date() == datetime.now().date()
    return f"ends about {end:%H:%M}" if today else f"ends about {end:%a %d %b, %H:%M}"


class Terminal(Reporter):
    """Bars with units per second and time left, and lines, on standard error; several bars may be open.

    If standard error is not a terminal, such as a file, only lines are printed, one per minute of a long run:
    how far the outermost stage is, and the newest one, which takes the time.
    """

    def __init__(self, console: Console | None = None) -> None:
        super().__init__(self._show)
        self.console = console or PrintableConsole(stderr=True, highlight=False, soft_wrap=True)
        self._progress = rich.Progress(
            rich.TextColumn("{task.description}"),
            rich.BarColumn(),
            rich.MofNCompleteColumn(),
            _Speed(),
            _Left(),
            console=self.console,
            transient=True,
            speed_estimate_period=PACE_SECONDS,
        )
        self._bars = self.console.is_terminal
        self._open: dict[tuple[int, int], rich.TaskID] = {}
        self._last_line, self._over = 0.0, threading.Event()
        self._lock = threading.Lock()

    def _show(self, message: Message) -> None:
        """Show a stage as a bar, which disappears at its end, or print a line."""
        kind, stage, content = message
        if kind == "start":
            self._start(stage, *content)
        elif kind == "advance":
            self._progress.advance(self._open[stage], content)
            if not self._bars:
                self._tell()
        elif kind == "stop":
            with self._lock:
                self._progress.remove_task(self._open.pop(stage))
                if not self._open:
                    self._over.set()
                    if self._bars:
                        self._progress.stop()
        else:
            with suppress(OSError):  # nobody reads it any more; the work goes on
                self._print(content)

    def _print(self, line: str) -> None:
        self.console.print(line, markup=False)

    def _start(self, stage: tuple[int, int], title: str, total: int, unit: str) -> None:
        with self._lock:
            if not self._open and self._bars:
                self._progress.start()
            elif not self._open:
                self._last_line, self._over = perf_counter(), threading.Event()
                threading.Thread(target=self._beat, args=(self._over,), daemon=True).start()
            self._open[stage] = self._progress.add_task(title, total=total, unit=unit)

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
        self._show(("say", (self.process, 0), "; ".join(dict.fromkeys(map(_far, stages)))))


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


class OneLine(Reporter):
    """Lines that stay, and below them one with the state of the oldest open stage, in one output of a cell.

    The output is replaced, so that a saved notebook holds it once, and as it was last. It needs no widget.
    """

    def __init__(self, show: Callable[[str], None] | None = None) -> None:
        super().__init__(self._take)
        self._show = show or output_of_cell()
        self._open: dict[tuple[int, int], tuple[str, int, str, float]] = {}  # and when each began
        self._done: dict[tuple[int, int], float] = {}
        self._lines: list[str] = []
        self._shown, self._time = "", 0.0
        self._lock = threading.Lock()

    def _take(self, message: Message) -> None:
        """Show how far the first stage is; the line disappears when the last stage is over."""
        kind, stage, content = message
        with self._lock:
            if kind == "start":
                self._open[stage], self._done[stage] = (*content, time.monotonic()), 0.0
            elif kind == "advance":
                self._done[stage] += content
                if time.monotonic() - self._time > PERIOD:
                    self._write(self._state())
            elif kind == "stop":
                del self._open[stage]
                if not self._open:
                    self._write("")
            else:
                self._lines.append(content)
                self._write("")

    def _state(self) -> str:
        """How far the oldest open stage is."""
        stage, (title, total, unit, begin) = next(iter(self._open.items()))
        done = self._done[stage]
        speed = done / max(time.monotonic() - begin, 1e-9)
        left = f", {until_end((total - done) / speed)}" if speed else ""
        return f"{title}: {done:,.0f} of {total:,} {unit}, {speed:,.0f}/s{left}"

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
