"""From the plan to jobs: what each backbone still has to do, and what is still to be compared."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations_with_replacement

import torch

from benchmark.engines.choose import device_name
from benchmark.extraction.failures import Failure, failure
from benchmark.jobs.fingerprints import (
    Signatures,
    cost_print,
    measured_folder,
    questions_print,
    records_print,
    signature,
    vectors_folder,
)
from benchmark.jobs.job import VECTORS, BackboneJobs, CompareJob, Job, Pair, ScoreJob, Setup
from benchmark.plan.plan import Pass, Plan, key_of, memory_pass
from benchmark.request import Request
from benchmark.scores.records import Kept, file_under, is_current
from tasks.task import Task
from zoo.errors import InputError
from zoo.load.backbone import identify


@dataclass(frozen=True)
class Prepared:
    """What a run has to do; what is there already is left out.

    Attributes:
        backbones: Passes and scores of each backbone that has any left.
        comparisons: Comparisons of which a pair is not there.
        costs: Backbones whose cost on this device is not there.
        failures: One for each task whose data is wrong, and for each backbone that cannot be identified.
        current: Records that are there already.
    """

    backbones: tuple[BackboneJobs, ...]
    comparisons: tuple[CompareJob, ...]
    costs: tuple[ScoreJob, ...]
    failures: tuple[Failure, ...]
    current: tuple[Kept, ...] = ()


def file_current(prepared: Prepared, suite: str) -> None:
    """Let records that are there belong to a suite from now on."""
    for kept in prepared.current:
        file_under(kept, suite)


def prepare(plan: Plan, request: Request, suite: str, device: torch.device) -> Prepared:
    """Identify the backbones and the images of a plan, and find out what is not there yet; writes nothing.

    Raises:
        InputError: An image cannot be found.
    """
    sources = [one.source for one in plan.passes]
    sources += [source for task in plan.tasks.asked for source in task.sources]
    images = {key_of(source): signature(source) for source in sources}
    failures = [Failure("data", one.task, one.reason, bad_input=True) for one in plan.tasks.broken]
    dtype = getattr(torch, request.dtype)
    setups: list[Setup] = []
    for spec in plan.backbones:
        try:
            identity = identify(spec, dtype=dtype, cache_dir=request.cache)
        except InputError as error:
            failures.append(failure(error, spec.name))
        else:
            setups.append(Setup(spec, identity, request, suite, device))
    current: list[Kept] = []
    comparisons = _comparisons(plan, setups, images, current)
    backbones = [_backbone(plan, setup, images, comparisons, current) for setup in setups]
    todo = tuple(jobs for jobs in backbones if jobs.passes or jobs.questions or jobs.scores)
    placed = [task.on(device_name(device)) for task in plan.tasks.costs]
    costs = [job for setup in setups for job in _stale(setup, placed, _cost_job, current)]
    return Prepared(todo, comparisons, tuple(costs), tuple(failures), tuple(current))


def _comparisons(
    plan: Plan, setups: Sequence[Setup], images: Signatures, current: list[Kept]
) -> tuple[CompareJob, ...]:
    """Comparisons of all backbones, in the order of their names, so that a pair has one file in every run."""
    ordered = sorted(setups, key=lambda setup: setup.spec.name)
    stale = []
    for task in plan.tasks.comparisons:
        concerned = (setup for setup in ordered if task.concerns(setup.spec))
        every = [_score_job(plan, setup, task, images) for setup in concerned]
        pairs = [
            Pair(first, second)
            for first, second in combinations_with_replacement(every, 2)
            if task.compares(first.setup.spec, second.setup.spec)
        ]
        sides = [side for pair in pairs for side in (pair.first, pair.second)]
        members = tuple(one for one in every if any(one is side for side in sides))
        there = [pair.kept for pair in pairs if is_current(pair.kept)]
        if len(there) < len(pairs):
            stale.append(CompareJob(task.key, members))
        current += there
    return tuple(stale)


def _backbone(
    plan: Plan,
    setup: Setup,
    images: Signatures,
    comparisons: Sequence[CompareJob],
    current: list[Kept],
) -> BackboneJobs:
    """What is left to do of one backbone; comparisons need features of every one."""
    scores = _stale(setup, plan.tasks.scored, partial(_score_job, plan, images=images), current)
    questions = _stale(setup, plan.tasks.asked, partial(_question_job, images=images), current)
    needed = {job.task for job in scores}
    needed |= {job.task for job in comparisons if any(one.setup is setup for one in job.members)}
    passes = (_pass_job(plan, setup, one, images, needed) for one in plan.passes)
    return BackboneJobs(setup, tuple(job for job in passes if job.tasks), tuple(questions), tuple(scores))


def _stale(
    setup: Setup,
    tasks: Sequence[Task],
    job_of: Callable[[Setup, Task], ScoreJob],
    current: list[Kept],
) -> list[ScoreJob]:
    """Jobs whose records are not there, or of something else; the others are added to what is current."""
    found = []
    for task in tasks:
        if not task.concerns(setup.spec):
            continue
        job = job_of(setup, task)
        if is_current(job.kept):
            current.append(job.kept)
        else:
            found.append(job)
    return found


def _pass_job(plan: Plan, setup: Setup, one: Pass, images: Signatures, needed: set[str]) -> Job:
    vectors = [task for task in one.vectors if task.key in needed]
    measured = [task for task in one.measured if task.key in needed and task.concerns(setup.spec)]
    listeners = {VECTORS: vectors_folder(setup, one, images)} if vectors else {}
    listeners |= {task.listener: measured_folder(setup, one, task, images) for task in measured}
    memories = {
        task.listener: measured_folder(setup, before, task, images)
        for task in measured
        if (before := memory_pass(plan, task, one)) is not None
    }
    keys = dict.fromkeys(task.key for task in (*vectors, *measured))
    return Job(setup, one.key, range(one.source.shards), listeners, tuple(keys), memories)


def _score_job(plan: Plan, setup: Setup, task: Task, images: Signatures) -> ScoreJob:
    vectors = {one.key: vectors_folder(setup, one, images) for one in plan.passes if task in one.vectors}
    measured = [measured_folder(setup, one, task, images) for one in plan.passes if _is_scored(task, one)]
    fingerprint = records_print(setup, task, plan.passes, images)
    folder = measured[0] if measured else None
    return ScoreJob(setup, task.key, fingerprint, task.data_digest, vectors, folder)


def _is_scored(task: Task, one: Pass) -> bool:
    """Whether what a pass leaves behind of a task is what it scores, and not what it remembers."""
    return task in one.measured and task.scores_from(one.source)


def _question_job(setup: Setup, task: Task, images: Signatures) -> ScoreJob:
    return ScoreJob(setup, task.key, questions_print(setup, task, images), task.data_digest, {}, None)


def _cost_job(setup: Setup, task: Task) -> ScoreJob:
    return ScoreJob(setup, task.key, cost_print(setup, task), task.data_digest, {}, None)
