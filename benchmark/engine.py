"""Engines: where the independent parts of a plan run."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

Job = TypeVar("Job")
Result = TypeVar("Result")


class Engine(Protocol):
    """Runs independent jobs and gives their results in order."""

    def map(self, function: Callable[[Job], Result], jobs: Sequence[Job]) -> list[Result]:
        """Results of the function on every job, in the jobs' order."""
        ...


class LocalEngine:
    """One job after the other in this process; the device is busy with one backbone at a time."""

    def map(self, function: Callable[[Job], Result], jobs: Sequence[Job]) -> list[Result]:
        """Results in order."""
        return [function(job) for job in jobs]
