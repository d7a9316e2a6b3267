"""What one backbone is asked without a pass: gradients of a few images, its weights, and what it costs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter

from benchmark.engines.progress import Reporter
from benchmark.extraction.failures import Failure, noting
from benchmark.extraction.gradients import FieldSums, sum_fields
from benchmark.extraction.loading import batches
from benchmark.extraction.one_pass import PassResult
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
    asked, failures = list[LoadedBackbone](), list[Failure]()
    for job in jobs:
        begin, task = perf_counter(), job.task
        with noting(failures, job.setup.spec.name, task.entry.name, task.key):
            asked.append(LoadedBackbone(cache.backbone(), job.setup, report))
            keep(job, task.results(asked[-1]), len(asked[-1].sums.unreadable), begin)
    sums = [backbone.sums for backbone in asked]
    unreadable = tuple(line for each in sums for line in each.unreadable)
    return PassResult(sum(each.images for each in sums), unreadable, tuple(failures))


def measure_costs(jobs: Sequence[ScoreJob], report: Reporter) -> tuple[Failure, ...]:
    """Measure and write down what each backbone costs; gives what fails."""
    if not jobs:
        return ()
    failures: list[Failure] = []
    with report.bar("measuring cost", len(jobs), "backbones") as advance:
        for job in jobs:
            failures += run_questions([job], BackboneCache(job.setup), report).failures
            advance(1)
    return tuple(failures)


@dataclass
class LoadedBackbone:
    """A loaded backbone that a task asks something: a `tasks.stored.AskedBackbone`."""

    backbone: Backbone
    setup: Setup
    report: Reporter  # hears of images that are looked at
    sums: FieldSums = field(default_factory=FieldSums)  # over images; nothing before it was asked for fields

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
        spec, request, backbone = self.setup.spec, self.setup.request, self.backbone
        wanted = [layer for layer in layers(self.setup.layers) if spec.has(layer)]
        if reason := backbone.fields_refusal():  # of no layer, which is said of each block
            refused = {layer: reason for layer in wanted if layer.tap == "block"}
        else:
            refused = {layer: reason for layer in wanted if (reason := backbone.refusal([layer]))}
            asked = [layer for layer in wanted if layer not in refused]
            source, size = replace(source, view=view_for(spec, source.view)), request.batch_size
            events = batches(source, range(source.shards), size, spec.input_size, request.workers)
            title, images = f"{spec.name}  {task}", len(source.samples)
            with self.report.bar(title, images, "images") as advance:
                self.sums = sum_fields(events, size, backbone, asked, channels, advance)
            if not self.sums.images:
                raise nothing_read(source)
        height, width = self.sums.size
        coarsest = height // spec.patch_size, width // spec.patch_size
        return Fields(self.sums.strength, self.sums.cells, coarsest, self.sums.images, refused)
