"""What one backbone is asked without a pass: gradients of a few images, and its weights."""

from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter

from benchmark.engines.progress import Reporter
from benchmark.extraction.failures import Failure, failure
from benchmark.extraction.gradients import Asked, FieldSums, sum_fields
from benchmark.extraction.one_pass import Pace, PassCallbacks, PassResult
from benchmark.jobs.job import ScoreJob
from benchmark.jobs.passes import BackboneCache
from benchmark.jobs.scores import keep_findings
from benchmark.plan.bound import BoundTask, GradientTask, InspectTask
from benchmark.plan.plan import Plan, view_for
from tasks.analyses.base import Fields
from tasks.checks import nothing_read
from zoo.features import Backbone
from zoo.spec import Layer


def run_questions(plan: Plan, jobs: Sequence[ScoreJob], cache: BackboneCache, report: Reporter) -> PassResult:
    """Ask one backbone, which is loaded when it is first needed, and write down what it answers."""
    todo = {job.task: job for job in jobs}
    gradients = [task for task in plan.tasks.gradients if task.key in todo]
    inspections = [task for task in plan.tasks.inspections if task.key in todo]
    steps: list[tuple[BoundTask, Callable[[Backbone], FieldSums]]] = [
        *((task, partial(_ask_fields, task, todo[task.key], report)) for task in gradients),
        *((task, partial(_ask_weights, task, todo[task.key])) for task in inspections),
    ]
    done: list[FieldSums] = []
    failures: list[Failure] = []
    for task, step in steps:
        try:
            done.append(step(cache.backbone()))
        except Exception as error:
            failures.append(failure(error, jobs[0].setup.spec.name, task.subject.entry.name, task.key))
    unreadable = tuple(line for one in done for line in one.unreadable)
    return PassResult(sum(one.images for one in done), unreadable, tuple(failures))


def _ask_fields(task: GradientTask, job: ScoreJob, report: Reporter, backbone: Backbone) -> FieldSums:
    """Ask which pixels move the layers of a backbone."""
    begin, problem, setup = perf_counter(), task.problem, job.setup
    layers = [layer for layer in problem.layers(setup.layers) if backbone.spec.has(layer)]
    refused = _refusals(backbone, layers)
    sums = FieldSums()
    asked = Asked(tuple(layer for layer in layers if layer not in refused), problem.channels)
    if not backbone.fields_refusal():
        title, images = f"{setup.spec.name}  {task.subject.entry.name}", len(problem.source.samples)
        with report.bar(title, images, "images") as advance:
            pace = Pace(setup.request.batch_size, setup.request.workers)
            view = view_for(setup.spec, problem.source.view)
            sums = sum_fields(problem.source, view, asked, backbone, pace, PassCallbacks(advance, report.say))
        if not sums.images:
            raise nothing_read(problem.source)
    patch = setup.spec.patch_size
    coarsest = (sums.size[0] // patch, sums.size[1] // patch)
    found = problem.findings(Fields(sums.strength, sums.cells, coarsest, sums.images, refused))
    keep_findings(task, job, found, len(sums.unreadable), begin)
    return sums


def _refusals(backbone: Backbone, layers: Sequence[Layer]) -> dict[Layer, str]:
    """Why a backbone cannot say which pixels move some layers; for each block if it can say it of none."""
    if reason := backbone.fields_refusal():
        return {layer: reason for layer in layers if layer.tap == "block"}
    return {layer: reason for layer in layers if (reason := backbone.refusal([layer]))}


def _ask_weights(task: InspectTask, job: ScoreJob, backbone: Backbone) -> FieldSums:
    """Look at the weights of a backbone."""
    begin = perf_counter()
    found = task.problem.findings(backbone.weights(), backbone.spec.std)
    keep_findings(task, job, found, 0, begin)
    return FieldSums()
