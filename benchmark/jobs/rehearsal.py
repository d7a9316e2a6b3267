"""A few images of each pass of a backbone, shown as the run would show them: how long all of them take.

What is measured is kept nowhere. A pass takes seconds for each image, decoding included, and what each
listener takes for each of its units: images, or pairs of keypoints.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from time import perf_counter, time
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmark.engines.progress import Reporter
from benchmark.extraction.collectors import Collector
from benchmark.extraction.one_pass import Pace, run_pass
from benchmark.extraction.screen import Listener
from benchmark.jobs.clocked import Clocked, Nowhere
from benchmark.jobs.failures import Failure, failure
from benchmark.jobs.job import VECTORS, BackboneJobs, Job
from benchmark.jobs.passes import Loaded, collectors_of, images_left
from benchmark.jobs.scoring_times import Vectors, scoring_steps
from benchmark.jobs.stand_in import comparing, stand_in, stored_or
from benchmark.jobs.steps import Step
from benchmark.plan.bound import RememberingTask
from benchmark.plan.plan import Pass, Plan, PlanRecipe, make_plan, view_for
from tasks.base import Group, MeasuredProblem, Source
from tasks.cka import CkaProblem
from tasks.sources import ANY_SIZE
from zoo.features import Backbone

FEW = 4
"""Limit of the data of which measured tasks see some: images, videos, pairs a category."""

SECONDS = 2.0
"""Forwards of a rehearsed pass take about so long."""

LEAST = 4
"""Images of it, at least."""


@dataclass(frozen=True)
class Rehearsed:
    """What is to be expected of one backbone.

    Attributes:
        backbone: Its name.
        steps: Its load, passes and scores.
        single: Seconds of a forward of one image.
        began: When the rehearsal began, by the clock of the machine.
        memory: Most bytes of tensors on a graphics card at once; 0 on a processor.
        failures: What could not be rehearsed, as the run would say it.
    """

    backbone: str
    steps: tuple[Step, ...]
    single: float
    began: float
    memory: int
    failures: tuple[Failure, ...]


def rehearse(plan: Plan, jobs: BackboneJobs, report: Reporter) -> Rehearsed:
    """Load a backbone, show it a few images of each pass, and score a few layers; in any process."""
    began, setup = time(), jobs.setup
    name, loaded = setup.spec.name, Loaded(setup)
    steps: list[Step] = []
    failures: list[Failure] = []
    before = _Before({}, {})
    single = 0.0
    with report.bar(f"{name}  warm-up", len(jobs.passes) + 1, "steps") as advance:
        try:
            if any(images_left(plan, job) for job in jobs.passes):
                begin = perf_counter()
                backbone = loaded.backbone()
                steps.append(Step(name, "load", "", seconds=perf_counter() - begin))
                single = _single(backbone)
            for job in jobs.passes:
                if left := images_left(plan, job):
                    steps += _pass_steps(plan, job, loaded.backbone(), single, left, before)
                advance(1)
            steps += scoring_steps(plan, few(plan.recipe), jobs, before.drawn)
        except Exception as error:
            failures.append(failure(error, name))
        advance(1)
    memory = torch.cuda.max_memory_allocated(setup.device) if setup.device.type == "cuda" else 0
    return Rehearsed(name, tuple(steps), single, began, memory, tuple(failures))


@lru_cache(maxsize=1)
def few(recipe: PlanRecipe) -> Plan:
    """The plan of a recipe on a few images of each dataset."""
    location = recipe.location
    limit = min(FEW, location.limit or FEW)
    return make_plan(replace(recipe, location=replace(location, limit=limit)))


def _pass_steps(
    plan: Plan, job: Job, backbone: Backbone, single: float, left: int, before: "_Before"
) -> list[Step]:
    """Rehearse a pass; its forwards, and what each listener takes, of the images that are left."""
    setup, whole = job.setup, plan.pass_over(job.source)
    small = next((one for one in few(plan.recipe).passes if one.key[0] == whole.key[0]), whole)
    remembering = [task for task in whole.measured if isinstance(task, RememberingTask)]
    # how much is remembered of an image depends on how many there are
    one = small if len(job.listeners) > (VECTORS in job.listeners) and not remembering else whole
    view = view_for(setup.spec, one.source.view)
    width, height = view.geometry(ANY_SIZE).size
    share = max(1.0, width * height / setup.spec.input_size**2)
    count = int(np.clip(SECONDS / (single * share), LEAST, 2 * setup.request.batch_size))
    part = replace(one, source=_trimmed(one, count))
    begin = perf_counter()
    rehearsal = _show(part, job, backbone, before)
    if perf_counter() - begin < SECONDS:
        rehearsal = _show(part, job, backbone, before)  # the first one warmed up
    before.keep(rehearsal.kept, remembering)
    name, share_left = setup.spec.name, left / max(1, len(whole.source.samples))
    ratio = left / max(1, rehearsal.images)
    steps = [Step(name, "pass", whole.source.name, left, rehearsal.forwards * ratio)]
    for listener, seconds in rehearsal.listeners.items():
        every, seen = (_units(_problem(two, listener), two.source) for two in (whole, part))
        times = share_left * every / max(1, seen)
        what = "vectors" if listener == VECTORS else f"measuring {listener}"
        usual = _batch(_problem(whole, listener), len(whole.source.samples))
        grown = usual / _batch(_problem(part, listener), rehearsal.images)
        disk = int(rehearsal.disk[listener] * ratio * grown)
        steps.append(Step(name, what, whole.source.name, 0, seconds * times, disk))
    return steps


def _problem(one: Pass, listener: str) -> MeasuredProblem[Any] | None:
    """What a listener measures; None for vectors."""
    found = (task.fed_by(one.source) for task in one.measured if task.listener == listener)
    return next(found, None)


def _units(problem: MeasuredProblem[Any] | None, source: Source) -> int:
    """What a measurer's work grows with: pairs where it matches pairs, else images."""
    pairs: Mapping[str, Sequence[object]] | None = getattr(problem, "pairs", None)
    if pairs is None:
        return len(source.samples)
    return sum(len(pairs[group.key]) for group in source.groups)


def _batch(problem: MeasuredProblem[Any] | None, images: int) -> int:
    """Images that are kept against each other, so that what is kept of each grows with them; else 1."""
    return min(problem.where.batches.size, max(1, images)) if isinstance(problem, CkaProblem) else 1


def _trimmed(one: Pass, count: int) -> Source:
    """The first images of a source, in one shard; groups stay whole where images are measured together."""
    whole = any(
        hasattr(task.measured_problem, "pairs") or isinstance(task, RememberingTask) for task in one.measured
    )
    groups: list[Group] = []
    for group in one.source.groups:
        room = count - sum(len(kept.samples) for kept in groups)
        if room <= 0:
            break
        groups.append(group if whole else replace(group, samples=group.samples[:room]))
    return replace(one.source, groups=tuple(groups), groups_per_shard=max(1, len(groups)))


@dataclass(frozen=True)
class _Shown:
    """What a rehearsed pass took.

    Attributes:
        images: Images that were shown.
        forwards: Seconds of decoding and forwards.
        listeners: Seconds of each listener.
        disk: Bytes that each would have kept.
        kept: Arrays that each would have kept.
    """

    images: int
    forwards: float
    listeners: Mapping[str, float]
    disk: Mapping[str, int]
    kept: Mapping[str, Mapping[str, Tensor]]


def _show(part: Pass, job: Job, backbone: Backbone, before: "_Before") -> _Shown:
    """Show a part of a pass to what listens to it."""
    setup, listeners = job.setup, []
    collectors = {name: (one, 1.0) for name, one in collectors_of(part, setup, {}).items()}
    for name, (collector, growth) in (collectors | before.comparing(part, job)).items():
        if name in job.listeners and not backbone.refusal(collector.layers):
            clocked = Clocked(collector, backbone.device, growth)
            listeners.append((clocked, Listener(name, clocked, Nowhere(), {0})))
    pace = Pace(min(setup.request.batch_size, len(part.source.samples)), setup.request.workers)
    view, every = view_for(setup.spec, part.source.view), [listener for _, listener in listeners]
    begin = perf_counter()
    shown = run_pass(part.source, view, every, backbone, pace)
    whole = perf_counter() - begin
    stores = {one.name: one.store for one in every if isinstance(one.store, Nowhere)}
    return _Shown(
        shown.images,
        max(0.0, whole - sum(clocked.seconds for clocked, _ in listeners)),
        {listener.name: clocked.expected for clocked, listener in listeners},
        {name: store.size for name, store in stores.items()},
        {name: store.kept for name, store in stores.items()},
    )


@dataclass(frozen=True)
class _Before:
    """What earlier rehearsed passes of a backbone left behind.

    Attributes:
        drawn: Vectors.
        remembered: By key of a task, the shard of images that it remembers.
    """

    drawn: Vectors
    remembered: dict[str, Mapping[str, Tensor]]

    def keep(self, kept: Mapping[str, Mapping[str, Tensor]], remembering: Sequence[RememberingTask]) -> None:
        """Keep the first vectors, and what a task remembers before it is compared with."""
        if VECTORS in kept:
            self.drawn.setdefault("", kept[VECTORS])
        for task in remembering:
            if task.listener in kept:
                self.remembered.setdefault(task.key, kept[task.listener])

    def comparing(self, part: Pass, job: Job) -> dict[str, tuple[Collector, float]]:
        """What compares images of a pass with a part of what is remembered, and the growth to all of it."""
        found: dict[str, tuple[Collector, float]] = {}
        for task in part.measured:
            name = task.listener
            if name in job.memories and isinstance(task, RememberingTask):
                kept = stored_or(job, task, self.remembered.get(task.key))
                memory = None if kept is None else stand_in(task, job.setup, kept)
                if memory is not None:
                    found[name] = comparing(task, part, job.setup, memory), memory.growth
        return found


def _single(backbone: Backbone) -> float:
    """Seconds of a forward of one image, the least of a few."""
    side = backbone.spec.input_size
    pixels = torch.zeros((1, 3, side, side), dtype=torch.uint8, device=backbone.device)
    times = []
    for _ in range(3):
        begin = perf_counter()
        backbone.visit(pixels, lambda _: None, [])
        if backbone.device.type == "cuda":
            torch.cuda.synchronize(backbone.device)
        times.append(perf_counter() - begin)
    return min(times)
