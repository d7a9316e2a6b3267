"""Jobs side by side in processes of this machine."""

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from itertools import count
from multiprocessing.connection import Connection
from multiprocessing.queues import Queue
from types import ModuleType

from benchmark.engines.base import Result, Work, WorkerDiedError
from benchmark.engines.progress import Advance, Reporter

Message = tuple[str, tuple[int, int], object]
"""Kind, (process, number of the bar), content."""


class ProcessEngine:
    """Jobs side by side in processes that share the processors evenly.

    Small backbones on a CPU gain from it: most of their time is spent between matrix products that are too
    small for several threads. Functions and jobs are pickled. Processes are spawned, not forked, and end with
    this one, however it ends. ``threads`` are those of torch in each; None for jobs that need no torch, which
    then is not imported.
    """

    def __init__(self, processes: int, threads: int | None) -> None:
        self._processes = processes
        self._threads = threads

    def map(
        self, function: Callable[[Work, Reporter], Result], jobs: Sequence[Work], report: Reporter
    ) -> list[Result]:
        """Results in order; what the processes report is passed on to ``report``."""
        context = multiprocessing.get_context("spawn")
        queue: Queue[Message | None] = context.Queue()
        relay = threading.Thread(target=_relay, args=(queue, report), daemon=True)
        relay.start()
        queue.cancel_join_thread()  # a process that was killed while it wrote leaves the queue locked
        life, hold = context.Pipe(duplex=False)
        initial = (queue, self._threads, life)
        try:
            with ProcessPoolExecutor(self._processes, context, _start, initial) as pool:
                try:
                    with _without_main():
                        futures = [pool.submit(partial(_work, function), job) for job in jobs]
                    return [future.result() for future in futures]
                except BrokenProcessPool:
                    raise  # the pool ends the jobs itself, and hangs where some are cancelled meanwhile
                except KeyboardInterrupt:
                    hold.close()
                    raise
                except BaseException:
                    pool.shutdown(wait=False, cancel_futures=True)
                    raise
        except BrokenProcessPool as error:
            raise WorkerDiedError(
                "a process of the run was ended from outside, perhaps for lack of memory; try "
                "--workers 1 or a smaller --batch-size; what is finished is kept"
            ) from error
        finally:
            hold.close()
            life.close()
            queue.put(None)
            relay.join(timeout=5)


@contextmanager
def _without_main() -> Iterator[None]:
    """Processes that start meanwhile do not run the user's script, which may lack a guard, a second time."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _start(queue: "Queue[Message | None]", threads: int | None, life: Connection) -> None:
    """Prepare a process: its share of the processors, its way to report, and its end with the parent.

    The parent alone holds the other end of ``life``: that is closed when it stops, and by the system when it
    is killed. (An event would not do: setting it waits for all who wait for it, also for those killed.)
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the parent tells them
    if threads is not None:
        import torch

        torch.set_num_threads(threads)
    _Relayed.queue = queue

    def watch() -> None:
        with suppress(EOFError, OSError):
            life.recv_bytes()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _work(function: Callable[[Work, Reporter], Result], job: Work) -> Result:
    return function(job, _Relayed())


class _Relayed:
    """Reports to the parent process."""

    queue: "Queue[Message | None]"
    _numbers = count()

    @contextmanager
    def bar(self, title: str, total: int, unit: str) -> Iterator[Advance]:
        """A stage, shown by the parent."""
        key = os.getpid(), next(self._numbers)
        self.queue.put(("start", key, (title, total, unit)))
        try:
            yield lambda amount: self.queue.put(("advance", key, amount))
        finally:
            self.queue.put(("stop", key, None))

    def say(self, line: str) -> None:
        """A line, printed by the parent."""
        self.queue.put(("say", (os.getpid(), 0), line))


def _relay(queue: "Queue[Message | None]", report: Reporter) -> None:
    """Do in this process what the others report, until None comes."""
    open_bars: dict[tuple[int, int], tuple[AbstractContextManager[Advance], Advance]] = {}
    while (message := queue.get()) is not None:
        kind, key, content = message
        if kind == "start":
            bar = report.bar(*content)  # type: ignore[misc]
            open_bars[key] = bar, bar.__enter__()
        elif kind == "advance":
            open_bars[key][1](content)  # type: ignore[arg-type]
        elif kind == "stop":
            open_bars.pop(key)[0].__exit__(None, None, None)
        else:
            report.say(str(content))
