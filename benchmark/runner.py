"""A run: passes, scores and comparisons of a plan, each skipped where it is there already."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from benchmark.backbone_run import BackboneRun, Failure
from benchmark.comparisons import compare_all, stale_comparisons
from benchmark.config import RunConfig, select_layers
from benchmark.engine import Engine, LocalEngine
from benchmark.execute import PassResult
from benchmark.passes import run_passes
from benchmark.plan import BoundTask, Plan
from benchmark.progress import Reporter
from benchmark.scores import score_task
from tasks.base import Source, digest
from zoo.errors import InputError
from zoo.identity import identify


def run_backbone(run: BackboneRun, comparisons: Sequence[BoundTask], report: Reporter) -> PassResult:
    """Passes and scores of one backbone; comparisons get their features here and their numbers later."""
    stale = run.stale()
    result = run_passes(run, [*stale, *comparisons], report)
    failed = {failure.task for failure in run.failures}
    todo = [task for task in stale if task.task.name not in failed]
    with report.bar(f"{run.plan.spec.name}  scoring", len(todo), "tasks") as advance:
        for task in todo:
            try:
                score_task(run, task)
            except Exception as error:
                run.fail(task.task.name, error)
            advance(1)
    return result


def prepare(
    plan: Plan, suite: str, config: RunConfig, device: torch.device
) -> tuple[list[BackboneRun], list[Failure]]:
    """Backbones of a plan that can be identified, and failures of those that cannot."""
    known: dict[str, str] = {}

    def signatures(source: Source) -> str:
        if source.name not in known:
            groups = [
                (group.key, [sample.signature() for sample in group.samples]) for group in source.groups
            ]
            known[source.name] = digest(source.name, groups)
        return known[source.name]

    runs: list[BackboneRun] = []
    failures: list[Failure] = []
    dtype = getattr(torch, config.dtype)
    for one in plan.backbones:
        try:
            identity = identify(one.spec, dtype=dtype, cache_dir=config.cache)
        except InputError as error:
            failures.append(Failure(one.spec.name, "", str(error), bad_input=True))
            continue
        run = BackboneRun(one, config, suite, device, identity, signatures)
        select_layers(config.layers, one.spec)  # a wrong layer is wrong usage, before anything is computed
        runs.append(run)
    return runs, failures


@dataclass
class RunResult:
    """What a run did."""

    runs: list[BackboneRun]
    failures: list[Failure]
    passes: PassResult


def execute(
    plan: Plan,
    suite: str,
    config: RunConfig,
    device: torch.device,
    report: Reporter,
    engine: Engine | None = None,
) -> RunResult:
    """Carry out a plan; one failing backbone or task does not stop the others."""
    engine = engine or LocalEngine()
    runs, failures = prepare(plan, suite, config, device)
    stale = stale_comparisons(runs, plan.comparisons)
    results = engine.map(lambda run: run_backbone(run, stale, report), runs)
    total = PassResult()
    for run, result in zip(runs, results, strict=True):
        failures += run.failures
        total.images += result.images
        total.seconds += result.seconds
        total.unreadable += [line for line in result.unreadable if line not in total.unreadable]
    failures += compare_all(runs, stale, report)
    return RunResult(runs, failures, total)
