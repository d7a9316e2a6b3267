"""From the plan to jobs: what each backbone still has to do."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmark.jobs.failures import Failure, failure
from benchmark.jobs.fingerprints import (
    Signatures,
    measured_folder,
    records_print,
    signature,
    vectors_folder,
)
from benchmark.jobs.job import VECTORS, BackboneJobs, Job, ScoreJob, Setup
from benchmark.plan.bound import BoundTask
from benchmark.plan.plan import Pass, Plan
from benchmark.request import Request
from benchmark.scores.records import file_under, is_current
from leaderboards.records.files import scored_path
from zoo.errors import InputError
from zoo.load.identity import identify


@dataclass(frozen=True)
class Prepared:
    """The backbones of a plan that can be identified, and what cannot be done.

    Attributes:
        setups: The backbones.
        images: Digest of the images of each source.
        failures: One for each task whose data is wrong, and for each of the other backbones.
    """

    setups: tuple[Setup, ...]
    images: Signatures
    failures: tuple[Failure, ...]


def prepare(plan: Plan, request: Request, suite: str, device: torch.device) -> Prepared:
    """Identify the backbones and the images of a plan.

    Raises:
        InputError: A layer is asked for that a backbone does not have, or an image cannot be found.
    """
    images = {one.key: signature(one.source) for one in plan.passes}
    dtype = getattr(torch, request.dtype)
    setups: list[Setup] = []
    failures = [Failure("data", one.task, one.reason, bad_input=True) for one in plan.tasks.broken]
    for spec in plan.backbones:
        try:
            identity = identify(spec, dtype=dtype, cache_dir=request.cache)
        except InputError as error:
            failures.append(failure(error, spec.name))
        else:
            setups.append(Setup(spec, identity, request, suite, device))
    return Prepared(tuple(setups), images, tuple(failures))


def jobs_of(plan: Plan, prepared: Prepared, compared: Sequence[BoundTask]) -> list[BackboneJobs]:
    """What is not there yet of each backbone; backbones of which all is there are left out.

    Args:
        plan: The plan.
        prepared: Its backbones.
        compared: Comparisons that are not there yet: they need features of every backbone.
    """
    every = [_jobs(plan, setup, prepared.images, compared) for setup in prepared.setups]
    return [jobs for jobs in every if jobs.passes or jobs.scores]


def _jobs(plan: Plan, setup: Setup, images: Signatures, compared: Sequence[BoundTask]) -> BackboneJobs:
    scores = []
    for task in plan.tasks.scored:
        path, fingerprint = records_path(setup, task), records_print(setup, task, plan.passes, images)
        if not task.concerns(setup.spec):
            continue
        if is_current(path, fingerprint):
            file_under(path, fingerprint, setup.suite)
        else:
            scores.append(score_job(plan, setup, task, images))
    needed = {*(job.task for job in scores), *(task.key for task in compared)}
    passes = (_pass_job(setup, one, images, needed) for one in plan.passes)
    return BackboneJobs(setup, tuple(job for job in passes if job.tasks), tuple(scores))


def _pass_job(setup: Setup, one: Pass, images: Signatures, needed: set[str]) -> Job:
    vectors = [task for task in one.vectors if task.key in needed]
    measured = [task for task in one.measured if task.key in needed]
    listeners = {VECTORS: vectors_folder(setup, one, images)} if vectors else {}
    listeners |= {task.subject.entry.name: measured_folder(setup, one, task, images) for task in measured}
    keys = dict.fromkeys(task.key for task in (*vectors, *measured))
    return Job(setup, one.key, range(one.source.shards), listeners, tuple(keys))


def score_job(plan: Plan, setup: Setup, task: BoundTask, images: Signatures) -> ScoreJob:
    """The job that scores a task, or prepares a comparison, from what passes have stored."""
    vectors = {one.key: vectors_folder(setup, one, images) for one in plan.passes if task in one.vectors}
    measured = [measured_folder(setup, one, task, images) for one in plan.passes if task in one.measured]
    fingerprint = records_print(setup, task, plan.passes, images)
    return ScoreJob(setup, task.key, fingerprint, vectors, measured[0] if measured else None)


def records_path(setup: Setup, task: BoundTask) -> Path:
    """Records file of a task."""
    return setup.request.output / "records" / scored_path(task.key, setup.spec.name)
