"""What commands do when they are told to end."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import typer

from benchmark.engines.progress import Reporter


class TerminatedError(KeyboardInterrupt):
    """SIGTERM, which ends a command as Ctrl-C does: what is half written goes away, and so do processes."""


@contextmanager
def ended_by_signals(report: Reporter, line: str) -> Iterator[None]:
    """Say a line when Ctrl-C or SIGTERM comes, and end with 130 or 143."""
    main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, _terminate) if main else None
    try:
        yield
    except KeyboardInterrupt as stop:
        report.say(line)
        raise typer.Exit(143 if isinstance(stop, TerminatedError) else 130) from None
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)


def _terminate(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough
    raise TerminatedError
