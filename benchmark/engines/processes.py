"""Jobs in parallel processes on this machine."""

import atexit
import gc
import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.queues import Queue
from queue import Empty
from types import ModuleType
from typing import Any

from layerboard.benchmark.engines import base
from layerboard.benchmark.engines.base import Job, JobQueue, Result, Work, WorkerDiedError, WorkerSlot
from layerboard.benchmark.engines.progress import Message, Reporter
from layerboard.zoo.errors import InputError
from layerboard.zoo.libraries import imports_explained

_CONTEXT = multiprocessing.get_context("spawn")

LISTEN = 0.05  # seconds between checks of a silent listener whether the run is over

_function: list[Callable[[Any], Any]] = []  # in a worker process: the function that it applies to jobs


class ProcessEngine(base.Engine):
    """Runs jobs in parallel processes that share the processors evenly, or have a device each.

    Small backbones on a CPU gain from it, because most of their time is spent between matrix products that
    are too small for several threads. Functions and jobs are pickled. Processes are spawned, not forked, and
    end with this one, however it ends. Each has the given number of threads of torch (None: torch is not
    imported), and one of the devices; without devices, jobs name their own.
    """

    def __init__(self, processes: int, threads: int | None, devices: Sequence[str] = ()) -> None:
        self._threads = threads
        # their jobs decode in as many threads as they say, unless each has a device to itself
        self._slots = [WorkerSlot(device, threads) for device in devices] or [WorkerSlot()] * processes
        self.workers = len(self._slots)

    def run(self, function: Work[Job, Result], jobs: JobQueue[Job, Result], report: Reporter) -> None:
        # This process only reads. A writer thread of its own would release the semaphores of the queue at an
        # unknown time; if the script ends at that moment, that looks like a leak of them.
        try:
            queue: Queue[Message] = _CONTEXT.Queue()
        except OSError as error:
            raise InputError(
                f"processes need memory that they share, and /dev/shm cannot be used ({error.strerror}); "
                "make it writable, or give --workers 1 --engine local"
            ) from error
        over = threading.Event()
        relay = threading.Thread(target=_relay, args=(queue, over, report), daemon=True)
        relay.start()
        start = queue, self._threads, pickle.dumps(function)
        # keeps processes from running the user's script, which may lack a main guard, a second time
        main, sys.modules["__main__"] = sys.modules["__main__"], ModuleType("__main__")
        try:
            try:
                workers = [_Process[Job, Result](slot, *start) for slot in self._slots[: jobs.width]]
            finally:
                sys.modules["__main__"] = main
            jobs.dispatch(workers)
        finally:
            over.set()
            relay.join(timeout=5)


class _Process(base.Worker[Job, Result]):
    def __init__(self, slot: WorkerSlot, *start: Any) -> None:  # noqa: ANN401  # arguments of `_started`
        self.slot = slot
        # The process watches one end of a pipe and holds no other: when this process stops, the other end is
        # closed, by the system if it was killed. (An event would not do: setting it waits for all waiters,
        # also for killed ones.)
        self._life, self._hold = _CONTEXT.Pipe(duplex=False)
        self._pool = ProcessPoolExecutor(1, _CONTEXT, _started, (self._life, *start))
        self._pool.submit(os.getpid)  # starts the process
        self._busy = False

    def do(self, job: Job) -> Result:
        self._busy = True
        try:
            result: Result = self._pool.submit(_do, pickle.dumps(job)).result()
        except BrokenProcessPool as error:
            raise WorkerDiedError(
                "a process of the run was ended from outside, perhaps for lack of memory; try "
                "--workers 1 or a smaller --batch-size; finished work is kept"
            ) from error
        self._busy = False
        return result

    def end(self) -> None:
        """End the process, whatever it is doing; an idle one has sent its last report."""
        if self._busy:
            self._hold.close()
        self._pool.shutdown()
        self._hold.close()
        self._life.close()


def _started(life: Connection, queue: "Queue[Message]", threads: int | None, function: bytes) -> None:
    """Set up a process: its share of the processors, its reports, and its end with the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the parent stops them

    def watch() -> None:
        with suppress(EOFError, OSError):
            life.recv_bytes()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    atexit.register(gc.freeze)  # as in the parent, so that it ends sooner
    if threads is not None:
        import torch

        torch.set_num_threads(threads)
    call, report = pickle.loads(function), Reporter(queue.put, os.getpid())  # noqa: S301  # the parent's
    _function.append(lambda job: call(job, report))


def _do(job: bytes) -> Any:  # noqa: ANN401  # what the function gives
    # a job that cannot be unpickled raises here; in the pool, it would only break the pool
    with imports_explained():  # here, since the frames of an error are not sent
        return _function[0](pickle.loads(job))  # noqa: S301  # the parent's


def _relay(queue: "Queue[Message]", over: threading.Event, report: Reporter) -> None:
    """Hand on the reports of the others, until the run is over and no report is left."""
    while True:
        try:
            report.send(queue.get(timeout=LISTEN))
        except Empty:
            if over.is_set():
                return
