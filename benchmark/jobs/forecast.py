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
from benchmark.jobs.job import BackboneJobs, Job, ScoreJob, Setup
from benchmark.jobs.passes import BackboneCache, run_job
from benchmark.jobs.prepare import Prepared, prepare
from benchmark.plan.plan import VECTORS, patch_tokens
from benchmark.request import Request
from leaderboards.records.files import scored_path
from leaderboards.records.record import UNREADABLE
from tasks.base import Group, Source
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
    run = prepare(request, report, writes=False)
    planned, todo = perf_counter() - begin, run.backbones
    here = replace(request, engine="auto") if request.engine == "ray" else request
    engine = find_engine([jobs.setup.spec for jobs in todo], here, run.devices)
    shared = len(run.devices) > 1  # several devices share a backbone in pieces
    workers = max(1, engine.workers if shared else min(len(todo), engine.workers))
    starts = imports * (1 + (workers > 1)) + planned + PAGES
    apart = [*_steps_apart(run), Step("", "start and pages", seconds=starts)]
    timings = _Timings(todo)

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
        suite=run.suite,
        device=device_name(run.devices[0]),
        workers=workers,
        images=run.plan.images,
        steps=(*(step for jobs in todo for step in timings.steps(jobs)), *apart),
        seconds=expected(),
        memory=_memory(run, workers),
        warm_up=perf_counter() - begin,
        notes=tuple(_notes(request, run, timings.failures)),
    )


class _Timings:
    """What backbones take, as timed batches tell it, or guessed and put right by these."""

    def __init__(self, todo: Sequence[BackboneJobs]) -> None:
        self._todo, self._guesses, self._load = todo, Guesses(), LOAD
        self._left: defaultdict[str, list[tuple[Job, int]]] = defaultdict(list)
        done: set[Path] = set()  # by an input size before, where a view is the same at both
        for job in (job for jobs in todo for job in jobs.passes):
            if not done.issuperset(job.folders.values()) and (images := job.images_left):
                self._left[job.setup.spec.name].append((job, images))
            done.update(job.folders.values())
        self._scores = {jobs.setup.spec.name: [*map(_score_step, jobs.scores)] for jobs in todo}
        self._factors: dict[Hashable, float] = {}
        self._bytes: dict[str, float] = {}  # that a listener leaves of an image and layer
        self.failures: list[Failure] = []

    def steps(self, jobs: BackboneJobs) -> Iterator[Step]:
        """Load, passes and scores of a backbone."""
        name = jobs.setup.spec.name
        if self._left[name]:
            yield Step(name, "load", seconds=self._load)
        for job, images in self._left[name]:
            source, disk = job.pass_.source, images * sum(self._bytes_of(job, name) for name in job.folders)
            yield Step(name, "pass", source.name, images, images * self._seconds(job), int(disk))
            for task in job.pass_.measured:
                if task.listener in job.memories:  # its cells are compared with those that are remembered
                    cells = patch_tokens(job.setup.spec, source.view, Layer(job.setup.spec.depth))
                    seconds = images * _products(job.setup, cells * task.remembered)
                    yield Step(name, f"measuring {task.listener}", source.name, seconds=seconds)
        yield from self._scores[name]

    def take(self, until: Callable[[], float], advance: Advance) -> None:
        """Time a batch of each kind of pass, of the backbones with most to do first.

        It is over when `perf_counter` comes to what ``until`` gives then, but one batch is always timed.
        """
        longest = 0.0
        for jobs in sorted(self._todo, key=lambda jobs: -sum(step.seconds for step in self.steps(jobs))):
            cache = BackboneCache(jobs.setup)
            # what only measurers do is in no guess
            for job, _ in sorted(self._left[jobs.setup.spec.name], key=lambda one: VECTORS in one[0].folders):
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
        begin, setup, whole = perf_counter(), job.setup, job.pass_.source
        cache.backbone()
        if setup.spec.name not in self._factors:
            self._load = perf_counter() - begin
        count = LEAST
        for _ in range(2):
            source = _first_images(whole, count)
            with TemporaryDirectory() as folder:
                folders = {name: Path(folder, str(number)) for number, name in enumerate(job.folders)}
                small = Job(setup, replace(job.pass_, source=source), range(1), folders)
                begin = perf_counter()
                images = max(1, run_job(small, cache, Silent()).images)
                second = (perf_counter() - begin) / images
                for name, store in folders.items():
                    size = sum(file.stat().st_size for file in store.glob("*"))
                    self._bytes[name] = size / images / len(setup.layers) / _kept_together(small, name)
            count = min(max(int(BATCH_SECONDS / second), LEAST), setup.request.batch_size)
        self._factors |= dict.fromkeys(_likeness(job), second / self._guesses.seconds(setup, whole.view))

    def _seconds(self, job: Job) -> float:
        """Seconds of an image of a pass."""
        factors = (self._factors[like] for like in _likeness(job) if like in self._factors)
        return next(factors, 1.0) * self._guesses.seconds(job.setup, job.pass_.source.view)

    def _bytes_of(self, job: Job, listener: str) -> float:
        """Bytes that a listener leaves of an image."""
        setup, spec = job.setup, job.setup.spec
        if listener != VECTORS:
            return self._bytes.get(listener, 0.0) * len(setup.layers) * _kept_together(job, listener)
        kinds = {*setup.poolings} - {"patchwise"} if spec.has_cls else {*setup.poolings, "mean"} - {"cls"}
        channels = sum(spec.stage_of(layer).width for layer in setup.kept)
        return channels * len(kinds) * (2 if setup.request.store_dtype == "float16" else 4)


def _likeness(job: Job) -> tuple[Hashable, ...]:
    """What passes may have in common that take an image equally long, the most telling first."""
    kind = job.pass_.source.view, *job.folders
    return (job.setup.spec.name, *kind), kind, job.setup.spec.name, ""


def _first_images(source: Source, count: int) -> Source:
    """The first images of a source, as one shard."""
    groups: list[Group] = []
    for group in source.groups:
        if count > 0:
            groups.append(replace(group, samples=group.samples[:count]))
            count -= len(group.samples)
    return replace(source, groups=tuple(groups), groups_per_shard=len(groups))


def _kept_together(job: Job, listener: str) -> int:
    """Images that are kept against each other, so that what is kept of each grows with them; else 1."""
    return min(len(job.pass_.source.samples), *(task.images_together for task in job.pass_.needing(listener)))


def _products(setup: Setup, products: float) -> float:
    """Seconds of so many products of a channel for each layer of a backbone."""
    return products * setup.spec.width * len(setup.layers) / SPEED[setup.device.type]


def _score_step(job: ScoreJob) -> Step:
    """The scores of a backbone in a task."""
    setup, task = job.setup, job.task
    seconds = _recorded(job)
    if seconds is None:
        poolings = len(setup.poolings) if task.vector_sources else 1
        items = sum(len(source.samples) for source in task.sources)
        seconds = poolings * (items * ITEM_SECONDS * len(setup.layers) + _products(setup, task.products))
    return Step(setup.spec.name, f"scoring {task.listener}", seconds=seconds)


def _recorded(job: ScoreJob) -> float | None:
    """Seconds by an earlier record of the task on such a device, of any backbone; None without one."""
    for path in (job.setup.request.output / "records").glob(f"*/{scored_path(job.task.key, 'any').name}"):
        try:
            frame = pd.read_parquet(path, columns=["seconds", "layer", "device"])
        except UNREADABLE:
            continue
        if len(frame) and frame["device"].iloc[0] == job.setup.device.type:
            layers = len(job.task.scored(job.setup.layers, job.setup.spec))
            return float(frame["seconds"].iloc[0]) * layers / frame["layer"].nunique()
    return None


def _steps_apart(run: Prepared) -> Iterator[Step]:
    """Comparisons of all layers of all backbones, and their costs, which are measured one by one."""
    for job in run.comparisons:
        setups, task = [member.setup for member in job.members], job.task
        layers, width = sum(len(setup.layers) for setup in setups), max(setup.spec.width for setup in setups)
        products = len(task.source.samples) * task.images_together * (layers * width + layers**2)
        seconds = len(task.poolings) * products / SPEED[run.devices[0].type]
        yield Step("", f"comparing {task.entry.name}", seconds=seconds)
    for setup, config in ((job.setup, job.task.config) for job in run.costs):
        forwards = min(config.seconds, config.images * Guesses().seconds(setup, ResizeCrop(256, 224)))
        yield Step(setup.spec.name, "measuring cost", seconds=LOAD + config.single_seconds + forwards)


def _memory(run: Prepared, workers: int) -> int:
    """Bytes of this process and of those beside it, with the vectors of a layer of the largest task."""
    if run.devices[0].type == "cuda":
        return torch.cuda.max_memory_allocated(run.devices[0])
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if platform == "darwin" else 1024)
    images = (sum(len(source.samples) for source in task.vector_sources) for task in run.plan.tasks.scored)
    bank = 2 * 4 * max((spec.width for spec in run.plan.backbones), default=0) * max(images, default=0)
    return used + bank if workers == 1 else used + workers * (used + bank)


def _notes(request: Request, run: Prepared, failures: Sequence[Failure]) -> Iterator[str]:
    """What is not counted, and what is wrong."""
    if asked := {job.task.entry.name for jobs in run.backbones for job in jobs.questions}:
        yield f"Not counted: {', '.join(sorted(asked))}."
    if request.engine == "ray":
        yield "Counted for this machine alone; the workers of the cluster share it."
    yield from (f"Left out: {absent}." for absent in run.plan.tasks.absent)
    yield from (f"Would fail: {one}" for one in (*run.failures, *failures))
