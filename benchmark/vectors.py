"""Stored vectors of backbones as files: one for each task, layer and pooling."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from benchmark.engines.choose import choose_engine, find_device
from benchmark.engines.progress import Reporter
from benchmark.extraction.failures import Failure, failure
from benchmark.jobs.fingerprints import vectors_folder
from benchmark.jobs.job import Job, ScoreJob, Setup
from benchmark.jobs.passes import BackboneCache, run_passes
from benchmark.jobs.prepare import pass_job
from benchmark.jobs.scores import readers_of
from benchmark.parsers import USUAL_POOLINGS
from benchmark.plan.backbones import find_backbones
from benchmark.plan.folders import require_writable
from benchmark.plan.location import find_data
from benchmark.plan.plan import Plan, PlanRecipe, make_plan
from benchmark.plan.suites import choose_suite
from benchmark.request import Request
from leaderboards.records.files import safe_name
from tasks.registry import TASKS, load_code
from tasks.task import Task
from zoo.atomic import whole_file
from zoo.errors import InputError
from zoo.load.backbone import identify
from zoo.spec import BackboneSpec

Arrays = Mapping[str, NDArray[np.generic]]


@dataclass(frozen=True)
class VectorJobs:
    """What one backbone has to do: its passes, then the files of each task.

    Attributes:
        setup: The backbone, and which vectors of it are stored.
        passes: The passes; shards that are there are not computed again.
        tasks: What is written of it.
        poolings: Which of the stored vectors are written.
    """

    setup: Setup
    passes: tuple[Job, ...]
    tasks: tuple[ScoreJob, ...]
    poolings: tuple[str, ...]


@dataclass(frozen=True)
class Written:
    """What came of it.

    Attributes:
        files: The files, each with how it is scored.
        images: Images that went through backbones.
        left_out: What has no file, and why.
        failures: What went wrong.
    """

    files: tuple[tuple[str, Path], ...] = ()
    images: int = 0
    left_out: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()


def write_vectors(request: Request, report: Reporter) -> Written:
    """Write the vectors of backbones, layers and poolings in the form that ``score`` reads.

    They come from the cache; what is not there is computed, each image once for all layers, and stays there.
    Files are ``OUTPUT/features/<backbone>/<task>.<dataset>.<protocol>/<layer>.<pooling>.npz``.

    Raises:
        InputError: Something about the request is wrong, or a task that it names takes no vectors.
    """
    request = replace(request, floor=False)
    suite, device = choose_suite(request), find_device(request.device)
    require_writable(request.output, request.cache)
    backbones = find_backbones(request, suite, report)
    plan = make_plan(PlanRecipe(backbones, request.tasks, find_data(request, suite, report)))
    for line in plan.tasks.understood:
        report.say(line)
    tasks = _with_vectors(plan, named=bool(request.tasks))

    jobs: list[VectorJobs] = []
    failures = [Failure("data", one.task, one.reason, bad_input=True) for one in plan.tasks.broken]
    for spec in backbones:
        try:
            jobs.append(_jobs(tasks, _setups(plan, spec, request, suite.name, device)))
        except InputError as error:
            failures.append(failure(error, spec.name))
    engine = choose_engine([one.setup.spec for one in jobs], request.workers, device)
    done = engine.map(write_backbone, jobs, report)
    return Written(
        tuple(file for one in done for file in one.files),
        sum(one.images for one in done),
        tuple(dict.fromkeys(line for one in done for line in one.left_out)),
        (*failures, *(each for one in done for each in one.failures)),
    )


def _with_vectors(plan: Plan, *, named: bool) -> list[Task]:
    """Tasks whose vectors a scorer reads; raises InputError for another one that was named."""
    found: list[Task] = []
    for task in plan.tasks.every:
        if task.scorer:
            found.append(task)
        elif named:
            scorers = ", ".join(scorer for entry in TASKS if (scorer := load_code(entry).scorer))
            raise InputError(
                f"{task.entry.name} takes no stored vectors that a scorer reads; leave it out: there "
                f"are files for {scorers}"
            )
    if not found:
        raise InputError("none of the data is for a task that takes stored vectors")
    return found


def _setups(
    plan: Plan, spec: BackboneSpec, request: Request, suite: str, device: torch.device
) -> list[Setup]:
    """The backbone with the vectors that a run of these options stores, and with all that one can store."""
    identity = identify(spec, dtype=getattr(torch, request.dtype), cache_dir=request.cache)
    every = replace(request, poolings=tuple(dict.fromkeys((*USUAL_POOLINGS, *request.poolings))))
    return [Setup(plan, spec, identity, options, suite, device) for options in (request, every)]


def _jobs(tasks: Sequence[Task], setups: Sequence[Setup]) -> VectorJobs:
    """What a backbone has to do, by the first setup whose vectors are all there, or else the last one."""
    keys = {task.key for task in tasks}
    for setup in setups:
        served = (replace(each.serving(keys), measured=()) for each in setup.plan.passes)
        jobs = tuple(pass_job(setup, each) for each in served if each.vectors)
        if not any(job.missing for job in jobs):
            break
    wanted = []
    for task in tasks:
        folders = {source.name: vectors_folder(setup, source) for source in task.vector_sources}
        wanted.append(ScoreJob(setup, task, "", "", folders, None))
    return VectorJobs(setup, jobs, tuple(wanted), setups[0].poolings)


def write_backbone(jobs: VectorJobs, report: Reporter) -> Written:
    """The passes of one backbone as far as they are not there, and the files of its tasks."""
    passed = run_passes(jobs.passes, BackboneCache(jobs.setup), report)
    lost = {one.key for one in passed.failures}
    name = jobs.setup.spec.name
    files: list[tuple[str, Path]] = []
    left_out: list[str] = list(passed.unreadable)
    failures = list(passed.failures)
    with report.bar(f"{name}  writing", len(jobs.tasks), "tasks") as advance:
        for job in jobs.tasks:
            if job.task.key not in lost:
                task = job.task
                try:
                    option = f"score {task.scorer} --features"
                    for file_name, arrays in _arrays(job, jobs.poolings, left_out):
                        files.append((option, _write(job, file_name, arrays)))
                except InputError as error:
                    failures.append(failure(error, name, task.entry.name, task.key))
            advance(1)
    return Written(tuple(files), passed.images, tuple(left_out), tuple(failures))


def _arrays(job: ScoreJob, poolings: Sequence[str], left_out: list[str]) -> Iterator[tuple[str, Arrays]]:
    """The arrays of each layer and pooling of a task, with the names of their files; says what has none."""
    task, readers, name = job.task, readers_of(job), job.setup.spec.name
    stored = next(iter(readers.values())).poolings()
    left_out += [f"{name} has no vectors {pooling}" for pooling in poolings if pooling not in stored]
    for layer in job.setup.layers:
        for pooling in poolings:
            if pooling not in stored:
                continue
            vectors = {source: reader.read(layer, pooling) for source, reader in readers.items()}
            if all(np.isfinite(vectors[one][reader.shown]).all() for one, reader in readers.items()):
                yield f"{layer}.{pooling}", task.exported(vectors)
            else:
                left_out.append(f"{name}, layer {layer}, {pooling}: features are not finite")


def _write(job: ScoreJob, name: str, arrays: Arrays) -> Path:
    """Write an array, or an archive of several, so that a reader sees either all of it or none."""
    setup = job.setup
    folder = setup.request.output / "features" / safe_name(setup.spec.name) / safe_name(job.task.key)
    path = folder / f"{name}.{'npy' if len(arrays) == 1 else 'npz'}"
    with whole_file(path) as temporary, temporary.open("wb") as file:
        if len(arrays) == 1:
            (array,) = arrays.values()
            np.save(file, array, allow_pickle=False)
        else:
            np.savez(file, allow_pickle=False, **arrays)
    return path
