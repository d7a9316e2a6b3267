"""Jobs side by side in processes of this machine."""

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

from layerboard.benchmark.engines.base import (
    Engine,
    Job,
    JobQueue,
    Result,
    Work,
    Worker,
    WorkerDiedError,
    WorkerSlot,
)
from layerboard.benchmark.engines.progress import Listening, Message, Relayed, Reporter
from layerboard.zoo.errors import InputError

_CONTEXT = multiprocessing.get_context("spawn")

LISTEN = 0.05  # seconds after which a listener looks whether all is over, if nothing is said

_function: list[Callable[[Any], Any]] = []  # of a process that was started: what it makes of a job


class ProcessEngine(Engine):
    """Jobs side by side in processes that share the processors evenly, or have a device each.

    Small backbones on a CPU gain from it: most of their time is spent between matrix products that are too
    small for several threads. Functions and jobs are pickled. Processes are spawned, not forked, and end with
    this one, however it ends. Each has so many threads of torch, which for None is not imported, and one of
    the devices, or without any those that its jobs say.
    """

    def __init__(self, processes: int, threads: int | None, devices: Sequence[str] = ()) -> None:
        self._threads = threads
        # their jobs decode in as many threads as they say, unless each has a device to itself
        self._slots = [WorkerSlot(device, threads) for device in devices] or [WorkerSlot()] * processes
        self.workers = len(self._slots)

    def carry_out(self, function: Work[Job, Result], jobs: JobQueue[Job, Result], report: Reporter) -> None:
        # this process only reads: a writer's thread of its own would let go of the queue's semaphores at some
        # time, and where the script ends at that moment, that looks like a leak of them
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
        # processes do not run the user's script, which may lack a guard, a second time
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


class _Process(Worker[Job, Result]):
    def __init__(self, slot: WorkerSlot, *start: Any) -> None:  # noqa: ANN401  # what `_started` takes
        self.slot = slot
        # the process watches one end and holds no other: when this process stops, that is closed, and by the
        # system when it is killed. (An event would not do: setting it waits for all who wait for it, also for
        # those killed.)
        self._life, self._hold = _CONTEXT.Pipe(duplex=False)
        self._pool = ProcessPoolExecutor(1, _CONTEXT, _started, (self._life, *start))
        self._pool.submit(os.getpid)  # starts it
        self._busy = False

    def do(self, job: Job) -> Result:
        self._busy = True
        try:
            result: Result = self._pool.submit(_do, pickle.dumps(job)).result()
        except BrokenProcessPool as error:
            raise WorkerDiedError(
                "a process of the run was ended from outside, perhaps for lack of memory; try "
                "--workers 1 or a smaller --batch-size; what is finished is kept"
            ) from error
        self._busy = False
        return result

    def end(self) -> None:
        """The process ends, whatever it does; one that does nothing has sent its last report before."""
        if self._busy:
            self._hold.close()
        self._pool.shutdown()
        self._hold.close()
        self._life.close()


def _started(life: Connection, queue: "Queue[Message]", threads: int | None, function: bytes) -> None:
    """Prepare a process: its share of the processors, its way to report, and its end with the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes; the parent tells them

    def watch() -> None:
        with suppress(EOFError, OSError):
            life.recv_bytes()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    if threads is not None:
        import torch

        torch.set_num_threads(threads)
    call, report = pickle.loads(function), Relayed(queue.put, os.getpid())  # noqa: S301  # the parent's
    _function.append(lambda job: call(job, report))


def _do(job: bytes) -> Any:  # noqa: ANN401  # what the function gives
    # a job that cannot be read here raises, where the pool itself would only break
    return _function[0](pickle.loads(job))  # noqa: S301  # the parent's


def _relay(queue: "Queue[Message]", over: threading.Event, report: Reporter) -> None:
    """Do in this process what the others report, until it is over and nothing more comes."""
    here = Listening(report)
    while True:
        try:
            here.hear(queue.get(timeout=LISTEN))
        except Empty:
            if over.is_set():
                return
