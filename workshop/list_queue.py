"""Independent jobs for an engine of the benchmark, and their results in order."""

from collections import deque
from collections.abc import Sequence

from layerboard.benchmark.engines.base import Engine, Job, JobQueue, Result, Work
from layerboard.benchmark.engines.progress import Reporter


class ListQueue(JobQueue[Job, Result]):
    """A queue of independent jobs, done in order."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self._jobs = jobs
        self._waiting = deque(range(len(jobs)))
        self.results: dict[int, Result] = {}

    @property
    def width(self) -> int:
        return len(self._jobs)

    @property
    def over(self) -> bool:
        return len(self.results) == len(self._jobs)

    def take(self, worker: int) -> tuple[int, Job] | None:
        del worker
        if not self._waiting:
            return None
        number = self._waiting.popleft()
        return number, self._jobs[number]

    def done(self, key: int, result: Result) -> None:
        self.results[key] = result

    def give_back(self, key: int) -> None:
        self._waiting.appendleft(key)


def results_in_order(
    engine: Engine, function: Work[Job, Result], jobs: Sequence[Job], report: Reporter
) -> list[Result]:
    """Results of a function on independent jobs, in the order of the jobs."""
    queue: ListQueue[Job, Result] = ListQueue(jobs)
    engine.run(function, queue, report)
    return [queue.results[number] for number in range(len(jobs))]
