"""What a run would take: images, forwards, hours, disk and memory, before anything starts.

The warm-up goes through the engine of the run, so what processes that compute side by side take from each
other is measured, too.
"""

import resource
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from heapq import heapify, heapreplace
from pathlib import Path
from time import perf_counter, process_time, time

import torch

from benchmark.engines.choose import find_engine
from benchmark.engines.device import device_name
from benchmark.engines.progress import Reporter
from benchmark.jobs.failures import Failure
from benchmark.jobs.job import BackboneJobs, CompareJob
from benchmark.jobs.ready import Ready, make_ready
from benchmark.jobs.rehearsal import Rehearsed, rehearse
from benchmark.jobs.steps import Step
from benchmark.plan.plan import Plan
from benchmark.request import Request
from tasks.cka import CkaProblem
from tasks.metrics.similarity import CkaAccumulator, gram_matrix

LAYERS = 16
"""Layers whose Gram matrices are compared to learn how long that takes."""

PAGES = 4.0
"""Seconds that pages take, which are written at the end of every run."""

COST_OVERHEAD = 2.0
"""Seconds that the cost of a backbone takes beside its timed forwards: it is loaded again and counted."""


@dataclass(frozen=True)
class Forecast:
    """What a run would take on this machine.

    Attributes:
        suite: Name under which its records would be filed.
        device: Name of the device.
        workers: Backbones, or pieces of one, side by side.
        images: Images of all passes, whatever is stored.
        steps: What is to be done of each backbone, and of all together.
        seconds: From its start to its end.
        memory: Bytes that the warm-up and a layer's vectors take, of all processes, or of a graphics card.
        warm_up: Seconds that it took to find this out.
        notes: What is not counted, and why.
    """

    suite: str
    device: str
    workers: int
    images: int
    steps: tuple[Step, ...]
    seconds: float
    memory: int
    warm_up: float
    notes: tuple[str, ...]

    @property
    def forwards(self) -> int:
        """Images through backbones that are not stored yet."""
        return sum(step.images for step in self.steps)

    @property
    def disk(self) -> int:
        """Bytes that it leaves in the cache."""
        return sum(step.disk for step in self.steps)


def forecast(request: Request, report: Reporter) -> Forecast:
    """Plan a run, show a few images to each backbone, and say what all of it would take; keeps nothing.

    Raises:
        InputError: The request is wrong.
    """
    begin, imports = perf_counter(), process_time()
    ready = make_ready(request, report, writes=False)
    found = perf_counter() - begin
    plan, todo = ready.plan, _without_shared(ready.prepared.backbones)
    here = replace(request, engine="auto") if request.engine == "ray" else request
    engine = find_engine([one.setup.spec for one in todo], here, ready.devices)
    workers = engine.workers if len(ready.devices) > 1 else min(len(todo), engine.workers)
    started = time()
    rehearsed = engine.map(partial(rehearse, plan), todo, report) if todo else []
    waited = min((one.began for one in rehearsed), default=started) - started
    apart = [*_comparison_steps(ready), *_cost_steps(ready, rehearsed)]
    apart.append(Step("", "start and pages", seconds=imports + found + waited + PAGES))
    each = [sum(step.seconds for step in one.steps) for one in rehearsed]
    # several devices share a backbone in pieces
    busy = sum(each) / workers if len(ready.devices) > 1 else _together(each, workers)
    seconds = busy + sum(step.seconds for step in apart)
    steps = tuple(step for one in rehearsed for step in one.steps)
    failures = (*ready.prepared.failures, *(each for one in rehearsed for each in one.failures))
    return Forecast(
        ready.suite,
        device_name(ready.devices[0]),
        max(1, workers),
        plan.images,
        (*steps, *apart),
        seconds,
        _memory(plan, rehearsed, max(1, workers)),
        perf_counter() - begin,
        tuple(_notes(request, ready, steps, failures)),
    )


def _without_shared(backbones: Sequence[BackboneJobs]) -> tuple[BackboneJobs, ...]:
    """Backbones without the passes that an input size before has done: where a view is the same at both."""
    done: set[Path] = set()
    found = []
    for one in backbones:
        passes = tuple(job for job in one.passes if not done.issuperset(job.listeners.values()))
        done.update(folder for job in passes for folder in job.listeners.values())
        found.append(replace(one, passes=passes))
    return tuple(found)


def _together(seconds: Sequence[float], workers: int) -> float:
    """How long jobs take that workers take up in order."""
    free = [0.0] * max(1, workers)
    heapify(free)
    for one in seconds:
        heapreplace(free, free[0] + one)
    return max(free)


def _comparison_steps(ready: Ready) -> Iterator[Step]:
    """Similarities of all layers: Gram matrices grow with the layers, comparing them with their square."""
    tasks = {task.key: task for task in ready.plan.tasks.comparisons}
    for job in ready.prepared.comparisons:
        task = tasks[job.task]
        if isinstance(task.problem, CkaProblem):
            name = f"comparing {task.subject.entry.name}"
            yield Step("", name, seconds=_cka_seconds(task.problem, job, ready.devices[0]))


def _cka_seconds(problem: CkaProblem, job: CompareJob, device: torch.device) -> float:
    groups = [len(group.samples) for group in problem.source.groups]
    batches = sum(len(problem.batches(range(count))) for count in groups)
    size = min(problem.where.batches.size, max(groups))
    width = max(one.setup.spec.width for one in job.members)
    seeded = torch.Generator().manual_seed(0)
    features = torch.randn(LAYERS, size, width, generator=seeded).to(device)
    times: list[tuple[float, float]] = []
    for _ in range(2):  # the first one warms up
        begin = perf_counter()
        grams = torch.stack([problem.centred(gram_matrix(one)) for one in features])
        made = perf_counter()
        accumulator = CkaAccumulator(errors=True)
        accumulator.add(grams)
        accumulator.matrix().value.cpu()
        times.append((made - begin, perf_counter() - made))
    linear, square = times[-1]
    share = sum(len(one.setup.layers) for one in job.members) / LAYERS
    return batches * len(problem.poolings) * (linear * share + square * share**2)


def _cost_steps(ready: Ready, rehearsed: Sequence[Rehearsed]) -> Iterator[Step]:
    """Costs: batches are tried for as long as the rule says, in times of a forward of one image."""
    single = {one.backbone: one.single for one in rehearsed}
    usual = max(single.values(), default=0.0)
    rules = {task.subject.entry.name: task.problem.rule for task in ready.plan.tasks.costs}
    for job in ready.prepared.costs:
        name = job.setup.spec.name
        for rule in rules.values():
            forwards = min(rule.seconds, rule.images * single.get(name, usual))
            yield Step(name, "measuring cost", seconds=COST_OVERHEAD + rule.single_seconds + forwards)


def _memory(plan: Plan, rehearsed: Sequence[Rehearsed], workers: int) -> int:
    """Bytes of this process and of those beside it, with the vectors of a layer of the largest task."""
    if card := max((one.memory for one in rehearsed), default=0):
        return card
    unit = 1 if sys.platform == "darwin" else 1024
    usual = unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    others = unit * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    width = max((spec.width for spec in plan.backbones), default=0)
    tasks = [*plan.tasks.vector, *plan.tasks.described]
    largest = max((sum(len(one.samples) for one in task.vector_sources) for task in tasks), default=0)
    bank = 2 * 4 * width * largest
    return usual + bank if workers == 1 else usual + workers * (max(usual, others) + bank)


def _notes(
    request: Request, ready: Ready, steps: Sequence[Step], failures: Sequence[Failure]
) -> Iterator[str]:
    """What is not counted, and what is wrong."""
    plan, todo = ready.plan, ready.prepared.backbones
    known = {step.what.removeprefix("scoring ") for step in steps}
    scored = {plan.task(job.task).listener for one in todo for job in one.scores}
    asked = {plan.task(job.task).subject.entry.name for one in todo for job in one.questions}
    keys = {job.task for job in ready.prepared.comparisons}
    compared = {
        task.subject.entry.name
        for task in plan.tasks.comparisons
        if task.key in keys and not isinstance(task.problem, CkaProblem)
    }
    steps_of = {(step.backbone, step.what, step.source) for step in steps}
    passes = [(one.setup.spec.name, job) for one in todo for job in one.passes]
    comparing = [(backbone, name, job.source[0]) for backbone, job in passes for name in job.memories]
    remembering = {name for _, name, _ in comparing}
    uncounted = {
        name for one, name, source in comparing if (one, f"measuring {name}", source) not in steps_of
    }
    if missing := sorted((scored - known - remembering) | compared):
        yield f"Scores of {', '.join(missing)} are not counted: they take little beside their passes."
    for name in sorted(uncounted):
        yield f"Not counted, though it may take longest: comparing images with what {name} remembers."
    if asked:
        yield f"Not counted: {', '.join(sorted(asked))}."
    if request.engine == "ray":
        yield "Counted for this machine alone; the workers of the cluster share it."
    yield from (f"Left out: {absent}." for absent in plan.tasks.absent)
    yield from (f"Would fail: {one}" for one in failures)
