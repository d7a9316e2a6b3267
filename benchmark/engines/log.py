"""The log of an output folder: what its runs have said and when, and whether one goes on."""

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from io import StringIO
from pathlib import Path
from typing import TextIO

from layerboard.benchmark.engines.progress import LINE_SECONDS, Message, PrintableConsole, Reporter, Terminal
from layerboard.zoo.atomic import READABLE, is_abandoned, locked
from layerboard.zoo.errors import first_line, printable
from layerboard.zoo.reading import open_regular

LOG = "run.log"  # in the output folder; runs append to it
ENDED = "ended"  # how the last line of a run begins
MOST_BYTES = 4096  # of the end of a log that are read: more than its last line
_LINE = re.compile(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)  (.{,200})", re.MULTILINE)


class RunLog(Terminal):
    """A reporter whose messages also go to a log, which has a line per minute and each line that is said.

    It writes what a terminal without bars shows, each line with its time.
    """

    def __init__(self, report: Reporter, file: TextIO | None) -> None:
        console = PrintableConsole(
            file=file or StringIO(),
            highlight=False,
            soft_wrap=True,
            force_terminal=False,
            force_jupyter=False,  # or lines would go into the cell of a notebook
        )
        super().__init__(console)
        self.send, self.process, self._report = self._send_both, report.process, report

    def note(self, line: str) -> None:
        """Write a line into the log alone."""
        self._show(("say", (self.process, 0), line))

    def _send_both(self, message: Message) -> None:
        self._show(message)
        self._report.send(message)

    def _print(self, line: str) -> None:
        super()._print(f"{datetime.now():%Y-%m-%d %H:%M:%S}  {line}")


@contextmanager
def logged(report: Reporter, output: Path) -> Iterator[RunLog]:
    """A reporter that also writes to the log of an output folder, whose lock shows that the run goes on.

    A log that cannot be written, or that is a link, is left out: no run ends for it.
    """
    path = output / LOG
    with ExitStack() as stack:
        file = None
        with suppress(OSError):
            output.mkdir(parents=True, exist_ok=True)
            file = stack.enter_context(open(path, "a", encoding="utf-8", buffering=1, opener=_opened))
            stack.enter_context(locked(path, shared=True))
        log = RunLog(report, file)
        try:
            yield log
        except BaseException as error:
            log.note(f"{ENDED} early: {first_line(error)}")
            raise
        log.note(ENDED)


def _opened(path: str, flags: int) -> int:
    """Open a file without following a link or waiting for a pipe, which a folder of others may have there."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0), READABLE)


def run_state(output: Path) -> str:
    """That a run into an output folder goes on, or was killed, in a sentence; empty if neither."""
    path = output / LOG
    try:
        with open_regular(path) as file:
            file.seek(max(0, path.stat().st_size - MOST_BYTES))
            lines = _LINE.findall(file.read().decode(errors="replace"))
    except OSError:
        return ""
    time, last = lines[-1] if lines else ("", ENDED)
    if last.startswith(ENDED):
        return ""
    if is_abandoned(path, 3 * LINE_SECONDS):
        return f"The last run into {output} was killed after {time}; start it again, and it continues."
    return f"A run into {output} goes on; at {time} it said: {printable(last)}."
