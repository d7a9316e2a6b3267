"""Stored vectors of backbones as files: one per task, layer and pooling."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from layerboard.benchmark.engines.choose import find_engine
from layerboard.benchmark.engines.progress import Reporter
from layerboard.benchmark.forms.parsers import USUAL_POOLINGS
from layerboard.benchmark.forms.request import Request
from layerboard.benchmark.jobs.job import BackboneJobs, ScoreJob, Setup
from layerboard.benchmark.jobs.pieces import PassesAndScores, Pieces
from layerboard.benchmark.jobs.prepare import identified, plan_of
from layerboard.benchmark.jobs.scores import readers_of
from layerboard.benchmark.passes.failures import Failure, noting
from layerboard.benchmark.passes.one_pass import PassResult, VectorFile
from layerboard.benchmark.plan.plan import Plan
from layerboard.leaderboards.records.files import safe_name
from layerboard.tasks.framework.registry import DRIFT, TASKS, load_code
from layerboard.tasks.framework.task import Task
from layerboard.zoo.atomic import whole_file
from layerboard.zoo.errors import InputError

Arrays = Mapping[str, NDArray[np.generic]]


def write_vectors(request: Request, report: Reporter) -> PassResult:
    """Write the vectors of backbones, layers and poolings in the form that ``score`` reads.

    Missing vectors are computed, each image once for all layers, and stored in the cache. Files are
    ``OUTPUT/features/<backbone>/<task>.<dataset>.<protocol>/<layer>.<pooling>.npz``. Raises InputError if the
    request is wrong, or if a named task uses no vectors.
    """
    request = replace(request, floor=False, transform=(), compress=(), fuse=())
    run = plan_of(request, report)
    tasks = _exported(run.plan, request.tasks)
    setups, failures = identified(run)
    jobs = [vector_jobs(tasks, setup) for setup in setups]
    engine, pieces = find_engine([job.setup.spec for job in jobs], request, run.devices), Pieces(jobs)
    engine.run(PassesAndScores(partial(write_files, request.poolings)), pieces, report)
    return PassResult.joined([PassResult(failures=tuple(failures)), pieces.result])


def _exported(plan: Plan, named: Sequence[str]) -> list[Task]:
    """Tasks whose vectors a scorer reads; raises InputError for any other, if tasks are ``named``.

    Several formats or resizings bring drift along, which nobody named.
    """
    others = [task.entry.name for task in plan.tasks.every if not task.scorer]
    others = [name for name in others if name != DRIFT or name in named]
    if others and named:
        scorers = ", ".join(scorer for entry in TASKS if (scorer := load_code(entry).scorer))
        raise InputError(
            f"{others[0]} has no files of vectors of its own; leave it out: there are files for {scorers}, "
            "and score fewshot and score linear read those of knn"
        )
    if not (tasks := [task for task in plan.tasks.every if task.scorer]):
        raise InputError("none of the data is for a task that takes stored vectors")
    return tasks


def vector_jobs(tasks: Sequence[Task], setup: Setup) -> BackboneJobs:
    """The passes that store the vectors of a backbone, and the tasks for which to write them.

    Existing passes of a run with the same options are used, or else passes with all that a backbone can
    store.
    """
    keys = {task.key for task in tasks}
    every = tuple(dict.fromkeys((*USUAL_POOLINGS, *setup.request.poolings)))
    for each in (setup, replace(setup, request=replace(setup.request, poolings=every))):
        served = (replace(pass_.serving(keys), measured=()) for pass_ in setup.plan.passes)
        passes = tuple(each.pass_job(pass_) for pass_ in served if pass_.vectors)
        if not any(job.missing for job in passes):
            break
    return BackboneJobs(each, passes, (), tuple(map(each.score_job, tasks)))


def write_files(
    asked: Sequence[str], jobs: Sequence[ScoreJob], passed: PassResult, report: Reporter
) -> PassResult:
    """Write the files of the tasks of one backbone.

    Requested poolings are written; for the random floor, whose poolings are equivalent, only one.
    """
    if not jobs:
        return PassResult()
    lost, files, left_out, failures = {each.key for each in passed.failures}, [], list[str](), list[Failure]()
    setup, name = jobs[0].setup, jobs[0].setup.spec.name
    poolings = setup.poolings if setup.spec.is_floor else asked
    with report.bar(f"{name}  writing", len(jobs), "tasks") as advance:
        for job in (job for job in jobs if job.task.key not in lost):
            with noting(failures, name, job.task):
                for file, arrays in _arrays(job, poolings, left_out):
                    command = f"score {job.task.scorer} --features"
                    files.append(VectorFile(name, command, _write(job, file, arrays)))
            advance(1)
    return PassResult(unreadable=tuple(left_out), failures=tuple(failures), files=tuple(files))


def _arrays(job: ScoreJob, poolings: Sequence[str], left_out: list[str]) -> Iterator[tuple[str, Arrays]]:
    """The arrays of each layer and pooling of a task, with file names; reports what has none."""
    readers, name = readers_of(job), job.setup.spec.name
    stored = next(iter(readers.values())).poolings()
    left_out += [f"{name} has no vectors {pooling}" for pooling in poolings if pooling not in stored]
    for layer in job.setup.layers:
        for pooling in (pooling for pooling in poolings if pooling in stored):
            vectors = {source: reader.read(layer, pooling) for source, reader in readers.items()}
            if all(np.isfinite(vectors[source][reader.shown]).all() for source, reader in readers.items()):
                yield f"{layer}.{pooling}", job.task.exported(vectors)
            else:
                left_out.append(f"{name}, layer {layer}, {pooling}: features are not finite")


def _write(job: ScoreJob, name: str, arrays: Arrays) -> Path:
    """Write an array, or an archive of several, atomically."""
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
