"""What backbones cost on this machine: measured one after the other, while nothing else of a run computes."""

from collections.abc import Sequence
from time import perf_counter

from benchmark.engines.choose import device_name
from benchmark.engines.progress import Reporter
from benchmark.extraction.failures import Failure, failure
from benchmark.extraction.timing import measure_cost
from benchmark.jobs.job import ScoreJob
from benchmark.jobs.passes import BackboneCache
from benchmark.jobs.scores import keep_findings
from benchmark.plan.bound import CostTask
from benchmark.plan.plan import Plan


def measure_costs(plan: Plan, jobs: Sequence[ScoreJob], report: Reporter) -> tuple[Failure, ...]:
    """Measure and write down what each backbone costs; gives what fails."""
    if not jobs:
        return ()
    device = device_name(jobs[0].setup.device)
    placed = {one.key: one for one in (task.on(device) for task in plan.tasks.costs)}
    failures: list[Failure] = []
    with report.bar("measuring cost", len(jobs), "backbones") as advance:
        for job in jobs:
            task = placed[job.task]
            try:
                _measure(task, job)
            except Exception as error:
                name, entry = job.setup.spec.name, task.subject.entry.name
                failures.append(failure(error, name, entry, task.key))
            advance(1)
    return tuple(failures)


def _measure(task: CostTask, job: ScoreJob) -> None:
    """Load one backbone, measure it and write its records."""
    begin = perf_counter()
    costs = measure_cost(BackboneCache(job.setup).backbone(), task.problem.rule)
    keep_findings(task, job, task.problem.findings(costs), 0, begin)
