"""Progress in a notebook, and whether a call from Python shows any."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TextIO

from benchmark.engines.progress import Advance, Reporter, Silent, Terminal

PERIOD = 0.2
"""Seconds between two states of the line."""

WIDEST = 100
"""Characters of the line."""


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return hasattr(shell, "kernel")


def reporter_for(progress: bool | None) -> Reporter:
    """What tells how far a call from Python is: nothing, bars of a terminal, or a line of a notebook.

    Args:
        progress: Whether it is shown; None: where a notebook or a terminal looks on.
    """
    shown = in_notebook() or sys.stderr.isatty() if progress is None else progress
    if not shown:
        return Silent()
    return OneLine() if in_notebook() else Terminal()


@dataclass(eq=False)
class _Stage:
    title: str
    total: int
    unit: str
    done: float = 0
    since: float = field(default_factory=time.monotonic)

    def __str__(self) -> str:
        """How much is done, how fast, and how long it will take."""
        seconds = max(time.monotonic() - self.since, 1e-9)
        speed = self.done / seconds
        left = f", {(self.total - self.done) / speed:.0f} s left" if speed else ""
        return f"{self.title}: {self.done:,.0f} of {self.total:,} {self.unit}, {speed:,.0f}/s{left}"


class OneLine:
    """One line that is written over and over, of the stage that began first, and lines that stay.

    It needs no widget and no cursor, so it is the same in every notebook and in what is kept of it.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout
        self._stages: list[_Stage] = []
        self._written = 0.0
        self._length = 0
        self._lock = threading.Lock()

    @contextmanager
    def bar(self, title: str, total: int, unit: str) -> Iterator[Advance]:
        """A stage; the line goes away when the last one is over."""
        stage = _Stage(title, total, unit)

        def advance(amount: float) -> None:
            with self._lock:
                stage.done += amount
                if time.monotonic() - self._written > PERIOD:
                    self._write(str(self._stages[0]))

        with self._lock:
            self._stages.append(stage)
        try:
            yield advance
        finally:
            with self._lock:
                self._stages.remove(stage)
                if not self._stages:
                    self._write("")

    def say(self, line: str) -> None:
        """Print a line as it is."""
        with self._lock:
            self._write("")
            self._stream.write(f"{line}\n")
            self._stream.flush()

    def _write(self, line: str) -> None:
        """Write over the line that is there."""
        if line or self._length:
            line = line[:WIDEST]
            self._stream.write(f"\r{line}{' ' * (self._length - len(line))}{'' if line else chr(13)}")
            self._stream.flush()
        self._length, self._written = len(line), time.monotonic()
