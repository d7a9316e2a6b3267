"""What an engine is: workers that take jobs from one desk, wherever they compute."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from benchmark.engines.progress import Reporter

Job = TypeVar("Job")
Result = TypeVar("Result")

Function = Callable[[Job, Reporter], Result]
"""Does a job and reports meanwhile. Each worker is sent it once and keeps it, with what it remembers."""


class WorkerDiedError(RuntimeError):
    """A process of the run ended without a result."""


class WorkerLostError(RuntimeError):
    """A worker is gone, with what was unfinished of its job; another one may do it."""


@dataclass(frozen=True)
class Place:
    """Where a worker computes.

    Attributes:
        device: Its device, as it is called there; "": the one that its jobs name.
        threads: Its share of the processors; None: as many as its jobs name.
    """

    device: str = ""
    threads: int | None = None


class Desk(ABC, Generic[Job, Result]):
    """Where workers find their jobs. Its methods are never called at the same time."""

    def open(self, places: Sequence[Place]) -> None:
        """Hear where the workers are, before the first one comes."""

    @property
    @abstractmethod
    def width(self) -> int:
        """How many workers find something to do at the beginning."""

    @property
    @abstractmethod
    def over(self) -> bool:
        """Whether all is done."""

    @abstractmethod
    def take(self, worker: int) -> tuple[Hashable, Job] | None:
        """The next job of a worker, and what tells it from all others; None where none can begin now."""

    @abstractmethod
    def done(self, key: Hashable, result: Result) -> None:
        """Hear what came of a job."""

    @abstractmethod
    def give_back(self, key: Hashable) -> None:
        """Hear that the worker of a job was lost."""


class Engine(ABC):
    """Lets workers do what is on a desk.

    Attributes:
        workers: How many it has on this machine.
    """

    workers = 1

    @abstractmethod
    def carry_out(self, function: Function[Job, Result], desk: Desk[Job, Result], report: Reporter) -> None:
        """Do all that is on the desk; what fails ends it, and is raised."""

    def map(self, function: Function[Job, Result], jobs: Sequence[Job], report: Reporter) -> list[Result]:
        """Results of the function on independent jobs, in the jobs' order."""
        desk: Listed[Job, Result] = Listed(jobs)
        self.carry_out(function, desk, report)
        return [desk.results[number] for number in range(len(jobs))]


class Listed(Desk[Job, Result]):
    """A desk of independent jobs, done in their order."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self._jobs = jobs
        self._waiting = deque(range(len(jobs)))
        self.results: dict[int, Result] = {}

    @property
    def width(self) -> int:
        """As many as there are jobs."""
        return len(self._jobs)

    @property
    def over(self) -> bool:
        """Whether all have a result."""
        return len(self.results) == len(self._jobs)

    def take(self, worker: int) -> tuple[Hashable, Job] | None:
        """The next one and its number."""
        del worker
        if not self._waiting:
            return None
        number = self._waiting.popleft()
        return number, self._jobs[number]

    def done(self, key: Hashable, result: Result) -> None:
        """Keep a result."""
        assert isinstance(key, int)
        self.results[key] = result

    def give_back(self, key: Hashable) -> None:
        """It is the next one again."""
        assert isinstance(key, int)
        self._waiting.appendleft(key)
