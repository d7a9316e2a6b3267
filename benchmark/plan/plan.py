"""The plan: the fewest passes that show every task what it needs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from leaderboards.records.files import task_key
from tasks.base import DenseProblem, MeasuredProblem, Source, VectorProblem
from tasks.cka import CkaProblem
from tasks.datasets.base import Coverage
from tasks.registry import TaskEntry
from zoo.spec import BackboneSpec
from zoo.view.views import Tiles, View, WholeFrame

Problem = VectorProblem | DenseProblem | CkaProblem
"""A task with its data."""


@dataclass(frozen=True, eq=False)
class BoundTask:
    """A task on a dataset; two are the same if their keys are.

    Attributes:
        task: The task.
        problem: The task with its data.
        dataset: Name of the dataset.
        split: What was read of it.
        coverage: How complete it is.
        protocol: Protocol of the numbers.
    """

    task: TaskEntry
    problem: Problem
    dataset: str
    split: str
    coverage: Coverage
    protocol: str = "standard"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BoundTask) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def key(self) -> str:
        """Name of its files."""
        return task_key(self.task.name, self.dataset, self.protocol)

    @property
    def vector_sources(self) -> tuple[Source, ...]:
        """Sources whose vectors it scores."""
        if isinstance(self.problem, CkaProblem):
            return (self.problem.source,)
        return self.vector.sources if self.task.kind == "vector" else ()

    @property
    def vector(self) -> VectorProblem:
        """The problem of a vector task."""
        assert self.task.kind == "vector"
        return cast("VectorProblem", self.problem)

    @property
    def dense(self) -> DenseProblem:
        """The problem of a dense task."""
        assert self.task.kind == "dense"
        return cast("DenseProblem", self.problem)

    @property
    def measured(self) -> MeasuredProblem | None:
        """The problem if it is fed grids."""
        return None if self.task.kind == "vector" else cast("MeasuredProblem", self.problem)


@dataclass(frozen=True)
class Pass:
    """One source, shown once to a backbone for every task that looks at it."""

    source: Source
    view: View
    dense: tuple[BoundTask, ...]


@dataclass(frozen=True)
class BackbonePlan:
    """What one backbone does."""

    spec: BackboneSpec
    passes: tuple[Pass, ...]
    tasks: tuple[BoundTask, ...]

    @property
    def images(self) -> int:
        """Images through the backbone if nothing is stored yet."""
        return sum(len(one.source.samples) for one in self.passes)


@dataclass(frozen=True)
class Plan:
    """A run: what each backbone does, and what is compared across them afterwards."""

    backbones: tuple[BackbonePlan, ...]
    comparisons: tuple[BoundTask, ...]


def view_for(spec: BackboneSpec, view: View) -> View:
    """A view at a backbone's input size; whole frames in tiles where it takes images of one size only."""
    scaled = view.scaled(spec.input_size, spec.patch_size)
    if spec.fixed_size and isinstance(scaled, WholeFrame):
        return Tiles(max(scaled.short, spec.input_size), spec.input_size, spec.patch_size)
    return scaled


def make_plan(specs: Sequence[BackboneSpec], tasks: Sequence[BoundTask]) -> Plan:
    """Group the tasks by the sources that they look at: one pass for each source and backbone."""
    comparisons = tuple(task for task in tasks if task.task.kind == "comparison")
    scored = tuple(task for task in tasks if task.task.kind != "comparison")
    sources: dict[str, Source] = {}
    dense: dict[str, list[BoundTask]] = {}
    for task in tasks:
        for source in task.vector_sources:
            sources[source.name] = source
        if task.measured is not None:
            source = task.measured.source
            sources[source.name] = source
            dense.setdefault(source.name, []).append(task)
    return Plan(
        backbones=tuple(
            BackbonePlan(
                spec,
                tuple(
                    Pass(
                        source,
                        view_for(spec, source.view),
                        tuple(dense.get(name, ())),
                    )
                    for name, source in sources.items()
                ),
                scored,
            )
            for spec in specs
        ),
        comparisons=comparisons,
    )
