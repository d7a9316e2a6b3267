"""Tasks once more, on sets of layers in place of layers; what makes no sense is refused in a sentence."""

from collections.abc import Sequence
from dataclasses import replace

from benchmark.plan.bound import (
    BoundTask,
    BoundTasks,
    MeasuredTask,
    RememberingTask,
    VectorTask,
)
from benchmark.plan.once_more import Way, join_once_more
from tasks.fused import FusedProblem, FusedRememberingProblem, MeasuresSets
from tasks.sets import sets_of
from zoo.errors import InputError
from zoo.spec import BackboneSpec, Layer

VECTOR_TASKS = ("knn", "fewshot", "linear", "retrieval")
"""Tasks on vectors that take sets of layers, beside the user's own."""

SINGLE_LAYERS = "asks about single layers"
NO_MEAN = "does not compare tokens by their cosine"


def add_sets(tasks: BoundTasks, names: Sequence[str]) -> None:
    """Join each task that takes sets of layers once more with them; the others are named as absent.

    Args:
        tasks: Those of a run, to which more are added; transformed ones are fused, too.
        names: Of the sets, as `tasks.sets.parse_sets` gives them.

    Raises:
        InputError: No task takes them.
    """
    if not names:
        return
    option = f"--fuse {','.join(names)}"
    join_once_more(tasks, tasks.every, Way(option, option, refusal, lambda task: fused(task, tuple(names))))


def refusal(task: BoundTask) -> str:
    """Why a task does not take sets of layers, as a phrase; "" if it does."""
    entry = task.subject.entry
    if isinstance(task, VectorTask):
        return "" if entry.name in VECTOR_TASKS or entry.bind is not None else SINGLE_LAYERS
    if isinstance(task, MeasuredTask):
        return "" if isinstance(task.problem, MeasuresSets) else NO_MEAN
    return SINGLE_LAYERS


def fused(task: BoundTask, names: tuple[str, ...]) -> BoundTask:
    """A task that takes sets, with them; it keeps no examples, which the plain one has."""
    subject = replace(task.subject, sets=names)
    if isinstance(task, VectorTask):
        return replace(task, subject=subject, examples=None)
    assert isinstance(task, MeasuredTask)
    if isinstance(task, RememberingTask):
        return replace(task, subject=subject, problem=FusedRememberingProblem(task.problem, names))
    return replace(task, subject=subject, problem=FusedProblem(task.problem, names), examples=None)


def check_sets(names: Sequence[str], spec: BackboneSpec, layers: Sequence[Layer]) -> None:
    """Raise InputError where a backbone has no set of a name among the layers that are scored."""
    for name in names:
        if not spec.is_floor and not sets_of([name], spec.depth, layers):
            raise InputError(
                f"--fuse {name} needs blocks of {spec.name} that are not scored: at least two of its "
                f"{spec.depth}, and all of a set; leave --layers and --taps out, or that name"
            )
