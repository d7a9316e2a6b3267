"""The passes of one backbone: their listeners, and running them."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

import torch

from layerboard.benchmark.engines.progress import Reporter, once_more
from layerboard.benchmark.jobs.job import Job, Setup
from layerboard.benchmark.passes.collectors import Collector, MeasuredCollector, VectorCollector
from layerboard.benchmark.passes.failures import NO_MEMORY_FORWARD, failure
from layerboard.benchmark.passes.loading import KEPT_BYTES, KeptViews, Loader, render_sample
from layerboard.benchmark.passes.one_pass import Listener, Listeners, PassResult, run_pass
from layerboard.benchmark.passes.shards import MeasuredLayers, Shards
from layerboard.benchmark.passes.timing import best_batch
from layerboard.benchmark.plan.location import require_writable_folder
from layerboard.benchmark.plan.plan import VECTORS
from layerboard.tasks.analyses.cost import CostTask
from layerboard.tasks.framework.task import Task
from layerboard.zoo.features.backbone import Backbone
from layerboard.zoo.load.backbone import load_backbone
from layerboard.zoo.load.feature_fingerprint import require_stored_features

ATTENTION_BYTES = 1 << 29  # maximum bytes of the attention maps of one block for one batch


def run_job(job: Job, cache: "BackboneCache", report: Reporter) -> PassResult:
    """Show the images of the shards that some listener of a job lacks to its backbone, once."""
    listeners = [listener for listener in _listeners(job) if listener.missing]
    if not listeners:
        return PassResult()
    name = job.setup.spec.name
    try:
        backbone = cache.backbone()
        refusals = {each.name: backbone.refusal(each.collector.layers) for each in listeners}
        listening = [each for each in listeners if not refusals[each.name]]
        if listening:
            require_writable_folder(job.setup.request.cache, "--cache")
        else:
            total = sum(map(job.pass_.source.shard_images, job.missing))
            with report.bar(f"{name}  {job.pass_.source.name}", total, "images") as advance:
                advance(total)  # nothing can be read of these
        loader = Loader(job.setup.request.workers, cache.views.render if job.shared else render_sample)
        results = [*_shown(job, listening, backbone, cache.batch_size, loader, report)]
    except Exception as error:
        failures = [failure(error, name, task, NO_MEMORY_FORWARD) for task in job.pass_.tasks]
        return PassResult(failures=tuple(failures))
    served = [(each, task) for each in listeners for task in each.tasks]
    failures = [failure(each.failure, name, task, NO_MEMORY_FORWARD) for each, task in served if each.failure]
    refused = {(name, task.key): refusals[each.name] for each, task in served if refusals[each.name]}
    return PassResult.joined([*results, PassResult(failures=tuple(failures), refusals=refused)])


def _listeners(job: Job) -> Iterator[Listener]:
    """The listeners of a job's pass with the shards that they lack, if they have something to remember."""
    setup = job.setup
    for name, store in job.stores.items():
        tasks = job.pass_.needing(name)
        collector: Collector | None
        if name != VECTORS:
            collector = _collector(job, tasks[0])
        else:
            dtype = getattr(torch, setup.request.store_dtype)
            poolings, width = setup.spec.poolings_of(setup.poolings), setup.spec.width
            collector = VectorCollector(job.source, setup.stored_layers, poolings, dtype, width)
        if collector is not None:
            yield Listener(name, collector, store, {*store.missing} & {*job.shards}, tasks)


def _collector(job: Job, task: Task) -> Collector | None:
    """The collector that feeds a task in the pass of a job; None if what the task remembers is missing."""
    setup, source = job.setup, job.source
    fed = task.fed_by(source)
    if task.memory is not None and task.scores_from(source):
        remembered = task.memory.source
        folder = job.memories.get(task.listener)
        store = None if folder is None else Shards(folder, remembered.shards)
        if store is None or store.missing:
            return None
        layers = task.measured_layers(remembered, setup.layers, setup.spec)
        before = MeasuredLayers(remembered, store, layers)
        fed = task.remembering(before, before.failures)
    layers = task.measured_layers(source, setup.layers, setup.spec)
    return MeasuredCollector(fed, source, layers, setup.spec.patch_size)


def _shown(
    job: Job, listeners: Listeners, backbone: Backbone, batch_size: int, loader: Loader, report: Reporter
) -> Iterator[PassResult]:
    """The pass for all listeners, if what they need fits into memory together.

    If one listener needs all images of a group at once, and their attention maps together would not fit,
    listeners that need maps have a pass of their own with smaller batches: they accept maps of any batch.
    """
    taps = [(each, {layer.tap for layer in each.collector.layers}) for each in listeners]
    of_maps = [each for each, own in taps if "probabilities" in own]
    others = [each for each in listeners if each not in of_maps]
    whole = any(each.collector.whole for each in others)  # vectors do not depend on the batch
    spec, source = backbone.spec, job.source
    largest = max(len(group.samples) for group in source.groups)
    tokens = spec.prefix_tokens + (spec.input_size // spec.patch_size) ** 2
    fitting = max(1, ATTENTION_BYTES // (4 * (spec.heads or 1) * tokens**2))  # images, float32
    apart = of_maps and whole and largest > fitting
    for sitting in [others, of_maps] if apart else [listeners]:
        if sitting:
            images = replace(source, joint=source.joint and whole and sitting is not of_maps)
            maps = any(each in of_maps for each in sitting)
            size = min(batch_size, fitting) if maps else batch_size
            yield run_pass(images, sitting, backbone, size, loader, report)
            report = once_more(report)


class BackboneCache:
    """The backbone of a setup, loaded when it is first needed; one that cannot be loaded is tried once.

    ``views`` are those of the backbones before it, which it may be shown, too.
    """

    def __init__(self, setup: Setup, views: KeptViews | None = None) -> None:
        self.setup, self.views = setup, views or KeptViews(setup.request.workers * KEPT_BYTES)
        self._loaded: Backbone | Exception | None = None

    def backbone(self) -> Backbone:
        """The backbone on the device of the run; raises the same error every time it is used."""
        if self._loaded is None:
            setup = self.setup
            try:
                backbone = load_backbone(setup.spec, device=setup.device, cache_dir=setup.request.cache)
                require_stored_features(backbone)
                if setup.request.compile:
                    backbone.compile()
                self._loaded = backbone
            except Exception as error:
                self._loaded = error
        if isinstance(self._loaded, Exception):
            raise self._loaded
        return self._loaded

    @cached_property
    def batch_size(self) -> int:
        """Images per batch of its passes; raises as `backbone` does."""
        backbone, request = self.backbone(), self.setup.request
        if request.batch_size == "auto" and backbone.device.type == "cuda":
            return best_batch(backbone, CostTask.configs["standard"])
        return request.batch_on(backbone.device.type)
