"""Forecast of a run: images, forward passes, hours, disk and memory, before anything starts.

A pass takes its number of images times the seconds of one, which a timed batch tells. Batches are timed for
the backbones with most work first, within a tenth of the expected time. Other passes are guessed from shapes,
and scaled by how much longer the timed ones took than guessed. Scores are guessed from shapes alone. Images
that a worker keeps for its next backbone are counted as if they were read once more.
"""

import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

import torch

from layerboard.benchmark.engines.choose import device_name, find_engine
from layerboard.benchmark.engines.progress import Reporter, Silent
from layerboard.benchmark.forms.request import Request
from layerboard.benchmark.jobs import estimate
from layerboard.benchmark.jobs.job import Job
from layerboard.benchmark.jobs.passes import BackboneCache, run_job
from layerboard.benchmark.jobs.prepare import Prepared, plan_of, prepare
from layerboard.benchmark.passes.failures import Failure, noting
from layerboard.benchmark.passes.loading import KEPT_BYTES, KeptViews
from layerboard.benchmark.plan.lock import given_weights
from layerboard.benchmark.plan.plan import VECTORS, patch_tokens, view_for
from layerboard.zoo.errors import InputError
from layerboard.zoo.features.census import Census
from layerboard.zoo.spec import Layer
from layerboard.zoo.view.views import View

# maximum share of the expected time to spend on timing, or seconds besides planning
SHARE, FLOOR = 0.1, 4.0
# target seconds of a timed batch; minimum number of its images (the maximum is a batch)
BATCH_SECONDS, LEAST = 0.5, 4
# seconds to load a backbone, until one was loaded
LOAD = 2.0
# seconds to write the pages at the end of a run: in any case, and for each task of each backbone
# (measured once: 30 s for the suite mini with all analyses, 169 tasks of nine backbones together)
PAGES, TASK_PAGES = 4.0, 0.15


@dataclass(frozen=True, slots=True)
class ForecastStep:
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

    ``images`` are those of all passes, stored or not; ``warm_up`` is the time of the forecast in seconds.
    """

    suite: str
    device: str
    workers: int
    images: int
    steps: tuple[ForecastStep, ...]
    seconds: float
    memory: int
    warm_up: float
    notes: tuple[str, ...]
    forwards: int  # images through backbones that are not stored yet
    disk: int  # bytes added to the cache


def forecast_run(request: Request, report: Reporter) -> Forecast:
    """Plan a run, show some images to some backbones, and estimate the whole; raises InputError."""
    begin, imports = perf_counter(), process_time()
    work = prepare(plan_of(request, report, writes=False))
    planned = perf_counter() - begin
    here = replace(request, engine="auto") if request.engine_name == "ray" else request
    engine = find_engine([jobs.setup.spec for jobs in work.backbones], here, work.run.devices)
    shared = len(work.run.devices) > 1  # several devices share a backbone in pieces
    workers = max(1, engine.workers if shared else min(len(work.backbones), engine.workers))
    pages = PAGES + TASK_PAGES * len(work.run.plan.backbones) * len(work.run.plan.tasks.every)
    starts = imports * (1 + (workers > 1)) + planned + pages
    apart = [*_steps_apart(work), ForecastStep("", "start and pages", seconds=starts)]
    timings = _Timings(work)

    def expected() -> float:
        """Seconds of the steps of backbones, side by side, and of those apart."""
        busy: defaultdict[str, float] = defaultdict(float)
        for step in timings.steps():
            busy[step.backbone] += step.seconds
        longest = 0.0 if shared else max(busy.values(), default=0.0)
        return max(longest, sum(busy.values()) / workers) + sum(step.seconds for step in apart)

    threads = torch.get_num_threads()
    if workers > 1 and not shared:
        torch.set_num_threads(max(1, request.workers // workers))  # as in each process
    timings.take(lambda: begin + max(planned + FLOOR, SHARE * expected()), report)
    torch.set_num_threads(threads)
    steps = (*timings.steps(), *apart)
    return Forecast(
        suite=work.run.suite,
        device=device_name(work.run.devices[0]),
        workers=workers,
        images=work.run.plan.images,
        steps=steps,
        seconds=expected(),
        memory=_memory(work, workers, timings.beyond),
        warm_up=perf_counter() - begin,
        notes=tuple(_notes(work, timings.failures)),
        forwards=sum(step.images for step in steps),
        disk=sum(step.disk for step in steps),
    )


_Kind = tuple[str, View, tuple[str, ...]]  # backbone, view and listeners of passes with equal time per image


class _Timings:
    """Durations of backbones, timed or guessed."""

    def __init__(self, work: Prepared) -> None:
        self._load = LOAD
        self._timed: dict[_Kind, tuple[float, float]] = {}  # seconds per image, as measured and as guessed
        self._bytes: dict[str, float] = {}  # bytes that a listener stores per image and layer
        self.beyond = 0.0  # most bytes of the images that a pass shows together, beside those that were timed
        self._guessed: list[tuple[Job, ForecastStep]] = []
        self._scores: list[ForecastStep] = []
        self.failures: list[Failure] = []
        done: set[Path] = set()  # computed at an earlier input size, if a view is the same at both
        for jobs in work.backbones:
            name = jobs.setup.spec.name
            for job in jobs.passes:
                source = job.pass_.source
                images = sum(map(source.shard_images, job.missing))
                if images and not done.issuperset(job.folders.values()):
                    seconds = images * estimate.image_seconds(job.setup, source.view)
                    self._guessed.append((job, ForecastStep(name, "pass", source.name, images, seconds)))
                done.update(job.folders.values())
            self._scores += [
                ForecastStep(name, f"scoring {score.task.listener}", seconds=estimate.score_seconds(score))
                for score in jobs.scores
            ]

    def steps(self) -> Iterator[ForecastStep]:
        """Loads, passes and scores of all backbones."""
        for name in dict.fromkeys(step.backbone for _, step in self._guessed):
            yield ForecastStep(name, "load", seconds=self._load)
        for job, step in self._guessed:
            known = {_kind(job)} & self._timed.keys() or self._timed
            measured, guessed = (sum(self._timed[kind][side] for kind in known) for side in (0, 1))
            together = {name: _kept_together(job, name) * len(job.setup.layers) for name in job.folders}
            size = sum(
                estimate.vector_bytes(job.setup) if name == VECTORS else self._bytes.get(name, 0.0) * count
                for name, count in together.items()
            )
            scale = measured / guessed if known else 1.0
            yield replace(step, seconds=step.seconds * scale, disk=int(step.images * size))
            for task in job.pass_.measured:
                if task.listener in job.memories:
                    # in all layers, the cells of an image are compared with those that a task remembers
                    setup, last = job.setup, Layer(job.setup.spec.depth)
                    cells = patch_tokens(setup.spec, job.pass_.source.view, last)
                    second = estimate.product_seconds(setup, cells * task.remembered)
                    what = f"measuring {task.listener}"
                    yield ForecastStep(step.backbone, what, step.source, seconds=step.images * second)
        yield from self._scores

    def take(self, until: Callable[[], float], report: Reporter) -> None:
        """Time a batch of each kind of pass, for the backbones with most work first.

        It stops when `perf_counter` reaches ``until()``, but one batch is always timed.
        """

        def urgency(guessed: tuple[Job, ForecastStep]) -> tuple[float, str, bool]:
            job, step = guessed
            seconds = sum(each.seconds for _, each in self._guessed if each.backbone == step.backbone)
            return -seconds, step.backbone, VECTORS in job.folders  # guesses ignore measurers

        longest, cache = 0.0, None
        with report.bar("timing", len(self._guessed), "passes") as advance:
            for job, _ in sorted(self._guessed, key=urgency):
                begin = perf_counter()
                if longest and begin + longest > until():
                    return
                if cache is None or cache.setup != job.setup:
                    cache = BackboneCache(job.setup)
                with noting(self.failures, job.setup.spec.name):
                    if _kind(job) not in self._timed:
                        self._time(job, cache)
                longest = max(longest, perf_counter() - begin)
                advance(1)

    def _time(self, job: Job, cache: BackboneCache) -> None:
        """Show a batch of a pass to its backbone, as the run would; a few images determine its size."""
        begin, name = perf_counter(), job.setup.spec.name
        cache.backbone()
        if all(backbone != name for backbone, _, _ in self._timed):
            self._load = perf_counter() - begin
        most = cache.batch_size  # loaded before anything is timed
        with Census() as held:  # it slows what is shown, which decides here how many are timed
            second = self._second(job, cache, LEAST)
        count = min(max(int(BATCH_SECONDS / second), LEAST), most)
        second = self._second(job, cache, count)
        more = _images_together(job, most) - count
        self.beyond = max(self.beyond, more * held.activations / LEAST)
        self._timed[_kind(job)] = second, estimate.image_seconds(job.setup, job.pass_.source.view)

    def _second(self, job: Job, cache: BackboneCache, count: int) -> float:
        """Seconds per image of a pass over its first ``count`` images."""
        with TemporaryDirectory() as folder:
            folders = {name: Path(folder, str(number)) for number, name in enumerate(job.folders)}
            part = replace(job.pass_, source=job.pass_.source.first(count))
            cache.views = KeptViews(0)  # images are read
            # nothing is written to the cache of the run, which may not be there yet
            setup = replace(job.setup, request=replace(job.setup.request, cache=Path(folder)))
            small, begin = Job(setup, part, range(1), folders), perf_counter()
            result = run_job(small, cache, Silent())
            seconds, images = perf_counter() - begin, max(1, result.images)
            if result.failures:
                raise InputError(result.failures[0].message)
            for name, store in folders.items():
                size = sum(file.stat().st_size for file in store.glob("*"))
                self._bytes[name] = size / images / len(job.setup.layers) / _kept_together(small, name)
        return seconds / images


def _kind(job: Job) -> _Kind:
    return job.setup.spec.name, job.pass_.source.view, tuple(job.folders)


def _kept_together(job: Job, listener: str) -> int:
    """Number of images that are kept for comparison with each other; 1 if what is kept does not grow."""
    return min(len(job.pass_.source.samples), *(task.images_together for task in job.pass_.needing(listener)))


def _images_together(job: Job, batch: int) -> int:
    """Number of images that a pass shows together: a batch, or a whole group if a task needs one."""
    if job.source.joint and any(task.fed_by(job.source).feed.whole for task in job.pass_.measured):
        return max(len(group.samples) for group in job.source.groups)
    width, height = view_for(job.setup.spec, job.source.view).geometry(estimate.USUAL_PHOTO).size
    return min(batch, batch * job.setup.spec.input_size**2 // (width * height), len(job.source.samples))


def _steps_apart(work: Prepared) -> Iterator[ForecastStep]:
    """Comparisons of all backbones, and their costs, which are measured one by one."""
    for task, members in work.comparisons:
        setups = [member.setup for member in members]
        layers, width = sum(len(each.layers) for each in setups), max(each.spec.width for each in setups)
        products = len(task.source.samples) * task.images_together * (layers * width + layers**2)
        seconds = len(task.poolings) * products / estimate.SPEED[work.run.devices[0].type]
        yield ForecastStep("", f"comparing {task.entry.name}", seconds=seconds)
    for job in work.costs:
        config, own = job.task.config, job.setup.spec.input_size
        single = (config.warm_up + config.rounds) * sum(
            estimate.pixels_seconds(job.setup, size.width * size.height) for size in job.view_sizes
        )
        batches = min(config.seconds, config.images * estimate.pixels_seconds(job.setup, own**2))
        seconds = config.visits * (LOAD + max(config.single_seconds, single)) + batches
        yield ForecastStep(job.setup.spec.name, "measuring cost", seconds=seconds)


def _memory(work: Prepared, workers: int, beyond: float) -> int:
    """Bytes of this process and its workers, with the vectors of a layer of the largest task.

    Workers also keep images for further backbones, up to their limit, and ``beyond`` bytes of a pass.
    """
    jobs = [job for each in work.backbones for job in each.passes if job.shared and job.missing]
    kept = {(job.source.view, job.source.name): estimate.view_bytes(job) for job in jobs}
    most = min(workers * sum(kept.values()), work.run.request.workers * KEPT_BYTES)
    if work.run.devices[0].type == "cuda":
        return most + int(beyond) + torch.cuda.max_memory_allocated(work.run.devices[0])
    if sys.platform == "win32":
        import psutil

        used = int(psutil.Process().memory_info().peak_wset)
    else:
        import resource

        unit = 1 if sys.platform == "darwin" else 1024
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    scored = work.run.plan.tasks.needing("passes")
    images = (sum(len(source.samples) for source in task.vector_sources) for task in scored)
    bank = 2 * 4 * max((spec.width for spec in work.run.plan.backbones), default=0) * max(images, default=0)
    each = bank + int(beyond)
    return most + (used + each if workers == 1 else used + workers * (used + each))


def _notes(work: Prepared, failures: Iterable[Failure]) -> Iterator[str]:
    if asked := {job.task.entry.name for jobs in work.backbones for job in jobs.backbone_tasks}:
        yield f"Not counted: {', '.join(sorted(asked))}."
    if work.run.request.engine_name == "ray":
        yield "Counted for this machine alone; the workers of the cluster share it."
    if given := given_weights(work.lock):
        yield f"Counted with {given}."
    yield from (f"Left out: {reason}." for reason in work.run.plan.tasks.left_out)
    yield from (f"Would fail: {each}" for each in dict.fromkeys((*work.failures, *failures)))
