"""What an engine is: it carries out independent jobs, wherever."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from benchmark.engines.progress import Reporter

Work = TypeVar("Work")
Result = TypeVar("Result")


class WorkerDiedError(RuntimeError):
    """A process of the run ended without a result."""


class Engine(Protocol):
    """Runs independent jobs and gives their results in order."""

    def map(
        self, function: Callable[[Work, Reporter], Result], jobs: Sequence[Work], report: Reporter
    ) -> list[Result]:
        """Results of the function on every job, in the jobs' order."""
        ...
