"""Engines, whose workers take jobs from one queue, and the scheduler that all engines share."""

import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from layerboard.benchmark.engines.progress import Reporter

Job = TypeVar("Job")
Result = TypeVar("Result")

Work = Callable[[Job, Reporter], Result]
"""Does a job and reports meanwhile. Each worker is sent it once and keeps it, with what it remembers."""

LOSSES = 3  # a job that loses its worker this often ends the run, since it may be the cause
PAUSE = 1.0  # seconds between checks of an idle worker whether the run is over


class WorkerDiedError(RuntimeError):
    """A process of the run ended without a result."""


class WorkerLostError(RuntimeError):
    """A worker was lost with the unfinished part of its job; another may redo it."""


@dataclass(frozen=True)
class WorkerSlot:
    """The place where a worker computes."""

    device: str = ""  # name of the device there; "": the one that its jobs name
    threads: int | None = None  # its share of the processors; None: as many as its jobs name


class JobQueue(ABC, Generic[Job, Result]):
    """The queue from which workers take jobs. No two of its methods are called at the same time."""

    def open(self, slots: Sequence[WorkerSlot]) -> None:
        """Learn where the workers are, before the first one asks for a job."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Number of workers that find work at the start."""

    @property
    @abstractmethod
    def over(self) -> bool:
        """Whether all jobs are done."""

    @abstractmethod
    def take(self, worker: int) -> tuple[int, Job] | None:
        """The next job of a worker and its unique key; None if no job can begin now."""

    @abstractmethod
    def done(self, key: int, result: Result) -> None:
        """Take the result of a job."""

    @abstractmethod
    def give_back(self, key: int) -> None:
        """Take back the job of a lost worker."""

    def dispatch(self, workers: "Sequence[Worker[Job, Result]]") -> None:
        """Let the workers do all jobs, then end them; an error of one worker stops all, and is raised."""
        self.open([worker.slot for worker in workers])
        shared = _SharedQueue(self)
        serve = shared.serve
        threads = [threading.Thread(target=serve, args=each, daemon=True) for each in enumerate(workers)]
        try:
            for thread in threads:
                thread.start()
            with shared.changed:
                shared.changed.wait_for(lambda: shared.over)  # in the main thread, which receives Ctrl-C
        except BaseException as error:
            shared.stop(error)
        finally:
            for worker in workers:
                worker.end()
            for thread in threads:
                if thread.is_alive():
                    thread.join(PAUSE)
        if shared.error is not None:
            raise shared.error


class Engine(ABC):
    """Carries out the jobs of a queue."""

    workers = 1  # on this machine

    @abstractmethod
    def run(self, function: Work[Job, Result], jobs: JobQueue[Job, Result], report: Reporter) -> None:
        """Do all jobs of a queue; the first error stops it, and is raised."""


class LocalEngine(Engine):
    """Runs one job after another in this process, with one backbone on the device at a time."""

    def run(self, function: Work[Job, Result], jobs: JobQueue[Job, Result], report: Reporter) -> None:
        jobs.open([WorkerSlot()])
        while (taken := jobs.take(0)) is not None:
            key, job = taken
            jobs.done(key, function(job, report))


class Worker(ABC, Generic[Job, Result]):
    """Does one job after another, in another process or on another machine."""

    slot: WorkerSlot

    def ready(self) -> bool:
        """Whether the worker can take a job; waits for a moment."""
        return True

    @abstractmethod
    def do(self, job: Job) -> Result:
        """The result of a job; raises WorkerLostError if the worker is gone or was replaced."""

    @abstractmethod
    def end(self) -> None:
        """Stop at once, whatever it is doing."""


class _SharedQueue(Generic[Job, Result]):
    """A queue shared by the threads of several workers, with its lock and the first error."""

    def __init__(self, queue: JobQueue[Job, Result]) -> None:
        self._queue = queue
        self._lost: Counter[int] = Counter()
        self.changed = threading.Condition()
        self.error: BaseException | None = None

    @property
    def over(self) -> bool:
        """Whether no further job begins."""
        return self.error is not None or self._queue.over

    def stop(self, error: BaseException) -> None:
        """Keep any further job from beginning."""
        with self.changed:
            self.error = self.error or error
            self.changed.notify_all()

    def serve(self, number: int, worker: Worker[Job, Result]) -> None:
        """Give a worker jobs until no further job begins."""
        try:
            while not self.over:
                if worker.ready():
                    with self.changed:
                        taken = None if self.over else self._queue.take(number)
                        if taken is None and not self.over:
                            self.changed.wait(PAUSE)
                    if taken is not None:
                        self._do(worker, *taken)
        except BaseException as error:
            if not self._queue.over:  # then nobody waits for it, and being ended may be its error
                self.stop(error)

    def _do(self, worker: Worker[Job, Result], key: int, job: Job) -> None:
        try:
            result = worker.do(job)
        except WorkerLostError as error:
            self._lost[key] += 1
            if self._lost[key] == LOSSES:
                raise WorkerDiedError(
                    f"a piece of the work lost its worker {LOSSES} times ({error}), perhaps for lack of "
                    "memory; try a smaller --batch-size; finished work is kept"
                ) from error
            with self.changed:
                self._queue.give_back(key)
                self.changed.notify_all()
        else:
            with self.changed:
                self._queue.done(key, result)
                self.changed.notify_all()
