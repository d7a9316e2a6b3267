"""The passes of one backbone: which are still needed, and running them."""

from collections.abc import Sequence
from dataclasses import replace

import torch

from benchmark.engines.progress import Reporter
from benchmark.features.collectors import Collector, DenseCollector, VectorCollector
from benchmark.features.loading import shard_count
from benchmark.features.one_pass import Listener, PassResult, run_pass
from benchmark.features.shards import ShardStore
from benchmark.jobs.job import VECTORS, BackboneRun
from benchmark.plan.plan import BoundTask, Pass
from zoo.features import Backbone


def listeners_of(run: BackboneRun, one: Pass, tasks: Sequence[BoundTask]) -> list[Listener]:
    """Listeners of a pass that those tasks need and that miss a shard."""
    count = shard_count(one.source)
    found: list[Listener] = []

    def add(name: str, collector: Collector, store: ShardStore) -> None:
        if missing := store.missing(count):
            found.append(Listener(name, collector, store, set(missing)))

    if any(_scores_vectors(task, one) for task in tasks):
        dtype = torch.float16 if run.config.store_dtype == "float16" else torch.float32
        collector = VectorCollector(one.source, run.kept, run.poolings, dtype)
        add(VECTORS, collector, run.store(one, VECTORS, run.vectors_print(one)))
    for task in one.dense:
        if task in tasks and task.measured is not None:
            dense = DenseCollector(task.measured, one.view, frozenset(run.layers))
            add(task.task.name, dense, run.store(one, task.task.name, run.dense_print(one, task)))
    return found


def run_passes(run: BackboneRun, tasks: Sequence[BoundTask], report: Reporter) -> PassResult:
    """Run the passes that those tasks still need; a task whose pass failed is noted as a failure."""
    total, loaded = PassResult(), Loaded(run)
    for one in run.plan.passes:
        try:
            listeners = listeners_of(run, one, tasks)
            if not listeners:
                continue
            result = _one_pass(run, one, listeners, loaded.backbone(), report)
        except Exception as error:
            for task in tasks:
                if task in one.dense or _scores_vectors(task, one):
                    run.fail(task, error)
            continue
        total.images += result.images
        total.seconds += result.seconds
        total.unreadable += result.unreadable
        _note_failures(run, one, tasks, listeners)
    return total


class Loaded:
    """The backbone of a run, loaded when it is first needed; one that cannot be loaded is tried once."""

    def __init__(self, run: BackboneRun) -> None:
        self._run = run
        self._backbone: Backbone | None = None
        self._error: Exception | None = None

    def backbone(self) -> Backbone:
        """The backbone on the run's device; raises the same error every time it is asked for."""
        if self._error is not None:
            raise self._error
        if self._backbone is None:
            try:
                self._backbone = load_backbone(self._run)
            except Exception as error:
                self._error = error
                raise
        return self._backbone


def load_backbone(run: BackboneRun) -> Backbone:
    """The backbone of a run on its device."""
    from zoo.load.backbone import (
        load,
    )  # brings transformers along: seconds that a run without a forward saves

    dtype = getattr(torch, run.config.dtype)
    return load(run.plan.spec, device=run.device, dtype=dtype, cache_dir=run.config.cache)


def _one_pass(
    run: BackboneRun, one: Pass, listeners: list[Listener], backbone: Backbone, report: Reporter
) -> PassResult:
    # a joint batch matters to dense listeners only; vectors do not depend on the batch
    joint = one.source.joint and any(listener.name != VECTORS for listener in listeners)
    source = replace(one.source, joint=joint)
    shards = set().union(*(listener.missing for listener in listeners))
    size = source.groups_per_shard
    images = sum(
        len(group.samples) for shard in shards for group in source.groups[shard * size : (shard + 1) * size]
    )
    with report.bar(f"{run.plan.spec.name}  {source.name}", images, "images") as advance:
        return run_pass(
            source,
            one.view,
            listeners,
            backbone,
            batch_size=run.config.batch_size,
            workers=run.config.workers,
            advance=advance,
        )


def _note_failures(
    run: BackboneRun, one: Pass, tasks: Sequence[BoundTask], listeners: Sequence[Listener]
) -> None:
    """Fail each task whose listener stopped, or that scores the vectors of one that did."""
    for listener in listeners:
        for task in tasks if listener.failure is not None else ():
            dense = task in one.dense and listener.name == task.task.name
            if dense or (listener.name == VECTORS and _scores_vectors(task, one)):
                assert listener.failure is not None
                run.fail(task, listener.failure)


def _scores_vectors(task: BoundTask, one: Pass) -> bool:
    return any(source.name == one.source.name for source in task.vector_sources)
