"""What a run would take: images, forwards, hours, disk and memory, before anything starts.

A pass takes its images times the seconds of one, which a timed batch tells: of the backbones with most to do
first, as long as that stays within a tenth of what is expected. Other passes are guessed from shapes, put
right by those. Scores take as long a layer as earlier records of their task say, or what is declared here.
"""

import resource
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from sys import platform
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

import pandas as pd
import torch

from benchmark.engines.choose import device_name, find_engine
from benchmark.engines.progress import Advance, Reporter, Silent
from benchmark.extraction.failures import Failure, failure
from benchmark.jobs.estimate import SPEED, Guesses
from benchmark.jobs.job import VECTORS, BackboneJobs, Job, ScoreJob
from benchmark.jobs.passes import BackboneCache, images_left, run_job
from benchmark.jobs.ready import Ready, make_ready
from benchmark.plan.plan import Pass, Plan, patch_tokens
from benchmark.request import Request
from leaderboards.records.files import scored_path
from leaderboards.records.record import UNREADABLE
from tasks.base import Group, Source
from tasks.cka import CkaTask
from tasks.comparing import ComparisonTask
from zoo.spec import Layer
from zoo.view.views import ResizeCrop

SHARE, FLOOR = 0.1, 4.0
"""Finding it out takes at most this share of what is expected, or so many seconds beside the planning."""

BATCH_SECONDS, LEAST = 0.5, 4
"""A timed batch takes about so long; it has so many images at least, and those of a batch at most."""

LOAD, PAGES = 2.0, 4.0
"""Seconds of loading a backbone, as long as none was loaded, and of the pages at the end of every run."""

ITEM_SECONDS = 5e-5
"""Seconds that a score takes for each image of a layer and pooling, with its share of the interval."""

EACH_WITH_EACH = ("knn", "retrieval")
"""Tasks that compare each image of their last source with each of the others."""

REMEMBERED = 100_000
"""Cells that are remembered of labelled images at most, as `standard` has it."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a run, of one backbone or of all (""): ``load``, ``pass``, ``scoring TASK``, ..."""

    backbone: str
    what: str
    source: str = ""
    images: int = 0
    seconds: float = 0.0
    disk: int = 0


@dataclass(frozen=True)
class Forecast:
    """What a run would take on this machine: ``seconds``, ``memory`` and ``disk`` in bytes.

    ``images`` are those of all passes, whatever is stored; it took ``warm_up`` seconds to find all this out.
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
    """Plan a run, show some images to some backbones, and say what all of it would take; keeps nothing.

    Raises:
        InputError: The request is wrong.
    """
    begin, imports = perf_counter(), process_time()
    ready = make_ready(request, report, writes=False)
    planned = perf_counter() - begin
    plan, todo = ready.plan, ready.prepared.backbones
    here = replace(request, engine="auto") if request.engine == "ray" else request
    engine = find_engine([jobs.setup.spec for jobs in todo], here, ready.devices)
    shared = len(ready.devices) > 1  # several devices share a backbone in pieces
    workers = max(1, engine.workers if shared else min(len(todo), engine.workers))
    starts = imports * (1 + (workers > 1)) + planned + PAGES
    apart = [*_joint_steps(ready), Step("", "start and pages", seconds=starts)]
    timings = _Timings(plan, todo)

    def expected() -> float:
        each = [sum(step.seconds for step in timings.steps(jobs)) for jobs in todo]
        longest = 0.0 if shared else max(each, default=0.0)
        return max(longest, sum(each) / workers) + sum(step.seconds for step in apart)

    threads = torch.get_num_threads()
    if workers > 1 and not shared:
        torch.set_num_threads(max(1, request.workers // workers))  # as each process has
    with report.bar("timing", len(todo), "backbones") as advance:
        timings.take(lambda: begin + max(planned + FLOOR, SHARE * expected()), advance)
    torch.set_num_threads(threads)
    return Forecast(
        suite=ready.suite,
        device=device_name(ready.devices[0]),
        workers=workers,
        images=plan.images,
        steps=(*(step for jobs in todo for step in timings.steps(jobs)), *apart),
        seconds=expected(),
        memory=_memory(plan, ready.devices[0], workers),
        warm_up=perf_counter() - begin,
        notes=tuple(_notes(request, ready, timings.failures)),
    )


class _Timings:
    """What backbones take, as timed batches tell it, or guessed and put right by these."""

    def __init__(self, plan: Plan, todo: Sequence[BackboneJobs]) -> None:
        self._plan, self._todo, self._guesses = plan, todo, Guesses(plan)
        self._left: defaultdict[str, list[tuple[Job, int]]] = defaultdict(list)
        done: set[Path] = set()  # by an input size before, where a view is the same at both
        for job in (job for jobs in todo for job in jobs.passes):
            if not done.issuperset(job.listeners.values()) and (images := images_left(plan, job)):
                self._left[job.setup.spec.name].append((job, images))
            done.update(job.listeners.values())
        self._scores = {jobs.setup.spec.name: [*_score_steps(plan, jobs)] for jobs in todo}
        self._factors: dict[Hashable, float] = {}
        self._bytes: dict[str, float] = {}  # that a listener leaves of an image and layer
        self._load = LOAD
        self.failures: list[Failure] = []

    def steps(self, jobs: BackboneJobs) -> Iterator[Step]:
        """Load, passes and scores of a backbone."""
        name = jobs.setup.spec.name
        if self._left[name]:
            yield Step(name, "load", seconds=self._load)
        for job, images in self._left[name]:
            disk = images * sum(self._bytes_of(job, listener) for listener in job.listeners)
            yield Step(name, "pass", job.source[0], images, images * self._seconds(job), int(disk))
            for task in self._plan.pass_over(job.source).measured:
                if task.listener in job.memories and task.memory is not None:
                    seconds = images * _seconds_of_comparing(task.memory.source, job)
                    yield Step(name, f"measuring {task.listener}", job.source[0], seconds=seconds)
        yield from self._scores[name]

    def take(self, until: Callable[[], float], advance: Advance) -> None:
        """Time a batch of each kind of pass, of the backbones with most to do first.

        It is over when `perf_counter` comes to what ``until`` gives then, but one batch is always timed.
        """
        longest = 0.0
        for jobs in sorted(self._todo, key=lambda jobs: -sum(step.seconds for step in self.steps(jobs))):
            cache = BackboneCache(jobs.setup)
            # what only measurers do is in no guess
            for job, _ in sorted(
                self._left[jobs.setup.spec.name], key=lambda one: VECTORS in one[0].listeners
            ):
                begin = perf_counter()
                if longest and begin + longest > until():
                    return
                try:
                    if _likeness(job)[0] not in self._factors:
                        self._time(job, cache)
                except Exception as error:
                    self.failures.append(failure(error, jobs.setup.spec.name))
                    break
                longest = max(longest, perf_counter() - begin)
            advance(1)

    def _time(self, job: Job, cache: BackboneCache) -> None:
        """Show one batch of a pass to its backbone, as the run would; a few images say how large a one."""
        begin, setup, whole = perf_counter(), job.setup, self._plan.pass_over(job.source)
        backbone, count = cache.backbone(), LEAST
        if backbone.spec.name not in self._factors:
            self._load = perf_counter() - begin
        for _ in range(2):
            part = replace(whole, source=_first_images(whole.source, count))
            with TemporaryDirectory() as folder:
                folders = {name: Path(folder, str(place)) for place, name in enumerate(job.listeners)}
                small, begin = replace(job, shards=range(1), listeners=folders, memories={}), perf_counter()
                images = max(1, run_job(replace(self._plan, passes=(part,)), small, cache, Silent()).images)
                second = (perf_counter() - begin) / images
                sizes = {
                    name: sum(file.stat().st_size for file in own.glob("*")) for name, own in folders.items()
                }
            count = min(max(int(BATCH_SECONDS / second), LEAST), setup.request.batch_size)
        factor = second / self._guesses.seconds(setup, whole.source.view)
        self._factors |= dict.fromkeys(_likeness(job), factor)
        for name, size in sizes.items():
            self._bytes[name] = size / (images * len(setup.layers) * _kept_together(part, name))

    def _seconds(self, job: Job) -> float:
        """Seconds of an image of a pass."""
        factors = (self._factors[like] for like in _likeness(job) if like in self._factors)
        return next(factors, 1.0) * self._guesses.seconds(job.setup, job.source[1])

    def _bytes_of(self, job: Job, listener: str) -> float:
        """Bytes that a listener leaves of an image."""
        setup, spec = job.setup, job.setup.spec
        if listener != VECTORS:
            each = len(setup.layers) * _kept_together(self._plan.pass_over(job.source), listener)
            return self._bytes.get(listener, 0.0) * each
        kinds = {*setup.poolings} - {"patchwise"} if spec.has_cls else {*setup.poolings, "mean"} - {"cls"}
        channels = sum(spec.stage_of(layer).width for layer in setup.kept)
        return channels * len(kinds) * (2 if setup.request.store_dtype == "float16" else 4)


def _likeness(job: Job) -> tuple[Hashable, ...]:
    """What passes may have in common that take an image equally long, the most telling first."""
    kind = job.source[1], *job.listeners
    return (job.setup.spec.name, *kind), kind, job.setup.spec.name, ""


def _first_images(source: Source, count: int) -> Source:
    """The first images of a source, as one shard."""
    groups: list[Group] = []
    for group in source.groups:
        if count > 0:
            groups.append(replace(group, samples=group.samples[:count]))
            count -= len(group.samples)
    return replace(source, groups=tuple(groups), groups_per_shard=len(groups))


def _kept_together(one: Pass, listener: str) -> int:
    """Images that are kept against each other, so that what is kept of each grows with them; else 1."""
    fed = next((task.fed_by(one.source) for task in one.measured if task.listener == listener), None)
    size = fed.data.batches.size if isinstance(fed, CkaTask) else 1
    return min(size, len(one.source.samples))


def _seconds_of_comparing(memory: Source, job: Job) -> float:
    """Seconds in which the cells of an image are compared with those that are remembered, in all layers."""
    setup, last = job.setup, Layer(job.setup.spec.depth)
    remembered = len(memory.samples) * patch_tokens(setup.spec, memory.view, last)
    products = min(REMEMBERED, remembered) * patch_tokens(setup.spec, job.source[1], last) * setup.spec.width
    return products * len(setup.layers) / SPEED[setup.device.type]


def _score_steps(plan: Plan, jobs: BackboneJobs) -> Iterator[Step]:
    """Scores of a backbone that are not there yet."""
    setup = jobs.setup
    for job in jobs.scores:
        task, seconds = plan.task(job.task), _recorded(job)
        if seconds is None:
            images = [len(source.samples) for source in task.sources]
            seconds = sum(images) * ITEM_SECONDS
            if task.entry.name in EACH_WITH_EACH:
                seconds += sum(images[:-1]) * images[-1] * setup.spec.width / SPEED[setup.device.type]
            seconds *= len(setup.poolings) if task.vector_sources else 1
        layers = len(task.scored(setup.layers, setup.spec))
        yield Step(setup.spec.name, f"scoring {task.listener}", seconds=seconds * layers)


def _recorded(job: ScoreJob) -> float | None:
    """Seconds a layer of an earlier record of the task on such a device, of any backbone; None without."""
    for path in (job.setup.request.output / "records").glob(f"*/{scored_path(job.task, 'any').name}"):
        try:
            frame = pd.read_parquet(path, columns=["seconds", "layer", "device"])
        except UNREADABLE:
            continue
        if len(frame) and frame["device"].iloc[0] == job.setup.device.type:
            return float(frame["seconds"].iloc[0]) / frame["layer"].nunique()
    return None


def _joint_steps(ready: Ready) -> Iterator[Step]:
    """Comparisons of all layers of all backbones, and their costs, which are measured one by one."""
    plan, guesses = ready.plan, Guesses(ready.plan)
    for job in ready.prepared.comparisons:
        task = plan.task(job.task)
        assert isinstance(task, ComparisonTask)
        setups = [member.setup for member in job.members]
        layers, width = sum(len(setup.layers) for setup in setups), max(setup.spec.width for setup in setups)
        size = task.data.batches.size if isinstance(task, CkaTask) else 1
        products = len(task.source.samples) * size * (layers * width + layers**2)
        seconds = len(task.poolings) * products / SPEED[ready.devices[0].type]
        yield Step("", f"comparing {task.entry.name}", seconds=seconds)
    for cost, rule in ((cost, task.config) for cost in ready.prepared.costs for task in plan.tasks.costs):
        forwards = min(rule.seconds, rule.images * guesses.seconds(cost.setup, ResizeCrop(256, 224)))
        yield Step(cost.setup.spec.name, "measuring cost", seconds=LOAD + rule.single_seconds + forwards)


def _memory(plan: Plan, device: torch.device, workers: int) -> int:
    """Bytes of this process and of those beside it, with the vectors of a layer of the largest task."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if platform == "darwin" else 1024)
    images = (sum(len(source.samples) for source in task.vector_sources) for task in plan.tasks.scored)
    bank = 2 * 4 * max((spec.width for spec in plan.backbones), default=0) * max(images, default=0)
    return used + bank if workers == 1 else used + workers * (used + bank)


def _notes(request: Request, ready: Ready, failures: Sequence[Failure]) -> Iterator[str]:
    """What is not counted, and what is wrong."""
    asked = {ready.plan.task(job.task) for jobs in ready.prepared.backbones for job in jobs.questions}
    if asked:
        yield f"Not counted: {', '.join(sorted({task.entry.name for task in asked}))}."
    if request.engine == "ray":
        yield "Counted for this machine alone; the workers of the cluster share it."
    yield from (f"Left out: {absent}." for absent in ready.plan.tasks.absent)
    yield from (f"Would fail: {one}" for one in (*ready.prepared.failures, *failures))
