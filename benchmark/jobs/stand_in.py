"""Part of what a task remembers in place of all of it, so that a few images can be compared with it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from benchmark.extraction.collectors import FAILURE, Collector, MeasuredCollector
from benchmark.extraction.shards import Shards
from benchmark.jobs.fingerprints import measured_layers
from benchmark.jobs.job import Job, Setup
from benchmark.plan.bound import RememberingTask
from benchmark.plan.plan import Pass, view_for
from tasks.base import Measurements
from tasks.fused import FusedProblem
from zoo.spec import Layer

PART = 16
"""Of so many groups of images that are remembered one stands for all, or as many as were shown."""

Kept = Mapping[str, Tensor | NDArray[np.generic]]
"""Arrays of a shard, by group, layer and name."""


@dataclass(frozen=True)
class StandIn:
    """A smaller memory.

    Attributes:
        measured: What its groups left behind of each layer; groups that were shown, again and again.
        growth: How many times as large the whole one is.
    """

    measured: Mapping[Layer, Sequence[Measurements]]
    growth: float


def stand_in(task: RememberingTask, setup: Setup, kept: Kept) -> StandIn | None:
    """A smaller memory of groups of which arrays were kept; None where a layer could not be measured."""
    shown: dict[str, dict[str, dict[str, NDArray[np.generic]]]] = {}
    for name, array in kept.items():
        group, layer, what = name.split("/", 2)
        values = array.numpy() if isinstance(array, Tensor) else array
        shown.setdefault(layer, {}).setdefault(group, {})[what] = values
    layers = measured_layers(setup, task, task.problem.memory.source)
    every = {layer: [*shown.get(str(layer), {}).values()] for layer in layers}
    if any(not groups or FAILURE in groups[0] for groups in every.values()):
        return None
    whole = len(task.problem.memory.source.groups)
    count = min(whole, max(-(-whole // PART), min(map(len, every.values()))))
    measured = {layer: [*islice(cycle(groups), count)] for layer, groups in every.items()}
    return StandIn(measured, whole / count)


def stored_or(job: Job, task: RememberingTask, kept: Kept | None) -> Kept | None:
    """What was kept of a memory's pass; else its first shard, where it was stored before; else None."""
    if kept is not None:
        return kept
    store = Shards.open(job.memories[task.listener], task.problem.memory.source.shards)
    return None if 0 in store.missing else store.arrays(0)


def comparing(task: RememberingTask, one: Pass, setup: Setup, memory: StandIn) -> Collector:
    """What compares the images of a pass with a smaller memory."""
    problem: Any = task.problem.remembering(memory.measured, {})
    view, layers = view_for(setup.spec, one.source.view), measured_layers(setup, task)
    fed = problem.of(layers) if isinstance(problem, FusedProblem) else problem
    return MeasuredCollector(fed, view, layers, setup.spec.patch_size)
