"""The one scheduler of all engines: each worker has a thread here, which takes its jobs from the desk."""

import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Generic

from benchmark.engines.base import Desk, Job, Place, Result, WorkerDiedError, WorkerLostError

LOSSES = 3
"""A job whose worker is lost so often ends the run: it may be the reason."""

PAUSE = 1.0
"""Seconds after which a worker without a job looks again whether all is over."""


class Worker(ABC, Generic[Job, Result]):
    """Does one job after another: in this process, in another one, or on another machine.

    Attributes:
        place: Where.
    """

    place = Place()

    def ready(self) -> bool:
        """Whether it can take a job; waits a moment for that."""
        return True

    @abstractmethod
    def do(self, job: Job) -> Result:
        """The result of a job.

        Raises:
            WorkerLostError: The worker is gone; it becomes ready again where there is another in its place.
        """

    @abstractmethod
    def end(self) -> None:
        """Stop at once, whatever it does."""


def dispatch(workers: Sequence[Worker[Job, Result]], desk: Desk[Job, Result]) -> None:
    """Let workers do what is on a desk, and end them; what one of them raises ends all, and is raised."""
    desk.open([worker.place for worker in workers])
    floor, threads = _Floor(desk), []
    try:
        if len(workers) == 1:
            floor.serve(0, workers[0])  # here, where Ctrl-C reaches it
        else:
            for each in enumerate(workers):
                threads.append(threading.Thread(target=floor.serve, args=each, daemon=True))
                threads[-1].start()
            floor.wait()
    except BaseException as error:
        floor.stop(error)
    finally:
        for worker in workers:
            worker.end()
        for thread in threads:
            thread.join(PAUSE)
    if floor.error is not None:
        raise floor.error


class _Floor(Generic[Job, Result]):
    """What the threads share: the desk, its lock, and the first error."""

    def __init__(self, desk: Desk[Job, Result]) -> None:
        self._desk = desk
        self._changed = threading.Condition()
        self._lost: Counter[Hashable] = Counter()
        self.error: BaseException | None = None

    @property
    def over(self) -> bool:
        """Whether there is no job any more."""
        return self.error is not None or self._desk.over

    def wait(self) -> None:
        """Until all is over."""
        with self._changed:
            while not self.over:
                self._changed.wait()

    def stop(self, error: BaseException) -> None:
        """No job begins any more."""
        with self._changed:
            self.error = self.error or error
            self._changed.notify_all()

    def serve(self, number: int, worker: Worker[Job, Result]) -> None:
        """Give a worker jobs until all is over."""
        try:
            while not self.over:
                if worker.ready() and (taken := self._take(number)) is not None:
                    self._let_do(worker, *taken)
        except BaseException as error:
            self.stop(error)

    def _take(self, number: int) -> tuple[Hashable, Job] | None:
        with self._changed:
            if self.over:
                return None
            taken = self._desk.take(number)
            if taken is None:
                self._changed.wait(PAUSE)
            return taken

    def _let_do(self, worker: Worker[Job, Result], key: Hashable, job: Job) -> None:
        try:
            result = worker.do(job)
        except WorkerLostError as error:
            self._give_back(key, error)
            return
        with self._changed:
            self._desk.done(key, result)
            self._changed.notify_all()

    def _give_back(self, key: Hashable, error: WorkerLostError) -> None:
        with self._changed:
            self._lost[key] += 1
            if self._lost[key] == LOSSES:
                raise WorkerDiedError(
                    f"a piece of the work lost its worker {LOSSES} times ({error}), perhaps for lack of "
                    "memory; try a smaller --batch-size; what is finished is kept"
                ) from error
            self._desk.give_back(key)
            self._changed.notify_all()
