"""The steps between two protocols as tasks of a plan: one for each view, all rules of it on the same pass."""

from dataclasses import dataclass

from tasks.decompose import KeypointSteps, PropagationSteps, StepsConfig, StepsTask
from tasks.keypoints.config import KeypointConfig
from tasks.paths import End, Read, Steps, steps_between
from tasks.propagation.config import PropagationConfig
from tasks.protocols import EvaluationProtocol
from tasks.registry import Role, TaskEntry, config_of
from tasks.transforms import parse_transform
from zoo.errors import InputError
from zoo.view.views import View

RULES = ("spair", "davis")
"""Tasks whose protocols can be decomposed."""


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
        return End(config_of(self.protocol, task), self.tap, self.transform)


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
    steps = steps_between(first.end(task), second.end(task))
    if not steps.choices:
        raise InputError(f"{first.name} and {second.name} do the same in {task}")
    return steps


def steps_protocols(task: str, steps: Steps, first: Given, second: Given) -> tuple[EvaluationProtocol, ...]:
    """One protocol for each view, and for each transform of its features, among the stops of the steps."""
    scored = [(number, steps.stops[number]) for number in sorted({*steps.scored})]
    groups: dict[tuple[View, str], list[tuple[int, KeypointConfig | PropagationConfig]]] = {}
    for number, stop in scored:
        groups.setdefault((stop.rule.view, stop.transform), []).append((number, stop.rule))
    name = f"{first.name}-to-{second.name}".replace(":", "-")  # which names files, too
    return tuple(
        EvaluationProtocol(
            name=f"{name}-{number}",
            title=first.protocol.title,
            tasks=None,
            unlike=first.protocol.unlike,
            own=((f"{task}-steps", StepsConfig(tuple(rules), transform)),),
        )
        for number, ((_, transform), rules) in enumerate(groups.items())
    )


def _entry(task: str, role: Role, data: str, code: type[StepsTask]) -> TaskEntry:
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
        code=code,
    )


spair = _entry("spair", "keypoints", "SPair-71k test", KeypointSteps)
davis = _entry("davis", "videos", "DAVIS-2017 val", PropagationSteps)


def reference(task: str) -> str:
    """Where the task of the steps is found, as `tasks.registry.find_tasks` takes it."""
    return f"{__name__}:{task}"
