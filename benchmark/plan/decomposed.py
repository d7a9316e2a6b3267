"""The steps between two protocols as tasks of a plan: one for each view, all rules of it on the same pass."""

from dataclasses import dataclass, fields
from typing import Any

from benchmark.plan.bound import AnalysisTask, Subject
from tasks.datasets.base import Keypoints, Videos
from tasks.decompose import KeypointSteps, PropagationSteps
from tasks.keypoints.rule import KeypointRule
from tasks.paths import Rule, Steps, steps_between
from tasks.propagation.rule import PropagationRule
from tasks.protocols import EvaluationProtocol
from tasks.registry import TaskEntry
from zoo.errors import InputError

RULES = {"spair": "keypoints", "davis": "propagation"}
"""Tasks whose protocols can be decomposed, and the field of a protocol that holds their rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepsProtocol(EvaluationProtocol):
    """Some rules between two protocols, all of one view.

    Attributes:
        rules: The rules and their numbers.
    """

    rules: tuple[tuple[int, Rule], ...]


def task_steps(task: str, first: EvaluationProtocol, second: EvaluationProtocol) -> Steps:
    """The steps between two protocols of a task.

    Raises:
        InputError: The task has no such rules, a protocol does not speak of it, or they do not differ.
    """
    if task not in RULES:
        raise InputError(f"protocols of {' and '.join(RULES)} can be decomposed, not of {task}")
    for protocol in (first, second):
        if not protocol.speaks_of(task):
            raise InputError(
                f"the protocol {protocol.name} is of {', '.join(protocol.tasks or ())}, not of {task}"
            )
    found = steps_between(getattr(first, RULES[task]), getattr(second, RULES[task]))
    if not found.choices:
        raise InputError(f"{first.name} and {second.name} do the same in {task}")
    return found


def steps_protocols(
    steps: Steps, first: EvaluationProtocol, second: EvaluationProtocol
) -> tuple[StepsProtocol, ...]:
    """One protocol for each view among the rules of the steps."""
    views = list(dict.fromkeys(rule.view for rule in steps.rules))
    shared = {one.name: getattr(first, one.name) for one in fields(EvaluationProtocol)}
    return tuple(
        StepsProtocol(
            **shared
            | {
                "name": f"{first.name}-to-{second.name}-{place}",
                "tasks": None,
                "rules": tuple(each for each in enumerate(steps.rules) if each[1].view == view),
            }
        )
        for place, view in enumerate(views)
    )


def _bind(entry: TaskEntry, data: Any, rules: EvaluationProtocol) -> AnalysisTask:  # noqa: ANN401
    """Bind the rules of a `StepsProtocol` to the data of their task."""
    if not isinstance(rules, StepsProtocol):
        raise InputError(f"{entry.name} is run by `decompose` alone")
    problem: KeypointSteps | PropagationSteps
    if isinstance(data, Keypoints):
        own = tuple((number, rule) for number, rule in rules.rules if isinstance(rule, KeypointRule))
        problem, split = KeypointSteps(data, own), "test"
    elif isinstance(data, Videos):
        ways = tuple((number, rule) for number, rule in rules.rules if isinstance(rule, PropagationRule))
        problem, split = PropagationSteps(data, ways), "val"
    else:
        raise InputError(f"{entry.name} has no rules for {type(data).__name__}")
    return AnalysisTask(Subject(entry, rules.name, data.name, split, data.coverage), problem, "grid")


def _entry(task: str, role: Any, data: str) -> TaskEntry:  # noqa: ANN401
    return TaskEntry(
        name=f"{task}-steps",
        role=role,
        title=f"{task} by all rules between two protocols",
        data=data,
        metrics=("step 0",),
        asks="Which choice of a protocol makes how much of the difference to another one?",
        measures="step 0: the primary metric by the first rule",
        analysis=True,
        default=False,
        bind=_bind,
    )


spair = _entry("spair", "keypoints", "SPair-71k test")
davis = _entry("davis", "videos", "DAVIS-2017 val")


def reference(task: str) -> str:
    """Where the task of the steps is found, as `tasks.registry.find_tasks` takes it."""
    return f"{__name__}:{task}"
