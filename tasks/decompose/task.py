"""The steps between two protocols of a task as protocols of their own, for one run of the task by all rules.

Every rule is scored as the task itself does. Rules with the same view share a pass, and the grids that are
kept of it.
"""

from dataclasses import dataclass, replace
from functools import cached_property

from layerboard.tasks.decompose.paths import End, Read, Steps, steps_between
from layerboard.tasks.framework.protocols import EvaluationProtocol, find_protocol
from layerboard.tasks.framework.registry import TaskEntry, config_of, find_tasks
from layerboard.tasks.framework.task import Task
from layerboard.tasks.framework.transforms import parse_transform
from layerboard.tasks.keypoints.task import KeypointTask
from layerboard.tasks.propagation.task import PropagationTask
from layerboard.zoo.errors import InputError, shortened

RULES = ("spair", "davis")  # tasks whose protocols can be decomposed


@dataclass(frozen=True, slots=True)
class Given:
    """A protocol, and the features that it uses, as in `tasks.decompose.paths.End`."""

    protocol: EvaluationProtocol
    tap: Read = "block"
    transform: str = ""

    @classmethod
    def of(cls, name: str) -> "Given":
        """The protocol and features of a `name`, such as ``insid3+final+debias:20``; raises InputError."""
        protocol, *features = name.split("+")
        tap: Read = "final" if features[:1] == ["final"] else "block"
        transforms = features[tap == "final" :]
        try:
            (transform,) = map(parse_transform, transforms) if transforms else ("",)
        except (InputError, ValueError):
            example = "insid3 or insid3+final"
            raise InputError(f"expected a protocol, such as {example}; found {shortened(name)}") from None
        return cls(find_protocol(protocol), tap, transform)

    @property
    def name(self) -> str:
        """Name of the protocol, and of its features if they are not the usual ones."""
        tap = "" if self.tap == "block" else f"+{self.tap}"
        return f"{self.protocol.name}{tap}" + (f"+{self.transform}" if self.transform else "")

    def end(self, task: str) -> End:
        """Its rule for a task, with these features; raises InputError if grids cannot take the transform."""
        if self.transform:
            raise InputError(f"{task} is scored on tokens, and {self.transform} acts on vectors of images")
        return End(config_of(self.protocol, task), self.tap, self.transform)


def task_steps(task: str, first: Given, second: Given) -> Steps:
    """The steps between two protocols of a task, and between the features that they use.

    Raises:
        InputError: The task has no such rules, a protocol does not define it, a transform does not act on
            tokens, or nothing differs.
    """
    if task not in RULES:
        raise InputError(f"protocols of {' and '.join(RULES)} can be decomposed, not of {task}")
    for protocol in (first.protocol, second.protocol):
        if not protocol.covers(task):
            raise InputError(
                f"the protocol {protocol.name} is of {', '.join(protocol.tasks or ())}, not of {task}"
            )
    steps = steps_between(first.end(task), second.end(task))
    if not steps.choices:
        raise InputError(f"{first.name} and {second.name} do the same in {task}")
    return steps


def steps_protocols(task: str, steps: Steps, first: Given, second: Given) -> dict[int, EvaluationProtocol]:
    """A protocol for each rule and transform of the steps, by the number of the first stop that has it."""
    name = f"{first.name}-to-{second.name}".replace(":", "-")  # also used in file names
    return {
        number: replace(
            first.protocol,
            name=f"{name}-{number}",
            tasks=None,
            overrides=((f"{task}-steps", steps.stops[number].rule),),
            transform=steps.stops[number].transform,
        )
        for number in sorted({*steps.scored})
    }


class AllImagesTask(KeypointTask):
    """Keypoint correspondence that is shown the images of all pairs, so that other draws share its passes."""

    @cached_property
    def images(self) -> dict[str, tuple[int, ...]]:
        return KeypointTask(self.data, replace(self.config, draw=None)).images


def _entry(task: str, code: type[Task]) -> TaskEntry:
    """The entry of a task, scored by the rules between two protocols; no page ranks its numbers."""
    (entry,) = find_tasks([task])
    return replace(entry, name=f"{task}-steps", code=code, analysis=True, default=False)


spair = _entry("spair", AllImagesTask)
davis = _entry("davis", PropagationTask)
