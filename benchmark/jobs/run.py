"""A run: passes, scores and comparisons of a plan, each skipped where it is there already."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter

import torch

from benchmark.engines.engine import Engine, LocalEngine, ProcessEngine
from benchmark.engines.progress import Reporter
from benchmark.features.one_pass import PassResult
from benchmark.jobs.comparisons import compare_all, file_comparisons_under_suite, stale_comparisons
from benchmark.jobs.job import BackboneRun, Failure
from benchmark.jobs.passes import run_passes
from benchmark.jobs.scores import score_task
from benchmark.plan.plan import BoundTask, Plan
from benchmark.request import Request, select_layers
from tasks.base import digest
from zoo.errors import InputError
from zoo.load.identity import identify

SMALL = 64
"""Input size in pixels up to which a backbone is too small to keep several threads busy."""


@dataclass
class RunResult:
    """What a run did: images through backbones, seconds, unreadable images, and failures."""

    passes: PassResult
    failures: list[Failure]


def run_backbone(run: BackboneRun, report: Reporter, comparisons: Sequence[BoundTask]) -> RunResult:
    """Passes and scores of one backbone; comparisons get their features here and their numbers later."""
    stale = run.stale()
    result = run_passes(run, [*stale, *comparisons], report)
    failed = {failure.key for failure in run.failures}
    todo = [task for task in stale if task.key not in failed]
    with report.bar(f"{run.plan.spec.name}  scoring", len(todo), "tasks") as advance:
        for task in todo:
            try:
                score_task(run, task)
            except Exception as error:
                run.fail(task, error)
            advance(1)
    return RunResult(result, run.failures)


def prepare(plan: Plan, suite: str, config: Request, device: torch.device) -> list[BackboneRun | Failure]:
    """Backbones of a plan that can be identified, and failures of those that cannot.

    Raises:
        InputError: A layer is asked for that a backbone does not have, or an image cannot be found.
    """
    signatures = _signatures(plan)
    prepared: list[BackboneRun | Failure] = []
    for one in plan.backbones:
        select_layers(
            config.layers, one.spec, config.taps
        )  # a wrong layer is wrong usage, before anything is computed
        try:
            identity = identify(one.spec, dtype=getattr(torch, config.dtype), cache_dir=config.cache)
        except InputError as error:
            prepared.append(Failure(one.spec.name, "", str(error), bad_input=True))
        else:
            prepared.append(BackboneRun(one, config, suite, device, identity, signatures))
    return prepared


def _signatures(plan: Plan) -> dict[str, str]:
    """Digest of the images of every source: keys, sizes and times of their files."""
    sources = {one.source.name: one.source for backbone in plan.backbones for one in backbone.passes}
    return {
        name: digest(
            name, [(group.key, [sample.signature() for sample in group.samples]) for group in source.groups]
        )
        for name, source in sources.items()
    }


def choose_engine(runs: Sequence[BackboneRun], config: Request, device: torch.device) -> Engine:
    """Processes side by side for several small backbones on a CPU; otherwise one after the other."""
    processes = min(len(runs), config.workers)
    small = all(run.plan.spec.input_size <= SMALL for run in runs)
    if device.type != "cpu" or not small or processes < 2:
        return LocalEngine()
    return ProcessEngine(processes, threads=max(1, config.workers // processes))


def execute(
    plan: Plan,
    suite: str,
    config: Request,
    device: torch.device,
    report: Reporter,
    engine: Engine | None = None,
) -> RunResult:
    """Carry out a plan; one failing backbone or task does not stop the others."""
    prepared = prepare(plan, suite, config, device)
    runs = [one for one in prepared if isinstance(one, BackboneRun)]
    failures = [one for one in prepared if isinstance(one, Failure)]
    for run in runs:
        run.file_under_suite()
    file_comparisons_under_suite(runs, plan.comparisons)
    comparisons = stale_comparisons(runs, plan.comparisons)
    todo = [run for run in runs if comparisons or run.stale()]
    engine = engine or choose_engine(todo, config, device)
    begin = perf_counter()
    results = engine.map(partial(run_backbone, comparisons=comparisons), todo, report)
    total = PassResult()
    for run, result in zip(todo, results, strict=True):
        run.failures = result.failures
        failures += result.failures
        total.images += result.passes.images
        total.unreadable += [line for line in result.passes.unreadable if line not in total.unreadable]
    total.seconds = perf_counter() - begin
    failures += compare_all(runs, comparisons, report)
    return RunResult(total, failures)
