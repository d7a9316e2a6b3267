"""Tasks joined with data: the eight kinds of them, and where each belongs in a run."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from benchmark.plan.identity import ground_truth, identity, short_digest
from leaderboards.records.files import changed_name, task_key
from tasks.analyses.base import GradientProblem, VectorsAnalysis, WeightsProblem
from tasks.analyses.cost import CostProblem
from tasks.base import (
    AnalysisProblem,
    MeasuredProblem,
    RememberingProblem,
    ScoredProblem,
    Source,
    VectorProblem,
)
from tasks.comparing import ComparisonProblem
from tasks.datasets.base import Coverage
from tasks.examples.draw import Pictured
from tasks.protocols import STANDARD
from tasks.registry import TaskEntry
from tasks.sets import sets_of
from zoo.spec import BackboneSpec, Layer


@dataclass(frozen=True)
class Subject:
    """A task, and the data and protocol that it is on.

    Attributes:
        entry: The task.
        protocol: Protocol of the numbers.
        dataset: Name of the dataset.
        split: What was read of it.
        coverage: How complete it is.
        transform: What is done to features before they are scored (`tasks.transforms`); "" for nothing.
        sets: Names of the sets of layers that are scored in place of layers (`tasks.sets`); none for layers.
    """

    entry: TaskEntry
    protocol: str
    dataset: str
    split: str
    coverage: Coverage
    transform: str = ""
    sets: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Name of the files that hold this task's results on this data."""
        return task_key(self.entry.name, self.dataset, self.protocol, self.transform, bool(self.sets))

    def scored(self, layers: Sequence[Layer], spec: BackboneSpec) -> tuple[Layer, ...]:
        """What of a backbone is scored where those layers are asked for: they, or the sets of them."""
        return sets_of(self.sets, spec.depth, layers) if self.sets else tuple(layers)


@dataclass
class Unbound:
    """A task without data, and why."""

    task: str
    reason: str

    def __str__(self) -> str:
        return f"{self.task}: {self.reason}"


@dataclass
class BoundTasks:
    """Tasks with data by kind, those whose data is not there, and those whose data is wrong.

    Attributes:
        understood: What was found in each folder of the user's own images, in words.
    """

    vector: "list[VectorTask]" = field(default_factory=list)
    described: "list[VectorsTask]" = field(default_factory=list)
    measured: "list[MeasuredTask]" = field(default_factory=list)
    analyses: "list[AnalysisTask]" = field(default_factory=list)
    gradients: "list[GradientTask]" = field(default_factory=list)
    inspections: "list[InspectTask]" = field(default_factory=list)
    comparisons: "list[Comparison]" = field(default_factory=list)
    costs: "list[CostTask]" = field(default_factory=list)
    absent: list[Unbound] = field(default_factory=list)
    broken: list[Unbound] = field(default_factory=list)
    understood: list[str] = field(default_factory=list)

    def take(self, other: "BoundTasks") -> None:
        """Add others, behind these; what is said twice of data is kept once."""
        for one in fields(self):
            own = getattr(self, one.name)
            own.extend(each for each in getattr(other, one.name) if each not in own)

    def without_repeats(self) -> None:
        """Keep what looks at no image once: it is the same by every protocol."""
        self.inspections = list({one.subject.entry.name: one for one in reversed(self.inspections)}.values())
        self.costs = list({one.subject.entry.name: one for one in reversed(self.costs)}.values())

    @property
    def scored(self) -> "list[BoundTask]":
        """Tasks that give scores of one backbone, in the order of the registry as far as they are in it."""
        return [*self.vector, *self.described, *self.measured, *self.analyses]

    @property
    def asked(self) -> "list[BoundTask]":
        """Tasks that ask one backbone something without one of the passes."""
        return [*self.gradients, *self.inspections]

    @property
    def every(self) -> "list[BoundTask]":
        """All tasks that have data, of every kind."""
        return [*self.scored, *self.comparisons, *self.asked, *self.costs]


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
    def listener(self) -> str:
        """Name of what listens to passes for it, which no other task has that looks at the same images."""
        name, protocol = self.subject.entry.name, self.subject.protocol
        named = name if protocol == STANDARD.name else f"{name} ({protocol})"
        return changed_name(named, self.subject.transform, bool(self.subject.sets))

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
        """What is fed by the pass over the source that is scored; None where nothing is."""
        return None

    @property
    def measured_problems(self) -> tuple[MeasuredProblem[Any], ...]:
        """What is fed by passes over sources, in the order that they must have: what it remembers first."""
        return () if self.measured_problem is None else (self.measured_problem,)

    def fed_by(self, source: Source) -> MeasuredProblem[Any] | None:
        """What is fed by the pass over a source; None where nothing is."""
        found = (one for one in self.measured_problems if one.source.name == source.name)
        return next(found, None)

    @property
    def pictured(self) -> Pictured | None:
        """The examples of which it keeps what was predicted; None where it keeps nothing."""
        return None

    @property
    def sources(self) -> tuple[Source, ...]:
        """Sources that it looks at, whoever shows them."""
        return self.vector_sources or tuple(problem.source for problem in self.measured_problems)

    @cached_property
    def data(self) -> str:
        """Short digest of what it looks at, the same on every machine and for every backbone."""
        return short_digest([identity(source) for source in self.sources], ground_truth(self))

    @abstractmethod
    def join(self, tasks: BoundTasks) -> None:
        """Put it where tasks of its kind are."""

    def concerns(self, spec: BackboneSpec) -> bool:
        """Whether it has something to do with a backbone; analyses, transforms and sets leave a floor out."""
        described = self.subject.entry.analysis or self.subject.transform or self.subject.sets
        return not (described and spec.is_floor)


@dataclass(frozen=True, eq=False)
class VectorTask(BoundTask):
    """A task that scores stored vectors.

    Attributes:
        problem: The task on its data.
        all_tokens: Whether the average of all tokens, the class token among them, is scored, too (pooling
            ``all``), where a backbone has a class token.
        examples: The examples of which it keeps what was predicted; None where it keeps nothing.
    """

    problem: VectorProblem
    all_tokens: bool = False
    examples: Pictured | None = None

    @property
    def pictured(self) -> Pictured | None:
        """The examples of which it keeps what was predicted."""
        return self.examples

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
class VectorsTask(BoundTask):
    """An analysis of stored vectors."""

    problem: VectorsAnalysis

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
        tasks.described.append(self)


@dataclass(frozen=True, eq=False)
class FedTask(BoundTask):
    """A task that is fed what a pass over one source shows, and leaves small arrays behind.

    Attributes:
        problem: The task on its data.
        pooling: What its records call what it is fed: ``grid``, or the tokens that ask (``patch``, ``cls``).
    """

    problem: MeasuredProblem[Any]
    pooling: str

    @property
    def fingerprint(self) -> str:
        """Digest of everything but the features that decides its numbers."""
        return self.problem.fingerprint

    @property
    def measured_problem(self) -> MeasuredProblem[Any]:
        """What is fed by the pass over its source."""
        return self.problem


@dataclass(frozen=True, eq=False)
class MeasuredTask(FedTask):
    """A task that scores each layer by what its groups left behind.

    Attributes:
        examples: The examples of which it keeps what was predicted; None where it keeps nothing.
    """

    problem: ScoredProblem[Any]
    pooling: str = "grid"
    examples: Pictured | None = None

    @property
    def pictured(self) -> Pictured | None:
        """The examples of which it keeps what was predicted."""
        return self.examples

    def join(self, tasks: BoundTasks) -> None:
        """Put it where tasks of its kind are."""
        tasks.measured.append(self)


@dataclass(frozen=True, eq=False)
class RememberingTask(MeasuredTask):
    """A measured task whose images are compared with those of a pass before."""

    problem: RememberingProblem[Any]

    @property
    def measured_problems(self) -> tuple[MeasuredProblem[Any], ...]:
        """What it remembers, then what is scored."""
        return self.problem.memory, self.problem


@dataclass(frozen=True, eq=False)
class AnalysisTask(FedTask):
    """An analysis, which says what it finds in all layers together.

    Attributes:
        transforms: Whether what it says of transformed tokens is worth having, too.
    """

    problem: AnalysisProblem[Any]
    pooling: str = "patch"
    transforms: bool = False

    def join(self, tasks: BoundTasks) -> None:
        """Put it where tasks of its kind are."""
        tasks.analyses.append(self)


@dataclass(frozen=True, eq=False)
class GradientTask(BoundTask):
    """An analysis of gradients, which looks at a few images in a pass of its own."""

    problem: GradientProblem

    @property
    def fingerprint(self) -> str:
        """Digest of everything but the backbone that decides its numbers."""
        return self.problem.fingerprint

    @property
    def sources(self) -> tuple[Source, ...]:
        """The images whose gradients it wants."""
        return (self.problem.source,)

    def join(self, tasks: BoundTasks) -> None:
        """Put it where tasks of its kind are."""
        tasks.gradients.append(self)


@dataclass(frozen=True, eq=False)
class InspectTask(BoundTask):
    """An analysis of weights, which looks at no image."""

    problem: WeightsProblem

    @property
    def fingerprint(self) -> str:
        """Digest of everything but the backbone that decides its numbers."""
        return self.problem.fingerprint

    def join(self, tasks: BoundTasks) -> None:
        """Put it where tasks of its kind are."""
        tasks.inspections.append(self)


@dataclass(frozen=True, eq=False)
class CostTask(BoundTask):
    """An analysis of time and memory, which is alone on the device while it measures."""

    problem: CostProblem

    @property
    def fingerprint(self) -> str:
        """Digest of everything but the backbone and the device that decides its numbers."""
        return self.problem.fingerprint

    def on(self, device: str) -> "CostTask":
        """The same on a device, whose name takes the place of a dataset's: each has files of its own."""
        return replace(self, subject=replace(self.subject, dataset=device))

    def join(self, tasks: BoundTasks) -> None:
        """Put it where tasks of its kind are."""
        tasks.costs.append(self)


@dataclass(frozen=True, eq=False)
class Comparison(BoundTask):
    """A task that compares the layers of several backbones, by stored vectors and by what was measured."""

    problem: ComparisonProblem[Any]

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

    def compares(self, first: BackboneSpec, second: BackboneSpec) -> bool:
        """Whether it has something to say of two backbones."""
        both = self.concerns(first) and self.concerns(second)
        return both and self.problem.compares(first, second)
