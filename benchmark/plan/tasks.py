"""The tasks of a run: those with data, also on transformed features and on layer sets."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from layerboard.tasks.framework.registry import DRIFT
from layerboard.tasks.framework.task import Needs, Task
from layerboard.zoo.errors import InputError


@dataclass
class Unbound:
    """A task without data, and why."""

    task: str
    reason: str

    def __str__(self) -> str:
        return f"{self.task}: {self.reason}"


@dataclass
class PlannedTasks:
    """Tasks with data, tasks with missing data, and tasks with wrong data."""

    every: list[Task] = field(default_factory=list)  # tasks with data, in the order of the registry
    absent: list[Unbound] = field(default_factory=list)  # without data, or not run in a requested way
    broken: list[Unbound] = field(default_factory=list)
    understood: list[str] = field(default_factory=list)  # how folders of own images were understood, in words

    def take(self, other: "PlannedTasks") -> None:
        """Append others; tasks without images, and repeated messages about data, are kept once."""
        there = {task.entry.name for task in self.every}
        self.every += [task for task in other.every if task.sources or task.entry.name not in there]
        self.absent += [task for task in other.absent if task not in self.absent]
        self.broken += [task for task in other.broken if task not in self.broken]
        self.understood += [line for line in other.understood if line not in self.understood]

    def needing(self, needs: Needs) -> list[Any]:
        """Tasks whose scores are made from ``needs``."""
        return [task for task in self.every if task.needs == needs]

    def add(self, option: str, name: str, ways: Sequence[tuple[Task, str]]) -> None:
        """Add tasks in a variant way, or the reasons why not; raises InputError if none has it."""
        self.every += [task for task, reason in ways if not reason]
        reasons = {task.entry.name: reason for task, reason in ways}
        taken = {task.entry.name for task, reason in ways if not reason}  # under some protocol
        if ways and not taken:
            said = "; ".join(f"{task}: it {reason}" for task, reason in reasons.items())
            raise InputError(f"{option} fits no task of this run: {said}")
        # of analyses, and of the drift that several formats bring along, nobody expects it
        ranked = {task.entry.name for task, _ in ways if not task.entry.analysis} - {DRIFT}
        self.absent += [
            Unbound(f"{task} with {name}", reason)
            for task, reason in reasons.items()
            if reason and task in ranked - taken
        ]
