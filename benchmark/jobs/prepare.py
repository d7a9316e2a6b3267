"""From a request to jobs: the remaining work of each backbone, and the remaining comparisons."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import combinations_with_replacement, product

import torch
from pyarrow import ArrowException

from layerboard.benchmark.engines.choose import device_name, find_devices, find_dtypes
from layerboard.benchmark.engines.progress import Reporter
from layerboard.benchmark.forms.request import Request
from layerboard.benchmark.jobs.job import BackboneJobs, CompareJob, ScoreJob, Setup
from layerboard.benchmark.passes.failures import Failure, failure
from layerboard.benchmark.plan.backbones import find_backbones
from layerboard.benchmark.plan.location import find_data, find_protocols, require_writable
from layerboard.benchmark.plan.lock import (
    Lock,
    at_locked_revision,
    known_lock,
    locked_weights,
    read_lock,
    require_locked,
)
from layerboard.benchmark.plan.plan import Plan, make_plan, shown_alike
from layerboard.benchmark.plan.series import find_series
from layerboard.benchmark.plan.suites import choose_suite, images_suite
from layerboard.benchmark.records.records import ResultFiles, is_current
from layerboard.leaderboards.exchange.merge import paths_of
from layerboard.leaderboards.records.checksum import results_version
from layerboard.leaderboards.records.files import RESULTS_VERSION
from layerboard.tasks.framework.registry import find_covered
from layerboard.tasks.framework.task import Task
from layerboard.zoo.errors import InputError
from layerboard.zoo.load.backbone import identify
from layerboard.zoo.reading import read_regular
from layerboard.zoo.registry.find import write_local_names
from layerboard.zoo.spec import entry_name


@dataclass(frozen=True)
class PlannedRun:
    """A valid request with its plan."""

    request: Request
    plan: Plan
    suite: str  # name under which records are stored
    devices: tuple[torch.device, ...]  # of backbones; the first also does what is done once for all
    # options by name, with the suite, backbones, protocols and dtypes that planning settled
    options: Mapping[str, object] = field(default_factory=dict)
    known: Lock = field(default_factory=dict)  # the weights that it has to have (`known_lock`)


@dataclass(frozen=True)
class Prepared:
    """The work of a planned run; finished work is left out."""

    run: PlannedRun
    backbones: tuple[BackboneJobs, ...]  # backbones with work left
    comparisons: tuple[CompareJob, ...]  # those with a missing pair
    costs: tuple[ScoreJob, ...]  # that are missing for this device
    failures: tuple[Failure, ...]  # one for each task with wrong data, and for each unidentified backbone
    current: tuple[ResultFiles, ...]  # existing records
    lock: Lock  # the weights of the run, and of earlier ones into the same folder


def plan_of(request: Request, report: Reporter, *, writes: bool = True) -> PlannedRun:
    """Find backbones and data, and plan: the common start of everything that shows images to backbones.

    Unless it ``writes``, the folders of the run are neither created nor tested, and only the cache is
    written, with what a run would fetch: weights and datasets. Raises InputError for a wrong request.
    """
    report.say(*request.replaced)
    suite, devices = choose_suite(request), find_devices(request)
    protocols = find_protocols(request, suite)
    settled = replace(request, dtype=find_dtypes(request.dtype, protocols, devices[0], report))
    find_covered(request.tasks, protocols)  # wrong names are said before anything is fetched
    if writes:
        require_writable(request.output, request.cache)
    backbones = find_backbones(settled, suite, report)
    lock = known_lock(request)
    backbones = tuple(at_locked_revision(spec, lock) for spec in backbones)
    if writes:
        write_local_names(backbones, request.output, find_series(request).names(request.output))
    location = find_data(request, suite, protocols)
    ways = request.transform, request.fuse, request.compress
    plan = make_plan(backbones, request.tasks, location, *ways)
    report.say(*plan.tasks.understood, *shown_alike(plan))
    there = [task for task in plan.tasks.every if task.needs != "device"] or plan.tasks.every
    name = images_suite(task.dataset for task in there) if request.images else suite.name
    entries = (spec.entry for spec in backbones if not spec.is_floor)
    options = vars(settled) | {
        "suite": suite.name,
        "backbones": request.backbones or tuple(dict.fromkeys(entries)),
        "protocol": tuple(protocol.name for protocol in protocols),
    }
    return PlannedRun(request, plan, name, devices, options, lock)


def identified(run: PlannedRun) -> tuple[list[Setup], list[Failure]]:
    """The backbones of a run; failures for unidentified ones, and for tasks with wrong data.

    Floors that nobody named are left out if there is nothing to compare them with.
    """
    plan, request = run.plan, run.request
    failures = [Failure("data", absent.task, absent.reason, bad_input=True) for absent in plan.tasks.broken]
    setups: list[Setup] = []
    for spec in plan.backbones:
        try:
            identity = identify(spec, cache_dir=request.cache)
            require_locked(locked_weights(spec, identity), run.known, request)
        except InputError as error:
            failures.append(failure(error, spec.name))
        else:
            setups.append(Setup(plan, spec, identity, request, run.suite, run.devices[0]))
    named = [entry_name(pattern) for pattern in request.backbones]
    wanted = any(
        not setup.spec.is_floor or any(fnmatchcase(setup.spec.entry, name) for name in named)
        for setup in setups
    )
    return setups if wanted or len(setups) == len(plan.backbones) else [], failures


def prepare(run: PlannedRun) -> Prepared:
    """The missing work of a run; writes nothing, and raises InputError for a lost image."""
    plan, request = run.plan, run.request
    setups, failures = identified(run)
    current: list[ResultFiles] = []
    comparisons = _comparisons(plan, setups, current)
    every = [_backbone(setup, comparisons, current) for setup in setups]
    backbones = tuple(jobs for jobs in every if jobs.passes or jobs.backbone_tasks or jobs.scores)
    device = device_name(run.devices[0]) + (", compiled" if request.compile else "")
    of_device = [task.on(device) for task in plan.tasks.needing("device")]
    before = read_lock(request.output)
    lock = dict(before)
    for setup in setups:
        lock |= locked_weights(setup.spec, setup.identity)
    if request.again and not of_device and lock == before:
        raise InputError(
            "--again measures costs again, but cost is not among the tasks, and no weights have changed; "
            "add --tasks cost"
        )
    costs = tuple(job for setup in setups for job in _stale(setup, of_device, current, again=request.again))
    prepared = Prepared(run, backbones, comparisons, costs, tuple(failures), tuple(current), lock)
    _require_results_version(prepared)
    return prepared


def _require_results_version(prepared: Prepared) -> None:
    """Raise InputError if records of another results version would remain beside those of the run."""
    jobs = [
        *prepared.costs,
        *(job for each in prepared.backbones for job in (*each.scores, *each.backbone_tasks)),
    ]
    pairs = [pair for _, members in prepared.comparisons for pair in product(members, repeat=2)]
    written = {job.files.records for job in jobs}
    written |= {first.files_with(second).records for first, second in pairs}
    for path in {*paths_of(prepared.run.request.output)} - written:
        with suppress(OSError, ArrowException):  # damaged files are reported where they are read
            if (known := results_version(read_regular(path))) != RESULTS_VERSION:
                now = f"this layerboard {RESULTS_VERSION}, and this run does not measure it again"
                raise InputError(f"{path} has results version {known}, {now}; give another --output")


def _comparisons(plan: Plan, setups: Sequence[Setup], current: list[ResultFiles]) -> tuple[CompareJob, ...]:
    """Comparisons of all backbones, ordered by name, so that a pair has the same file in every run."""
    ordered = sorted(setups, key=lambda setup: setup.spec.name)
    stale = []
    for task in plan.tasks.needing("pairs"):
        jobs = [setup.score_job(task) for setup in ordered if task.concerns(setup.spec)]
        pairs = [
            pair
            for pair in combinations_with_replacement(jobs, 2)
            if task.compares(*(side.setup.spec for side in pair))
        ]
        there = list(filter(is_current, (first.files_with(second) for first, second in pairs)))
        if len(there) < len(pairs):
            stale.append((task, tuple(job for job in jobs if any(job in pair for pair in pairs))))
        current += there
    return tuple(stale)


def _backbone(setup: Setup, comparisons: Sequence[CompareJob], current: list[ResultFiles]) -> BackboneJobs:
    """Remaining work of one backbone; comparisons need features of every backbone."""
    plan = setup.plan
    scores = _stale(setup, plan.tasks.needing("passes"), current)
    backbone_tasks = _stale(setup, plan.tasks.needing("backbone"), current)
    needed = {job.task.key for job in scores}
    needed |= {task.key for task, members in comparisons if any(member.setup is setup for member in members)}
    passes = (each.serving(needed) for each in plan.passes)
    jobs = tuple(setup.pass_job(each) for each in passes if each.tasks)
    return BackboneJobs(setup, jobs, backbone_tasks, scores)


def _stale(
    setup: Setup, tasks: Iterable[Task], current: list[ResultFiles], *, again: bool = False
) -> tuple[ScoreJob, ...]:
    """Jobs whose records are missing or out of date; the others are added to ``current``."""
    spec, layers = setup.spec, setup.layers
    concerned = [task for task in tasks if task.concerns(spec) and task.has_any(layers, spec)]
    jobs = [setup.score_job(task) for task in concerned]
    there = [not again and is_current(job.files) for job in jobs]
    current += [job.files for job, now in zip(jobs, there, strict=True) if now]
    return tuple(job for job, now in zip(jobs, there, strict=True) if not now)
