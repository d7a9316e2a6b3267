"""What one backbone is asked without a pass: gradients of a few images, its weights, and what it costs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter

from benchmark.engines.progress import Reporter
from benchmark.extraction.failures import Failure, failure
from benchmark.extraction.gradients import Asked, FieldSums, sum_fields
from benchmark.extraction.one_pass import Pace, PassCallbacks, PassResult
from benchmark.extraction.timing import measure_cost
from benchmark.jobs.job import ScoreJob, Setup
from benchmark.jobs.passes import BackboneCache
from benchmark.jobs.scores import keep
from benchmark.plan.plan import view_for
from tasks.analyses.cost import CostConfig, MeasuredCosts
from tasks.base import Source
from tasks.checks import nothing_read
from tasks.stored import Fields
from zoo.features import Weights
from zoo.features.backbone import Backbone
from zoo.spec import BackboneSpec, Layer


def run_questions(jobs: Sequence[ScoreJob], cache: BackboneCache, report: Reporter) -> PassResult:
    """Ask one backbone, which is loaded when it is first needed, and write down what it answers."""
    asked: list[LoadedBackbone] = []
    failures: list[Failure] = []
    for job in jobs:
        begin, task = perf_counter(), job.task
        try:
            asked.append(LoadedBackbone(cache.backbone(), job.setup, report))
            keep(job, task.results(asked[-1]), len(asked[-1].sums.unreadable), begin)
        except Exception as error:
            failures.append(failure(error, job.setup.spec.name, task.entry.name, task.key))
    unreadable = tuple(line for backbone in asked for line in backbone.sums.unreadable)
    return PassResult(sum(backbone.sums.images for backbone in asked), unreadable, tuple(failures))


def measure_costs(jobs: Sequence[ScoreJob], report: Reporter) -> tuple[Failure, ...]:
    """Measure and write down what each backbone costs; gives what fails."""
    if not jobs:
        return ()
    failures: list[Failure] = []
    with report.bar("measuring cost", len(jobs), "backbones") as advance:
        for job in jobs:
            begin, task = perf_counter(), job.task
            try:
                asked = LoadedBackbone(BackboneCache(job.setup).backbone(), job.setup, report)
                keep(job, task.results(asked), 0, begin)
            except Exception as error:
                failures.append(failure(error, job.setup.spec.name, task.entry.name, task.key))
            advance(1)
    return tuple(failures)


@dataclass
class LoadedBackbone:
    """A loaded backbone that a task asks something: a `tasks.stored.AskedBackbone`.

    Attributes:
        backbone: The backbone.
        setup: How the run shows it.
        report: Hears of images that are looked at.
        sums: What was summed over images; nothing before it was asked for fields.
    """

    backbone: Backbone
    setup: Setup
    report: Reporter
    sums: FieldSums = field(default_factory=FieldSums)

    @property
    def spec(self) -> BackboneSpec:
        """The backbone's entry."""
        return self.backbone.spec

    def weights(self) -> Weights:
        """The first weights."""
        return self.backbone.weights()

    def costs(self, config: CostConfig) -> MeasuredCosts:
        """Time, memory and size, measured now."""
        return measure_cost(self.backbone, config)

    def fields(
        self,
        task: str,
        source: Source,
        layers: Callable[[Sequence[Layer]], Sequence[Layer]],
        channels: Callable[[int], Sequence[int]],
    ) -> Fields:
        setup, backbone = self.setup, self.backbone
        wanted = [layer for layer in layers(setup.layers) if backbone.spec.has(layer)]
        refused = _refusals(backbone, wanted)
        asked = Asked(tuple(layer for layer in wanted if layer not in refused), channels)
        if not backbone.fields_refusal():
            title, images = f"{setup.spec.name}  {task}", len(source.samples)
            with self.report.bar(title, images, "images") as advance:
                callbacks = PassCallbacks(advance, self.report.say)
                pace = Pace(setup.request.batch_size, setup.request.workers)
                view = view_for(setup.spec, source.view)
                self.sums = sum_fields(source, view, asked, backbone, pace, callbacks)
            if not self.sums.images:
                raise nothing_read(source)
        sums, patch = self.sums, setup.spec.patch_size
        coarsest = (sums.size[0] // patch, sums.size[1] // patch)
        return Fields(sums.strength, sums.cells, coarsest, sums.images, refused)


def _refusals(backbone: Backbone, layers: Sequence[Layer]) -> dict[Layer, str]:
    """Why a backbone cannot say which pixels move some layers; for each block if it can say it of none."""
    if reason := backbone.fields_refusal():
        return {layer: reason for layer in layers if layer.tap == "block"}
    return {layer: reason for layer in layers if (reason := backbone.refusal([layer]))}
