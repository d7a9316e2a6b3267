"""Tasks once more, on features that were transformed first; what makes no sense is refused in a sentence."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from benchmark.plan.bound import (
    AnalysisTask,
    BoundTask,
    BoundTasks,
    FedTask,
    MeasuredTask,
    VectorTask,
)
from benchmark.plan.once_more import Way, join_once_more
from tasks.feeds import GridFeed
from tasks.transformed import Fitting, TransformedProblem, TransformRule
from tasks.transforms import Transform, parse_transform

GRIDS_ALONE = "acts on the tokens of grids, and the task takes one vector an image"
VECTORS_ALONE = "is fitted on vectors of many images before the first is scored, and grids are never kept"
AS_THEY_ARE = "looks at features as they are"


def add_transformed(tasks: BoundTasks, transforms: Sequence[str], rules: Mapping[str, TransformRule]) -> None:
    """Join each task that takes a transform once more with it; the others are named as absent.

    Args:
        tasks: Those of a run, to which more are added.
        transforms: By name, as `tasks.transforms.parse_transform` reads them.
        rules: Their numbers by name of the protocol.

    Raises:
        InputError: No task takes one of them.
    """
    plain = tasks.every
    for transform in map(parse_transform, transforms):
        changed = partial(_by_its_protocol, transform=transform, rules=rules)
        option = f"--transform {transform}"
        way = Way(option, str(transform), partial(refusal, transform=transform), changed)
        join_once_more(tasks, plain, way)


def _by_its_protocol(task: BoundTask, transform: Transform, rules: Mapping[str, TransformRule]) -> BoundTask:
    """A task with a transform, by the numbers of the task's own protocol."""
    return transformed(task, transform, rules[task.subject.protocol])


def refusal(task: BoundTask, transform: Transform) -> str:
    """Why a task does not take a transform, as a phrase; "" if it does."""
    if isinstance(task, VectorTask):
        if not isinstance(task.problem, Fitting):
            return "does not say which images a transform may be fitted on"
        return GRIDS_ALONE if transform.of_tokens else ""
    if isinstance(task, MeasuredTask | AnalysisTask) and _takes_grids(task):
        return "" if transform.of_tokens else VECTORS_ALONE
    return AS_THEY_ARE


def transformed(task: BoundTask, transform: Transform, rule: TransformRule) -> BoundTask:
    """A task that takes a transform, with it; it keeps no examples, which the plain one has."""
    subject = replace(task.subject, transform=str(transform))
    if isinstance(task, VectorTask):
        assert isinstance(task.problem, Fitting)
        problem = TransformedProblem(task.problem, task.problem.fitted_on, transform, rule)
        return replace(task, subject=subject, problem=problem, examples=None)
    if isinstance(task, MeasuredTask):
        return replace(task, subject=subject, examples=None)
    assert isinstance(task, AnalysisTask)
    return replace(task, subject=subject)


def _takes_grids(task: FedTask) -> bool:
    """Whether all that it is fed are grids, and it is an analysis only if it says that it takes others."""
    if isinstance(task, AnalysisTask) and not task.transforms:
        return False
    return all(isinstance(problem.feed, GridFeed) for problem in task.measured_problems)
