"""Progress of other processes and machines, told in this one."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count

from benchmark.engines.progress import Advance, Reporter

Message = tuple[str, tuple[int, int], object]
"""Kind, (worker, number of the bar), content."""


class Relayed:
    """A reporter that sends what it is told.

    Args:
        send: Takes each message.
        worker: A number that no other sender has.
    """

    _numbers = count()

    def __init__(self, send: Callable[[Message], None], worker: int) -> None:
        self._send, self._worker = send, worker

    @contextmanager
    def bar(self, title: str, total: int, unit: str) -> Iterator[Advance]:
        """A stage, shown where the messages arrive."""
        key = self._worker, next(self._numbers)
        self._send(("start", key, (title, total, unit)))
        try:
            yield lambda amount: self._send(("advance", key, amount))
        finally:
            self._send(("stop", key, None))

    def say(self, line: str) -> None:
        """A line, printed where the messages arrive."""
        self._send(("say", (self._worker, 0), line))


class Listening:
    """Does here what is reported elsewhere."""

    def __init__(self, report: Reporter) -> None:
        self._report = report
        self._bars: dict[tuple[int, int], tuple[AbstractContextManager[Advance], Advance]] = {}
        self._lock = threading.Lock()

    def hear(self, message: Message) -> None:
        """Do what a message says."""
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
        """Close the bars of a worker that will not do so itself."""
        for key in [key for key in self._bars if key[0] == worker]:
            self.hear(("stop", key, None))
