"""A task scored by several rules at once on the same features, for the steps between two protocols.

Every rule is scored exactly as the task itself would do. The rules share the pass, and for keypoints the
stored grids. The rules with the same view and transform form a task and a protocol of their own.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from layerboard.tasks.datasets.davis import Videos
from layerboard.tasks.datasets.spair import Keypoints
from layerboard.tasks.decompose.paths import End, Read, Steps, steps_between
from layerboard.tasks.framework.base import (
    FINITE,
    Findings,
    Group,
    Items,
    LayerOutcome,
    Measurements,
    Measurer,
    Outcome,
    Score,
    Settling,
    Source,
    Statistic,
    ceiling_metric,
    digest,
)
from layerboard.tasks.framework.protocols import EvaluationProtocol
from layerboard.tasks.framework.registry import PULL, TaskEntry, config_of
from layerboard.tasks.framework.task import AnalysisTask, MeasuredTask, Task
from layerboard.tasks.framework.transforms import of_tokens
from layerboard.tasks.keypoints.matching import CategoryMeasurer, KeptGrids, Matcher
from layerboard.tasks.keypoints.task import KeypointTask
from layerboard.tasks.propagation.task import PropagationTask
from layerboard.zoo.errors import InputError
from layerboard.zoo.spec import Layer
from layerboard.zoo.view.views import View

Kept = TypeVar("Kept")
Stops = tuple[tuple[int, End], ...]  # numbered ends with the same view and transform, which share a pass

RULES = ("spair", "davis")  # tasks whose protocols can be decomposed
CEILING = "ceiling"  # suffix for the upper bound of a rule's score


@dataclass(frozen=True, slots=True)
class Given:
    """A protocol, and the features that it uses, as in `tasks.paths.End`."""

    protocol: EvaluationProtocol
    tap: Read = "block"
    transform: str = ""

    @property
    def name(self) -> str:
        """Name of the protocol, and of its features if they are not the usual ones."""
        tap = "" if self.tap == "block" else f"+{self.tap}"
        return f"{self.protocol.name}{tap}" + (f"+{self.transform}" if self.transform else "")

    def end(self, task: str) -> End:
        """Its rule for a task, with these features; raises InputError if grids cannot take the transform."""
        if self.transform and not of_tokens(self.transform):
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


def steps_protocols(task: str, steps: Steps, first: Given, second: Given) -> tuple[EvaluationProtocol, ...]:
    """One protocol for each combination of view and transform among the stops of the steps."""
    groups: dict[tuple[View, str], Stops] = {}
    for number in sorted({*steps.scored}):
        stop = steps.stops[number]
        alike = stop.rule.view, stop.transform
        groups[alike] = (*groups.get(alike, ()), (number, stop))
    name = f"{first.name}-to-{second.name}".replace(":", "-")  # also used in file names
    return tuple(
        replace(first.protocol, name=f"{name}-{number}", tasks=None, overrides=((f"{task}-steps", stops),))
        for number, stops in enumerate(groups.values())
    )


def step_metric(number: int) -> str:
    """Name of the primary score by the rule with that number."""
    return f"step {number}"


@dataclass(frozen=True, eq=False)
class StepsTask(AnalysisTask):
    """A task scored by several rules with the same view: an analysis with one metric per rule."""

    config: Stops
    pooling = "grid"
    task: ClassVar[type[MeasuredTask]]

    @classmethod
    def by(cls, protocol: EvaluationProtocol, data: Any, row: TaskEntry) -> Task:  # noqa: ANN401
        """The task on ``data`` with the rules of a protocol made by `steps_protocols`."""
        stops: Stops | None = dict(protocol.overrides).get(row.name)
        if stops is None:
            raise InputError(f"{row.name} is run by `decompose` alone")
        return cls(data, stops, row=row, protocol=protocol.name, transform=stops[0][1].transform)

    @property
    def split(self) -> str:
        return str(self.task.split)

    @cached_property
    def tasks(self) -> Mapping[int, Any]:
        """The task with each rule, by the rule's number."""
        return {number: self.task(self.data, stop.rule) for number, stop in self.config}

    @abstractmethod
    def measurers(self, group: Group, view: View) -> list[Measurer[Tensor]]:
        """The measurers of a group, one for each rule."""

    @property
    def fingerprint(self) -> str:
        return digest("steps", 2, [(number, task.fingerprint) for number, task in self.tasks.items()])

    def measure(self, group: Group, view: View) -> Measurer[Tensor]:
        return _Together(dict(zip(self.tasks, self.measurers(group, view), strict=True)))

    def findings(self, measured: Mapping[Layer, Sequence[Measurements]]) -> Findings:
        """The primary score of each rule, layer by layer."""
        outcomes = ((layer, self._outcome(groups)) for layer, groups in measured.items())
        return Findings(tuple(LayerOutcome(layer, self.pooling, outcome) for layer, outcome in outcomes))

    def _outcome(self, groups: Sequence[Measurements]) -> Outcome:
        """Scores of one layer by all rules."""
        outcomes: dict[int, Outcome] = {
            number: task.score([_own(group, number) for group in groups])
            for number, task in self.tasks.items()
        }
        if empty := next((outcome.empty for outcome in outcomes.values() if outcome.empty), ""):
            return Outcome((), empty=empty)
        scores: list[Score] = []
        for number, outcome in outcomes.items():
            primary, step = self.tasks[number].config.primary, step_metric(number)
            names = {primary: step, PULL: f"{step} {PULL}", ceiling_metric(primary): f"{step} {CEILING}"}
            by_name = {score.metric: score for score in outcome.scores}
            scores += [replace(by_name[old], metric=new) for old, new in names.items() if old in by_name]
        return Outcome(tuple(scores), self._items(outcomes))

    def _items(self, outcomes: Mapping[int, Outcome]) -> Items | None:
        """The items of all rules, with a column of hits or means for each; NaN if a rule lacks an item."""
        there = {number: each.items for number, each in outcomes.items() if each.items is not None}
        if not there:
            return None
        facts = {
            key: (cluster, stratum)
            for items in there.values()
            for key, cluster, stratum in zip(items.keys, items.clusters, items.strata, strict=True)
        }
        row_of = {key: row for row, key in enumerate(facts)}
        values: dict[str, NDArray[np.float64]] = {}
        statistics: dict[str, Statistic] = {}
        for number, items in there.items():
            statistic, name = items.statistics[self.tasks[number].config.primary], step_metric(number)
            values[name] = np.full(len(row_of), np.nan)
            values[name][[row_of[key] for key in items.keys]] = items.values[statistic.column]
            statistics[name] = replace(statistic, column=name)
        clusters, strata = (tuple(fact[side] for fact in facts.values()) for side in (0, 1))
        return Items(next(iter(there.values())).unit, tuple(facts), clusters, strata, values, statistics)


@dataclass(frozen=True, eq=False)
class KeypointSteps(StepsTask):
    """Keypoint correspondence by several rules with the same view."""

    data: Keypoints
    task = KeypointTask

    @cached_property
    def source(self) -> Source:
        return self._widest.source

    def measurers(self, group: Group, view: View) -> list[Measurer[Tensor]]:
        grids, images = KeptGrids(users=len(self.config)), self._widest.images[group.key]
        return [
            CategoryMeasurer(Matcher(task.pairs[group.key], images, view, task.config), grids)
            for task in self.tasks.values()
        ]

    @cached_property
    def _widest(self) -> KeypointTask:
        """The task on all pairs."""
        return KeypointTask(self.data, replace(next(iter(self.tasks.values())).config, draw=None))


@dataclass(frozen=True, eq=False)
class PropagationSteps(StepsTask):
    """Mask propagation by several rules with the same view."""

    data: Videos
    task = PropagationTask

    @property
    def ground_truth(self) -> object:
        return digest(*self.data.truth)

    @cached_property
    def source(self) -> Source:
        source: Source = next(iter(self.tasks.values())).source
        return source

    def measurers(self, group: Group, view: View) -> list[Measurer[Tensor]]:
        return [task.measure(group, view) for task in self.tasks.values()]


class _Together:
    """Several measurers of one group, whose arrays are stored together."""

    def __init__(self, measurers: Mapping[int, Measurer[Tensor]]) -> None:
        self._measurers = measurers

    def update(self, layer: Layer, positions: Sequence[int], grids: Tensor) -> None:
        for measurer in self._measurers.values():
            measurer.update(layer, positions, grids)

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        arrays: dict[str, Tensor] = {}
        finite: list[Tensor] = []
        for number, measurer in self._measurers.items():
            finished = measurer.finish(layer)
            finite.append(finished.pop(FINITE).flatten())
            arrays |= {f"{number} {name}": array for name, array in finished.items()}
        return {**arrays, FINITE: torch.cat(finite)}

    def settle(self, finished: Mapping[Layer, Mapping[str, Tensor]]) -> dict[Layer, dict[str, Tensor]]:
        joined: dict[Layer, dict[str, Tensor]] = {layer: {} for layer in finished}
        for number, measurer in self._measurers.items():
            settled: Mapping[Layer, Mapping[str, Tensor]] = {
                layer: _own(arrays, number) for layer, arrays in finished.items()
            }
            if isinstance(measurer, Settling):
                settled = measurer.settle(settled)
            for layer, arrays in settled.items():
                joined[layer] |= {f"{number} {name}": array for name, array in arrays.items()}
        return joined


def _own(arrays: Mapping[str, Kept], number: int) -> dict[str, Kept]:
    """The arrays that belong to the rule with that number."""
    start = f"{number} "
    return {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}


def _entry(task: str, role: str, data: str, code: type[StepsTask]) -> TaskEntry:
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
