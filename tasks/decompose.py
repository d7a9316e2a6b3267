"""One task by several rules at once, on the same features: what the steps between two protocols need.

Every rule is scored as the task itself would score it; what is shared is the pass, and of keypoints the grids
that are kept.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tasks.base import (
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
from tasks.datasets.davis import Videos
from tasks.datasets.spair import Keypoints
from tasks.keypoints.matching import CategoryMeasurer, KeptGrids, Matcher
from tasks.keypoints.task import PULL, KeypointTask
from tasks.propagation.task import PropagationTask
from tasks.protocols import EvaluationProtocol
from tasks.registry import TaskEntry
from tasks.task import AnalysisTask, MeasuredTask, Task
from zoo.errors import InputError
from zoo.spec import Layer
from zoo.view.views import View

Kept = TypeVar("Kept")

CEILING = "ceiling"
"""What is said beside a rule's score of how high it can be."""


def step_metric(number: int) -> str:
    """Name of the primary score by the rule of that number."""
    return f"step {number}"


@dataclass(frozen=True, slots=True)
class StepsConfig:
    """Some rules between two protocols, all of one view and of features that are transformed alike.

    Attributes:
        rules: The rules and their numbers.
        transform: What is done to features first; "" for nothing.
    """

    rules: tuple[tuple[int, Any], ...]
    transform: str


@dataclass(frozen=True, eq=False)
class StepsTask(AnalysisTask):
    """A task by several rules that show images alike; an analysis with one metric a rule."""

    config: StepsConfig
    pooling = "grid"

    @classmethod
    def by(cls, protocol: EvaluationProtocol, data: Any, row: TaskEntry) -> Task:  # noqa: ANN401
        """The task on data by the rules of a protocol that was made for them."""
        config = dict(protocol.own).get(row.name)
        if config is None:
            raise InputError(f"{row.name} is run by `decompose` alone")
        return cls(data, config, row=row, protocol=protocol.name, transform=config.transform)

    @property
    @abstractmethod
    def tasks(self) -> Mapping[int, MeasuredTask]:
        """The task by each rule, by the rule's number."""

    @property
    @abstractmethod
    def primary(self) -> Mapping[int, str]:
        """Primary metric of each rule."""

    @abstractmethod
    def measurers(self, group: Group, view: View) -> list[Measurer[Tensor]]:
        """What measures a group by each rule."""

    @property
    def fingerprint(self) -> str:
        return digest("steps", 2, [(number, task.fingerprint) for number, task in self.tasks.items()])

    def measure(self, group: Group, view: View) -> Measurer[Tensor]:
        return _Together(dict(zip(self.tasks, self.measurers(group, view), strict=True)))

    def findings(self, measured: Mapping[Layer, Sequence[Measurements]]) -> Findings:
        """The primary score of each rule, layer by layer."""
        return Findings(
            tuple(LayerOutcome(layer, "grid", self._outcome(groups)) for layer, groups in measured.items())
        )

    def _outcome(self, groups: Sequence[Measurements]) -> Outcome:
        """What all rules say of one layer."""
        outcomes = {
            number: task.score([_own(group, number) for group in groups])
            for number, task in self.tasks.items()
        }
        empty = next((outcome.empty for outcome in outcomes.values() if outcome.empty), "")
        if empty:
            return Outcome((), empty=empty)
        scores: list[Score] = []
        for number, outcome in outcomes.items():
            by_name = {score.metric: score for score in outcome.scores}
            scores.append(replace(by_name[self.primary[number]], metric=step_metric(number)))
            beside = {PULL: PULL, ceiling_metric(self.primary[number]): CEILING}
            scores += [
                replace(by_name[name], metric=f"{step_metric(number)} {ending}")
                for name, ending in beside.items()
                if name in by_name
            ]
        return Outcome(
            tuple(scores), self._items({number: outcome.items for number, outcome in outcomes.items()})
        )

    def _items(self, found: Mapping[int, Items | None]) -> Items | None:
        """The items of all rules, with a column of hits or means for each; NaN where a rule lacks an item."""
        there = {number: items for number, items in found.items() if items is not None}
        facts = {
            key: (cluster, stratum)
            for items in there.values()
            for key, cluster, stratum in zip(items.keys, items.clusters, items.strata, strict=True)
        }
        row_of = {key: row for row, key in enumerate(facts)}
        values: dict[str, NDArray[np.float64]] = {}
        statistics: dict[str, Statistic] = {}
        for number, items in there.items():
            statistic, name = items.statistics[self.primary[number]], step_metric(number)
            values[name] = np.full(len(row_of), np.nan)
            values[name][[row_of[key] for key in items.keys]] = items.values[statistic.column]
            statistics[name] = replace(statistic, column=name)
        if not there:
            return None
        clusters, strata = (tuple(fact[side] for fact in facts.values()) for side in (0, 1))
        return Items(next(iter(there.values())).unit, tuple(facts), clusters, strata, values, statistics)


@dataclass(frozen=True, eq=False)
class KeypointSteps(StepsTask):
    """Keypoint correspondence by several rules of one view."""

    data: Keypoints
    split = "test"

    @cached_property
    def tasks(self) -> Mapping[int, KeypointTask]:
        return {number: KeypointTask(self.data, rule) for number, rule in self.config.rules}

    @property
    def primary(self) -> Mapping[int, str]:
        return {number: rule.primary for number, rule in self.config.rules}

    @cached_property
    def source(self) -> Source:
        return self._widest.source

    def measurers(self, group: Group, view: View) -> list[Measurer[Tensor]]:
        grids, images = KeptGrids(users=len(self.config.rules)), self._widest.images[group.key]
        return [
            CategoryMeasurer(Matcher(task.pairs[group.key], images, view, task.config), (), grids)
            for task in self.tasks.values()
        ]

    @cached_property
    def _widest(self) -> KeypointTask:
        """The task on all pairs."""
        return KeypointTask(self.data, replace(self.config.rules[0][1], draw=None))


@dataclass(frozen=True, eq=False)
class PropagationSteps(StepsTask):
    """Mask propagation by several rules of one view."""

    data: Videos
    split = "val"

    @property
    def ground_truth(self) -> object:
        return digest(*self.data.truth)

    @cached_property
    def tasks(self) -> Mapping[int, PropagationTask]:
        return {number: PropagationTask(self.data, rule) for number, rule in self.config.rules}

    @property
    def primary(self) -> Mapping[int, str]:
        return {number: "J&F" for number, _ in self.config.rules}

    @cached_property
    def source(self) -> Source:
        return self.tasks[self.config.rules[0][0]].source

    def measurers(self, group: Group, view: View) -> list[Measurer[Tensor]]:
        return [task.measure(group, view) for task in self.tasks.values()]


class _Together:
    """Several measurers of one group, whose arrays are kept side by side."""

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
    """The arrays that belong to the rule of that number."""
    start = f"{number} "
    return {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}
