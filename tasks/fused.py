"""Tasks once more, on sets of layers (`tasks.sets`): of stored vectors, and of grids as they come."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from tasks.base import (
    Device,
    Group,
    MeasuredProblem,
    Measurements,
    Measurer,
    Outcome,
    RememberingProblem,
    ScoredProblem,
    Source,
    VectorProblem,
    digest,
)
from tasks.feeds import GridFeed
from tasks.metrics.fused import side_by_side
from tasks.sets import sets_of
from zoo.spec import BackboneSpec, Layer
from zoo.view.views import View

Vectors = Mapping[str, NDArray[np.float32]]
"""Vectors of a layer by name of the source, [images dim] each."""

MIXED = "its layers have grids of different sizes"
"""Why a set of layers has no cosine of tokens."""


@runtime_checkable
class ScoresSets(Protocol):
    """What a task on vectors offers that scores many sets for little more than their layers."""

    def score_sets(
        self, layers: Mapping[Layer, Vectors], sets: Sequence[Layer], device: Device = None
    ) -> list[Outcome]:
        """The task's scores of each set of layers, by the mean of their cosines.

        Args:
            layers: The finite vectors of every layer that is in a set; rows that are NaN are of images that
                could not be read.
            sets: The sets.
            device: Where large products may run; None for the CPU.
        """
        ...


def score_sets(
    problem: VectorProblem, layers: Mapping[Layer, Vectors], sets: Sequence[Layer], device: Device = None
) -> list[Outcome]:
    """A task's scores of each set of layers: as of `ScoresSets`, or of their unit vectors side by side."""
    if not sets:  # there may be no layer, either
        return []
    if isinstance(problem, ScoresSets):
        return problem.score_sets(layers, sets, device)
    return [problem.score(together([layers[one] for one in each.members]), device) for each in sets]


def together(layers: Sequence[Vectors]) -> Vectors:
    """The vectors of several layers as those of one, by name of the source."""
    return {name: side_by_side([one[name] for one in layers]) for name in layers[0]}


@runtime_checkable
class MeasuresSets(Protocol):
    """What a task on grids offers that can take layers together."""

    def measure_sets(self, group: Group, view: View, sets: Sequence[Layer]) -> Measurer[Tensor]:
        """What measures sets of layers; it is fed each of their layers, and asked to finish each set."""
        ...


@dataclass(frozen=True, slots=True)
class SetsFeed(GridFeed):
    """Grids of the layers of sets.

    Attributes:
        names: Of the sets, as of `tasks.sets.SETS`.
    """

    names: tuple[str, ...] = ()

    def layers(self, scored: Sequence[Layer], spec: BackboneSpec) -> tuple[Layer, ...]:
        """What is measured: the sets of layers that are scored."""
        return sets_of(self.names, spec.depth, scored)


@dataclass(frozen=True)
class FusedProblem:
    """A task on grids whose layers are taken together.

    Attributes:
        plain: The task as it is, which is a `MeasuresSets`.
        names: Of the sets.
        sets: Those of one backbone; none until it is known.
    """

    plain: ScoredProblem[Tensor]
    names: tuple[str, ...]
    sets: tuple[Layer, ...] = ()

    def of(self, sets: Sequence[Layer]) -> Self:
        """The same for the sets of a backbone."""
        return replace(self, sets=tuple(sets))

    @property
    def source(self) -> Source:
        """The source of the task."""
        return self.plain.source

    @cached_property
    def fingerprint(self) -> str:
        """Digest of the task's, and that layers are taken together; which ones stands beside it."""
        return digest("sets of layers", 1, self.plain.fingerprint)

    @property
    def feed(self) -> SetsFeed:
        """Measurers are fed grids of the layers of sets."""
        return SetsFeed(self.plain.feed.whole, self.names)

    def measure(self, group: Group, view: View) -> Measurer[Tensor]:
        """What measures the sets."""
        assert isinstance(self.plain, MeasuresSets)
        return self.plain.measure_sets(group, view, self.sets)

    def score(self, measurements: Sequence[Measurements]) -> Outcome:
        """The task's scores of one set."""
        return replace(self.plain.score(measurements), predicted={})


@dataclass(frozen=True)
class FusedRememberingProblem(FusedProblem):
    """The same of a task that compares its images with those of another source."""

    plain: RememberingProblem[Tensor]

    @property
    def memory(self) -> MeasuredProblem[Any]:
        """What is measured before, of single layers."""
        return self.plain.memory

    def remembering(
        self, measured: Mapping[Layer, Sequence[Measurements]], failures: Mapping[Layer, str]
    ) -> Self:
        """The problem as it is measured, once its memory was."""
        plain: Any = self.plain.remembering(measured, failures)
        return replace(self, plain=plain)


class Gathered:
    """What several layers show of images, until all of them have shown an image.

    Args:
        layers: The layers.
    """

    def __init__(self, layers: Collection[Layer]) -> None:
        self._count = len({*layers})
        self._waiting: dict[int, dict[Layer, Tensor]] = {}

    def add(self, layer: Layer, positions: Sequence[int], grids: Tensor) -> dict[int, dict[Layer, Tensor]]:
        """Copy what a layer shows; gives the images of which it was the last, by position, in order."""
        done = {}
        for position, grid in zip(positions, grids, strict=True):
            shown = self._waiting.setdefault(position, {})
            shown[layer] = grid.clone()
            if len(shown) == self._count:
                done[position] = self._waiting.pop(position)
        return done


def members_of(sets: Sequence[Layer]) -> tuple[Layer, ...]:
    """The layers that are in some of the sets, in the order of a forward."""
    return tuple(sorted({one for each in sets for one in each.members}, key=lambda layer: layer.place))


def of_one_grid(
    sets: Sequence[Layer], shapes: Mapping[Layer, tuple[int, int]]
) -> dict[tuple[int, int], list[Layer]]:
    """Sets whose layers all have grids of one height and width, by that size; the others are left out."""
    found: dict[tuple[int, int], list[Layer]] = {}
    for each in sets:
        sizes = {shapes[one] for one in each.members}
        if len(sizes) == 1:
            found.setdefault(sizes.pop(), []).append(each)
    return found
