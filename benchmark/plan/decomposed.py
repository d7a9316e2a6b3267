"""The steps between two protocols as tasks of a plan: one for each view, all rules of it on the same pass."""

from dataclasses import dataclass, fields
from typing import Any

from benchmark.plan.bound import AnalysisTask, Subject
from tasks.datasets.davis import Videos
from tasks.datasets.spair import Keypoints
from tasks.decompose import KeypointSteps, PropagationSteps
from tasks.keypoints.rule import KeypointRule
from tasks.paths import End, Read, Rule, Steps, steps_between
from tasks.propagation.rule import PropagationRule
from tasks.protocols import EvaluationProtocol
from tasks.registry import TaskEntry
from tasks.transforms import parse_transform
from zoo.errors import InputError

RULES = {"spair": "keypoints", "davis": "propagation"}
"""Tasks whose protocols can be decomposed, and the field of a protocol that holds their rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepsProtocol(EvaluationProtocol):
    """Some rules between two protocols, all of one view and of features that are transformed alike.

    Attributes:
        rules: The rules and their numbers.
        transform: What is done to features first; "" for nothing.
    """

    rules: tuple[tuple[int, Rule], ...]
    transform: str


@dataclass(frozen=True, slots=True)
class Given:
    """Which features a protocol is given in a task.

    Attributes:
        protocol: The protocol.
        tap: What is read of a backbone.
        transform: What is done to features first; "" for nothing.
    """

    protocol: EvaluationProtocol
    tap: Read = "block"
    transform: str = ""

    @property
    def name(self) -> str:
        """Name of the protocol, and of what its features are where that is not usual."""
        tap = "" if self.tap == "block" else f"+{self.tap}"
        return f"{self.protocol.name}{tap}" + (f"+{self.transform}" if self.transform else "")

    def end(self, task: str) -> End:
        """Its rule of a task with those features; raises InputError where grids do not take the transform."""
        if self.transform and not parse_transform(self.transform).of_tokens:
            raise InputError(f"{task} is scored on tokens, and {self.transform} acts on vectors of images")
        return End(getattr(self.protocol, RULES[task]), self.tap, self.transform)


def task_steps(task: str, first: Given, second: Given) -> Steps:
    """The steps between two protocols of a task, and between the features that each is given.

    Raises:
        InputError: The task has no such rules, a protocol does not speak of it, a transform is none of
            tokens, or nothing differs.
    """
    if task not in RULES:
        raise InputError(f"protocols of {' and '.join(RULES)} can be decomposed, not of {task}")
    for protocol in (first.protocol, second.protocol):
        if not protocol.speaks_of(task):
            raise InputError(
                f"the protocol {protocol.name} is of {', '.join(protocol.tasks or ())}, not of {task}"
            )
    found = steps_between(first.end(task), second.end(task))
    if not found.choices:
        raise InputError(f"{first.name} and {second.name} do the same in {task}")
    return found


def steps_protocols(steps: Steps, first: Given, second: Given) -> tuple[StepsProtocol, ...]:
    """One protocol for each view, and for each transform of its features, among the stops of the steps."""
    scored = [(number, steps.stops[number]) for number in sorted({*steps.scored})]
    kinds = list(dict.fromkeys((stop.rule.view, stop.transform) for _, stop in scored))
    shared = {one.name: getattr(first.protocol, one.name) for one in fields(EvaluationProtocol)}
    name = f"{first.name}-to-{second.name}".replace(":", "-")  # which names files, too
    return tuple(
        StepsProtocol(
            **shared
            | {
                "name": f"{name}-{place}",
                "tasks": None,
                "rules": tuple(
                    (number, stop.rule)
                    for number, stop in scored
                    if (stop.rule.view, stop.transform) == (view, transform)
                ),
                "transform": transform,
            }
        )
        for place, (view, transform) in enumerate(kinds)
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
    subject = Subject(entry, rules.name, data.name, split, data.coverage, rules.transform)
    return AnalysisTask(subject, problem, "grid")


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
