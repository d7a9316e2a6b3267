"""Tasks that are run once more in another way: those that take it join, the others are named as absent."""

from collections.abc import Callable
from dataclasses import dataclass

from benchmark.plan.bound import BoundTask, BoundTasks, Unbound
from zoo.errors import InputError


@dataclass(frozen=True)
class Way:
    """Another way to run tasks.

    Attributes:
        option: The option that asks for it, as it is written.
        name: What it is called behind the name of a task.
        refusal: Why a task is not run so, as a phrase; "" if it is.
        changed: A task that is, run so.
    """

    option: str
    name: str
    refusal: Callable[[BoundTask], str]
    changed: Callable[[BoundTask], BoundTask]


def join_once_more(tasks: BoundTasks, plain: "list[BoundTask]", way: Way) -> None:
    """Join each task that is run in another way once more, so.

    Args:
        tasks: Those of a run, to which more are added.
        plain: Those that may be run so.
        way: How.

    Raises:
        InputError: No task is.
    """
    reasons = {task.subject.entry.name: way.refusal(task) for task in plain}
    takers = [task for task in plain if not way.refusal(task)]
    for task in takers:
        way.changed(task).join(tasks)
    if not takers and plain:
        said = "; ".join(f"{name}: it {reason}" for name, reason in reasons.items())
        raise InputError(f"{way.option} fits no task of this run: {said}")
    ranked = {task.subject.entry.name for task in plain if not task.subject.entry.analysis}
    taken = {task.subject.entry.name for task in takers}  # by one protocol, if not by another
    tasks.absent += [
        Unbound(f"{name} with {way.name}", reason)
        for name, reason in reasons.items()
        if reason and name in ranked - taken
    ]
