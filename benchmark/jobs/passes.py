"""The passes of one backbone: which shards are still missing, and running them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from benchmark.engines.progress import Reporter
from benchmark.extraction.collectors import Collector, MeasuredCollector, VectorCollector
from benchmark.extraction.debias import DebiasedCollector
from benchmark.extraction.failures import Failure, failure, is_out_of_memory
from benchmark.extraction.one_pass import Listener, Pace, PassCallbacks, PassResult, run_pass
from benchmark.extraction.reader import MeasuredLayers
from benchmark.extraction.shards import Shards
from benchmark.jobs.fingerprints import measured_layers
from benchmark.jobs.job import VECTORS, Job, Setup
from benchmark.plan.plan import Pass, Plan, view_for
from tasks.base import Source
from tasks.task import Measured, Task
from tasks.transforms import parse_transform
from zoo.errors import InputError
from zoo.features import Backbone
from zoo.spec import BackboneSpec, Layer

ATTENTION_BYTES = 1 << 29
"""Attention maps of one block for one batch take at most so much."""


def run_passes(plan: Plan, jobs: Sequence[Job], cache: "BackboneCache", report: Reporter) -> PassResult:
    """Carry out the jobs of one backbone, which is loaded when it is first needed."""
    return PassResult.joined(run_job(plan, job, cache, report) for job in jobs)


def images_left(plan: Plan, job: Job) -> int:
    """Images of the shards that a job still misses."""
    source = plan.pass_over(job.source).source
    return sum(source.shard_images(shard) for shard in missing_shards(plan, job))


def missing_shards(plan: Plan, job: Job) -> list[int]:
    """Shards that a listener of a job misses, in order."""
    count = plan.pass_over(job.source).source.shards
    folders = job.listeners.values()
    return sorted(set().union(*({*Shards.open(folder, count).missing} & {*job.shards} for folder in folders)))


def run_job(plan: Plan, job: Job, cache: "BackboneCache", report: Reporter) -> PassResult:
    """Show the images of the shards that a listener of a job misses, once, to its backbone."""
    one = plan.pass_over(job.source)
    listeners = [listener for listener in _listeners(one, job) if listener.missing]
    if not listeners:
        return PassResult()
    try:
        backbone = cache.backbone()
        reasons = {each.name: backbone.refusal(each.collector.layers) for each in listeners}
        listeners = [each for each in listeners if not reasons[each.name]]
        sittings = sittings_of(one, job.setup.spec, listeners)
        shown = [_show(one, job, sitting, backbone, report) for sitting in sittings]
    except Exception as error:
        return PassResult(failures=tuple(_failed(job, plan.task(key), error) for key in job.tasks))
    fed = {name: [task for task in _fed_by(one, name) if task.key in job.tasks] for name in job.listeners}
    errors = [(each.name, each.failure) for each in listeners if each.failure is not None]
    failures = tuple(_failed(job, task, error) for name, error in errors for task in fed[name])
    refusals = {task.key: reason for name, reason in reasons.items() if reason for task in fed[name]}
    return PassResult.joined([*shown, PassResult(failures=failures, refusals=refusals)])


def sittings_of(one: Pass, spec: BackboneSpec, listeners: Sequence[Listener]) -> list[list[Listener]]:
    """Listeners that share a forward: all of them, if what they need fits into memory together.

    Where one needs all images of a group at once, whose attention maps together would not fit, those that
    need maps sit apart, and are shown smaller batches.
    """
    if not listeners:
        return []
    apart = [each for each in listeners if _asks_for_maps(each)]
    largest = max(len(group.samples) for group in one.source.groups)
    if largest <= _fitting(spec) or not apart or not _needs_whole_groups(one, listeners):
        return [list(listeners)]
    return [[each for each in listeners if each not in apart], apart]


def _show(
    one: Pass, job: Job, listeners: Sequence[Listener], backbone: Backbone, report: Reporter
) -> PassResult:
    """The pass over the shards that listeners miss."""
    setup = job.setup
    source = replace(one.source, joint=one.source.joint and _needs_whole_groups(one, listeners))
    shards = set().union(*(listener.missing for listener in listeners))
    pace = Pace(_batch_size(setup, listeners), setup.request.workers)
    title, images = f"{setup.spec.name}  {source.name}", sum(map(source.shard_images, shards))
    with report.bar(title, images, "images") as advance:
        callbacks = PassCallbacks(advance, report.say)
        return run_pass(source, view_for(setup.spec, source.view), listeners, backbone, pace, callbacks)


def _needs_whole_groups(one: Pass, listeners: Sequence[Listener]) -> bool:
    """Whether a listener must see all images of a group at once.

    Vectors do not depend on the batch; what is fed attention maps takes those of any batch, as they may not
    fit into memory.
    """
    names = {listener.name for listener in listeners if not _asks_for_maps(listener)}
    fed = (task.fed_by(one.source) for task in one.measured if task.listener in names)
    return any(each is not None and each.feed.whole for each in fed)


def _batch_size(setup: Setup, listeners: Sequence[Listener]) -> int:
    """The request's, or fewer images where a block's attention maps would not fit (float32)."""
    size = setup.request.batch_size
    return min(size, _fitting(setup.spec)) if any(map(_asks_for_maps, listeners)) else size


def _fitting(spec: BackboneSpec) -> int:
    """Images, at least one, whose attention maps of one block stay below `ATTENTION_BYTES`."""
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


def collectors_of(one: Pass, setup: Setup, memories: Mapping[str, Path]) -> dict[str, Collector]:
    """What may listen to a pass of a backbone, by name; not what has nothing to remember.

    Args:
        one: The pass.
        setup: The backbone.
        memories: As of `Job`.
    """
    dtype = torch.float16 if setup.request.store_dtype == "float16" else torch.float32
    view = view_for(setup.spec, one.source.view)
    collectors: dict[str, Collector] = {
        VECTORS: VectorCollector(one.source, setup.kept, setup.poolings, dtype, setup.spec.width)
    }
    for task in one.measured:
        name, fed = task.listener, task.fed_by(one.source)
        if task.memory is not None and task.scores_from(one.source):
            before = measured_layers(setup, task, task.memory.source)
            folder = memories.get(name)
            fed = None if folder is None else _remembering(task, task.memory.source, folder, before)
        if fed is not None:
            layers = measured_layers(setup, task, one.source)
            plain = MeasuredCollector(fed, view, layers, setup.spec.patch_size)
            collectors[name] = _reading(plain, task.transform)
    return collectors


def _reading(collector: MeasuredCollector, transform: str) -> Collector:
    """A collector that is shown features as a transform leaves them."""
    return DebiasedCollector(collector, parse_transform(transform).components) if transform else collector


def _remembering(task: Task, source: Source, folder: Path, layers: Sequence[Layer]) -> Measured | None:
    """A task with what the pass before left behind; None where not all of its shards are there."""
    store = Shards.open(folder, source.shards)
    if store.missing:
        return None
    before = MeasuredLayers(source, store, layers)
    return task.remembering(before, before.failures)


def _listeners(one: Pass, job: Job) -> list[Listener]:
    """What listens to a pass, and which shards of the job each still misses."""
    collectors, found = collectors_of(one, job.setup, job.memories), []
    for name, folder in job.listeners.items():
        if name not in collectors:
            continue
        shards = Shards.open(folder, one.source.shards)
        found.append(Listener(name, collectors[name], shards, {*shards.missing} & {*job.shards}))
    return found


def _fed_by(one: Pass, listener: str) -> list[Task]:
    """Tasks that need what a listener keeps."""
    measured = [task for task in one.measured if task.listener == listener]
    return list(one.vectors) if listener == VECTORS else measured


def _failed(job: Job, task: Task, error: Exception) -> Failure:
    if is_out_of_memory(error):
        error = InputError(
            "out of memory; try a smaller --batch-size or --input-size, fewer --workers, or another --device"
        )
    return failure(error, job.setup.spec.name, task.entry.name, task.key)
