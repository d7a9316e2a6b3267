"""The passes of one backbone: what listens to them, and running them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch

from benchmark.engines.progress import Reporter
from benchmark.extraction.collectors import Collector, MeasuredCollector, VectorCollector
from benchmark.extraction.debias import DebiasedCollector
from benchmark.extraction.failures import Failure, failure, is_out_of_memory
from benchmark.extraction.one_pass import Listener, Pace, PassCallbacks, PassResult, run_pass
from benchmark.extraction.reader import MeasuredLayers
from benchmark.extraction.shards import Shards
from benchmark.jobs.fingerprints import measured_layers
from benchmark.jobs.job import Job, Setup
from benchmark.plan.plan import VECTORS, view_for
from tasks.task import Task
from tasks.transforms import parse_transform
from zoo.errors import InputError
from zoo.features.backbone import Backbone
from zoo.spec import BackboneSpec

ATTENTION_BYTES = 1 << 29
"""Attention maps of one block for one batch take at most so much."""


def run_passes(jobs: Sequence[Job], cache: "BackboneCache", report: Reporter) -> PassResult:
    """Carry out the jobs of one backbone, which is loaded when it is first needed."""
    return PassResult.joined(run_job(job, cache, report) for job in jobs)


def run_job(job: Job, cache: "BackboneCache", report: Reporter) -> PassResult:
    """Show the images of the shards that a listener of a job misses, once, to its backbone."""
    listeners = [listener for listener in _listeners(job) if listener.missing]
    if not listeners:
        return PassResult()
    try:
        backbone = cache.backbone()
        reasons = {each.name: backbone.refusal(each.collector.layers) for each in listeners}
        able = [each for each in listeners if not reasons[each.name]]
        results = [_show(job, sitting, backbone, report) for sitting in sittings_of(job, able)]
    except Exception as error:
        return PassResult(failures=tuple(_failed(job, task, error) for task in job.pass_.tasks))
    failures, refusals = list[Failure](), dict[tuple[str, str], str]()
    for listener in listeners:
        for task in job.pass_.needing(listener.name):
            if listener.failure is not None:
                failures.append(_failed(job, task, listener.failure))
            if reason := reasons[listener.name]:
                refusals[job.setup.spec.name, task.key] = reason
    return PassResult.joined([*results, PassResult(failures=tuple(failures), refusals=refusals)])


def _listeners(job: Job) -> Iterator[Listener]:
    """What listens to the pass of a job, and the shards that it misses; not what has nothing to remember."""
    setup, source = job.setup, job.pass_.source
    dtype = torch.float16 if setup.request.store_dtype == "float16" else torch.float32
    for name, folder in job.folders.items():
        store = Shards.open(folder, source.shards)
        collector: Collector | None
        if name == VECTORS:
            collector = VectorCollector(source, setup.kept, setup.poolings, dtype, setup.spec.width)
        else:
            (task,) = job.pass_.needing(name)
            collector = _collector(job, task)
        if collector is not None:
            yield Listener(name, collector, store, {*store.missing} & {*job.shards})


def _collector(job: Job, task: Task) -> Collector | None:
    """What feeds a task in the pass of a job; None where what it remembers is not there."""
    setup, source = job.setup, job.pass_.source
    fed = task.fed_by(source)
    if task.memory is not None and task.scores_from(source):
        remembered = task.memory.source
        folder = job.memories.get(task.listener)
        store = None if folder is None else Shards.open(folder, remembered.shards)
        if store is None or store.missing:
            return None
        before = MeasuredLayers(remembered, store, measured_layers(setup, task, remembered))
        fed = task.remembering(before, before.failures)
    assert fed is not None  # the task is one of the pass
    layers, view = measured_layers(setup, task, source), view_for(setup.spec, source.view)
    collector = MeasuredCollector(fed, view, layers, setup.spec.patch_size)
    if task.transform:
        return DebiasedCollector(collector, parse_transform(task.transform).components)
    return collector


def sittings_of(job: Job, listeners: Sequence[Listener]) -> list[list[Listener]]:
    """Listeners that share a forward: all of them, if what they need fits into memory together.

    Where one needs all images of a group at once, whose attention maps together would not fit, those that
    need maps sit apart, and are shown smaller batches.
    """
    if not listeners:
        return []
    apart = [listener for listener in listeners if _asks_for_maps(listener)]
    largest = max(len(group.samples) for group in job.pass_.source.groups)
    if largest <= _fitting(job.setup.spec) or not apart or not _needs_whole_groups(job, listeners):
        return [list(listeners)]
    return [[listener for listener in listeners if listener not in apart], apart]


def _show(job: Job, listeners: Sequence[Listener], backbone: Backbone, report: Reporter) -> PassResult:
    """The pass over the shards that listeners miss."""
    setup, source = job.setup, job.pass_.source
    source = replace(source, joint=source.joint and _needs_whole_groups(job, listeners))
    shards = set().union(*(listener.missing for listener in listeners))
    size = setup.request.batch_size
    if any(map(_asks_for_maps, listeners)):
        size = min(size, _fitting(setup.spec))
    pace = Pace(size, setup.request.workers)
    title, images = f"{setup.spec.name}  {source.name}", sum(map(source.shard_images, shards))
    with report.bar(title, images, "images") as advance:
        callbacks = PassCallbacks(advance, report.say)
        return run_pass(source, view_for(setup.spec, source.view), listeners, backbone, pace, callbacks)


def _needs_whole_groups(job: Job, listeners: Sequence[Listener]) -> bool:
    """Whether a listener must see all images of a group at once.

    Vectors do not depend on the batch; what is fed attention maps takes those of any batch, as they may not
    fit into memory.
    """
    names = {listener.name for listener in listeners if not _asks_for_maps(listener)}
    fed = (task.fed_by(job.pass_.source) for task in job.pass_.measured if task.listener in names)
    return any(each is not None and each.feed.whole for each in fed)


def _fitting(spec: BackboneSpec) -> int:
    """Images, at least one, whose attention maps of one block (float32) stay below `ATTENTION_BYTES`."""
    tokens = spec.prefix_tokens + (spec.input_size // spec.patch_size) ** 2
    return max(1, ATTENTION_BYTES // (4 * (spec.heads or 1) * tokens**2))


def _asks_for_maps(listener: Listener) -> bool:
    return any(layer.tap == "probabilities" for layer in listener.collector.layers)


class BackboneCache:
    """The backbone of a setup, loaded when it is first needed; one that cannot be loaded is tried once."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self._backbone: Backbone | None = None
        self._error: Exception | None = None

    def backbone(self) -> Backbone:
        """The backbone on the run's device; raises the same error every time it is asked for."""
        if self._error is not None:
            raise self._error
        if self._backbone is None:
            try:
                self._backbone = load_backbone(self.setup)
            except Exception as error:
                self._error = error
                raise
        return self._backbone


def load_backbone(setup: Setup) -> Backbone:
    """The backbone of a setup on its device."""
    # brings transformers along: seconds that a run without a forward saves
    from zoo.load.backbone import load

    dtype = getattr(torch, setup.request.dtype)
    return load(setup.spec, device=setup.device, dtype=dtype, cache_dir=setup.request.cache)


def _failed(job: Job, task: Task, error: Exception) -> Failure:
    if is_out_of_memory(error):
        error = InputError(
            "out of memory; try a smaller --batch-size or --input-size, fewer --workers, or another --device"
        )
    return failure(error, job.setup.spec.name, task.entry.name, task.key)
