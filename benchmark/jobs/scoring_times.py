"""How long scores take: a few layers are scored, and all layers of all images follow by stated models.

A task is scored on vectors drawn around those of the warm-up, through the code of the run. Where its dataset
is large it is scored on a few of its images, and time grows with the product of stored and asked images where
a task compares each with each (`EACH_WITH_EACH`), else with the images. Intervals are made of all layers.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import cycle, islice
from math import prod
from time import perf_counter

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmark.extraction.reader import VectorReader
from benchmark.extraction.shards import Shards
from benchmark.jobs.job import BackboneJobs, Setup
from benchmark.jobs.steps import Step
from benchmark.plan.bound import BoundTask, MeasuredTask, RememberingTask, VectorsTask, VectorTask
from benchmark.plan.plan import Plan, patch_tokens, view_for
from benchmark.scores.assess import assess_outcomes
from benchmark.scores.layers import (
    describe_vectors,
    score_sets_of_vectors,
    score_vectors,
    side_by_side,
)
from tasks.base import LayerOutcome, Source
from tasks.feeds import GridFeed
from tasks.sources import ANY_SIZE
from zoo.spec import Layer

Vectors = dict[str, Mapping[str, Tensor]]
"""Vectors of the warm-up, under no name; empty where nothing was shown."""

MOST = 4096
"""Images of a task's sources that are scored; of more, a few are."""

REGIONS = 256
"""Images with regions of which stand-ins are measured; of more, a few are."""

EACH_WITH_EACH = ("knn", "retrieval")


def scoring_steps(plan: Plan, small: Plan, jobs: BackboneJobs, drawn: Vectors) -> Iterator[Step]:
    """Expected seconds of the scores of a backbone that are not there yet."""
    name, random = jobs.setup.spec.name, np.random.default_rng(0)
    by_key = {task.listener: task for task in small.tasks.scored}
    for job in jobs.scores:
        task = plan.task(job.task)
        entry = task.listener
        seconds = _seconds(task, by_key.get(entry, task), jobs.setup, drawn, random)
        if seconds is not None:
            yield Step(name, f"scoring {entry}", seconds=seconds)


def _seconds(
    task: BoundTask, small: BoundTask, setup: Setup, drawn: Vectors, random: np.random.Generator
) -> float | None:
    """Of one task; None where no model is known."""
    layers = task.subject.scored(setup.layers, setup.spec)
    count = max(1, -(-setup.request.workers // len(setup.poolings)))
    chosen = layers if task.subject.sets else layers[-count:]  # sets share what their layers take
    if isinstance(task, VectorTask | VectorsTask):
        of = task if sum(map(_images, task.vector_sources)) <= MOST else small
        assert isinstance(of, VectorTask | VectorsTask)
        readers = {source.name: _Drawn(source, setup, drawn, random) for source in of.vector_sources}
        begin = perf_counter()
        outcomes = _scored(of, readers, setup, chosen)
        seconds = (perf_counter() - begin) * _growth(task, of)
        return seconds * len(layers) / len(chosen) + _assessed(outcomes, task, layers, setup)
    if isinstance(task, RememberingTask):  # its groups are measured only after those that it remembers
        return None
    if isinstance(task, MeasuredTask) and isinstance(task.problem.feed, GridFeed):
        return _of_regions(task, small, setup, random)
    return None


def _scored(
    task: VectorTask | VectorsTask,
    readers: Mapping[str, VectorReader],
    setup: Setup,
    chosen: tuple[Layer, ...],
) -> list[LayerOutcome]:
    workers, device = setup.request.workers, setup.device
    if isinstance(task, VectorsTask):
        return describe_vectors(task.problem, readers, chosen, chosen[-1], workers, device)
    if task.subject.sets:
        return score_sets_of_vectors(task.problem, readers, chosen, device)
    view = task.vector_sources[0].view
    patches = {one: patch_tokens(setup.spec, view, one) for one in chosen} if task.all_tokens else None
    return score_vectors(task.problem, readers, chosen, workers, device, patches)


def _growth(task: BoundTask, small: BoundTask) -> float:
    """How many times the work of a few images that of all is."""
    every, few = ([_images(source) for source in one.vector_sources] for one in (task, small))
    if task.subject.entry.name in EACH_WITH_EACH:
        return prod((sum(every[:-1]), every[-1])) / max(1, prod((sum(few[:-1]), few[-1])))
    return sum(every) / max(1, sum(few))


def _assessed(
    outcomes: list[LayerOutcome], task: BoundTask, layers: tuple[Layer, ...], setup: Setup
) -> float:
    """Seconds of intervals and choices, of as many layers as there are, each as one that was scored."""
    if setup.spec.is_floor or not outcomes:
        return 0.0
    poolings = dict.fromkeys(one.pooling for one in outcomes)
    one = {pooling: next(o for o in outcomes if o.pooling == pooling) for pooling in poolings}
    every = [replace(one[pooling], layer=layer) for layer in layers for pooling in poolings]
    begin = perf_counter()
    assess_outcomes(every, None if task.subject.entry.analysis else task.subject.entry.metric)
    return perf_counter() - begin


def _of_regions(
    task: MeasuredTask, small: BoundTask, setup: Setup, random: np.random.Generator
) -> float | None:
    """Seconds of a task whose groups are single images, measured on grids of noise."""
    of = task if len(task.problem.source.groups) <= REGIONS else small
    assert isinstance(of, MeasuredTask)
    groups = of.problem.source.groups
    if any(len(group.samples) > 1 for group in groups):
        return None
    view = view_for(setup.spec, of.problem.source.view)
    layers = of.problem.feed.layers(setup.layers, setup.spec)
    stage = setup.spec.stage_of(layers[-1])
    width, height = (side // stage.stride for side in view.geometry(ANY_SIZE).size)
    found = []
    for group in groups:
        measurer = of.problem.measure(group, view)
        grid = torch.from_numpy(random.standard_normal((1, height, width, stage.width), np.float32))
        measurer.update(layers[-1], [0], grid)
        found.append({name: array.numpy() for name, array in measurer.finish(layers[-1]).items()})

    def score(layer: Layer) -> LayerOutcome:
        return LayerOutcome(layer, of.pooling, of.problem.score(found))

    count = min(len(layers), setup.request.workers)
    begin = perf_counter()
    outcomes = side_by_side(score, list(layers[-count:]), setup.request.workers, 1)
    seconds = (perf_counter() - begin) * len(layers) / count
    assessed = _assessed(outcomes, task, layers, setup)
    return (seconds + assessed) * len(task.problem.source.groups) / len(groups)


def _images(source: Source) -> int:
    return len(source.samples)


class _Drawn(VectorReader):
    """Vectors that nobody has computed: those of the warm-up in turn, each with noise of its own."""

    def __init__(self, source: Source, setup: Setup, drawn: Vectors, random: np.random.Generator) -> None:
        super().__init__(source, Shards.open(setup.request.cache / "nothing", 0))
        self._setup, self._drawn, self._random = setup, drawn.get("", {}), random
        self._rows = _images(source)
        self.__dict__["shown"] = np.ones(self._rows, bool)

    def poolings(self) -> tuple[str, ...]:
        """What the run keeps."""
        spec = self._setup.spec
        return tuple(sorted(self._setup.poolings if spec.has_cls or spec.is_floor else ("mean",)))

    def read(self, layer: Layer, pooling: str) -> NDArray[np.float32]:
        """[images dim]."""
        noise = self._random.standard_normal((self._rows, self._setup.spec.stage_of(layer).width), np.float32)
        known = self._drawn.get(f"{pooling}.{layer}")
        if known is None:
            return noise
        seen = known.float().numpy()
        rows = np.fromiter(islice(cycle(range(len(seen))), self._rows), np.int64)
        return np.asarray(seen[rows] + 0.5 * seen.std(0) * noise, np.float32)

    def bytes(self, layer: Layer, pooling: str) -> int:
        """Size of what `read` gives."""
        del pooling
        return 4 * self._rows * self._setup.spec.stage_of(layer).width
