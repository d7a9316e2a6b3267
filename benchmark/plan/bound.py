"""Tasks joined with data: the four kinds of them, and where each belongs in a run."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from benchmark.plan.identity import ground_truth, identity, short_digest
from leaderboards.records.files import task_key
from tasks.base import AnalysisProblem, MeasuredProblem, ScoredProblem, Source, VectorProblem
from tasks.cka import CkaProblem
from tasks.datasets.base import Coverage
from tasks.registry import TaskEntry
from zoo.spec import BackboneSpec


@dataclass(frozen=True)
class Subject:
    """A task, and the data and protocol that it is on.

    Attributes:
        entry: The task.
        protocol: Protocol of the numbers.
        dataset: Name of the dataset.
        split: What was read of it.
        coverage: How complete it is.
    """

    entry: TaskEntry
    protocol: str
    dataset: str
    split: str
    coverage: Coverage

    @property
    def key(self) -> str:
        """Name of the files that hold this task's results on this data."""
        return task_key(self.entry.name, self.dataset, self.protocol)


@dataclass
class Unbound:
    """A task without data, and why."""

    task: str
    reason: str

    def __str__(self) -> str:
        return f"{self.task}: {self.reason}"


@dataclass
class BoundTasks:
    """Tasks with data by kind, those whose data is not there, and those whose data is wrong."""

    vector: "list[VectorTask]" = field(default_factory=list)
    measured: "list[MeasuredTask]" = field(default_factory=list)
    analyses: "list[AnalysisTask]" = field(default_factory=list)
    comparisons: "list[Comparison]" = field(default_factory=list)
    absent: list[Unbound] = field(default_factory=list)
    broken: list[Unbound] = field(default_factory=list)

    @property
    def scored(self) -> "list[BoundTask]":
        """Tasks that give scores of one backbone, in the order of the registry as far as they are in it."""
        return [*self.vector, *self.measured, *self.analyses]

    @property
    def every(self) -> "list[BoundTask]":
        """All tasks that have data, of every kind."""
        return [*self.scored, *self.comparisons]


@dataclass(frozen=True, eq=False)
class BoundTask(ABC):
    """A task on its data; what the plan asks of each kind.

    Attributes:
        subject: The task, its data and its protocol.
    """

    subject: Subject

    @property
    def key(self) -> str:
        """Name of its files; two tasks are the same if their keys are."""
        return self.subject.key

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Digest of everything but the features that decides its numbers."""

    @property
    def vector_sources(self) -> tuple[Source, ...]:
        """Sources whose stored vectors it takes."""
        return ()

    @property
    def measured_problem(self) -> MeasuredProblem[Any] | None:
        """What is fed by the pass over one source; None where nothing is."""
        return None

    @cached_property
    def data(self) -> str:
        """Short digest of what it looks at, the same on every machine and for every backbone."""
        measured = self.measured_problem
        sources = self.vector_sources or (() if measured is None else (measured.source,))
        return short_digest([identity(source) for source in sources], ground_truth(self))

    @abstractmethod
    def join(self, tasks: BoundTasks) -> None:
        """Put it where tasks of its kind are."""

    def concerns(self, spec: BackboneSpec) -> bool:
        """Whether it has something to do with a backbone: analyses describe no random floor."""
        return not (self.subject.entry.analysis and spec.is_floor)


@dataclass(frozen=True, eq=False)
class VectorTask(BoundTask):
    """A task that scores stored vectors."""

    problem: VectorProblem

    @property
    def fingerprint(self) -> str:
        """Digest of everything but the features that decides its numbers."""
        return self.problem.fingerprint

    @property
    def vector_sources(self) -> tuple[Source, ...]:
        """Sources whose stored vectors it takes."""
        return self.problem.sources

    def join(self, tasks: BoundTasks) -> None:
        """Put it where tasks of its kind are."""
        tasks.vector.append(self)


@dataclass(frozen=True, eq=False)
class MeasuredTask(BoundTask):
    """A task that is fed what a pass shows, leaves small arrays behind and scores each layer by them.

    Attributes:
        problem: The task on its data.
        pooling: What its records call what it is fed: ``grid``, or the tokens that ask (``patch``, ``cls``).
    """

    problem: ScoredProblem[Any]
    pooling: str = "grid"

    @property
    def fingerprint(self) -> str:
        """Digest of everything but the features that decides its numbers."""
        return self.problem.fingerprint

    @property
    def measured_problem(self) -> MeasuredProblem[Any]:
        """What is fed by the pass over its source."""
        return self.problem

    def join(self, tasks: BoundTasks) -> None:
        """Put it where tasks of its kind are."""
        tasks.measured.append(self)


@dataclass(frozen=True, eq=False)
class AnalysisTask(BoundTask):
    """An analysis, which is fed what a pass shows and leaves small arrays behind, of all layers together.

    Attributes:
        problem: The analysis on its data.
        pooling: What its records call what it looks at where a layer has no value.
    """

    problem: AnalysisProblem[Any]
    pooling: str = "patch"

    @property
    def fingerprint(self) -> str:
        """Digest of everything but the features that decides its numbers."""
        return self.problem.fingerprint

    @property
    def measured_problem(self) -> MeasuredProblem[Any]:
        """What is fed by the pass over its source."""
        return self.problem

    def join(self, tasks: BoundTasks) -> None:
        """Put it where tasks of its kind are."""
        tasks.analyses.append(self)


@dataclass(frozen=True, eq=False)
class Comparison(BoundTask):
    """A task that compares the layers of several backbones, by stored vectors and by what was measured."""

    problem: CkaProblem

    @property
    def fingerprint(self) -> str:
        """Digest of everything but the features that decides its numbers."""
        return self.problem.fingerprint

    @property
    def vector_sources(self) -> tuple[Source, ...]:
        """Sources whose stored vectors it takes."""
        return (self.problem.source,)

    @property
    def measured_problem(self) -> MeasuredProblem[Any]:
        """What is fed by the pass over its source."""
        return self.problem

    def join(self, tasks: BoundTasks) -> None:
        """Put it where tasks of its kind are."""
        tasks.comparisons.append(self)
