"""One pass: a backbone over a source, once, for everything that wants to see it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter

from benchmark.features.collectors import Collector
from benchmark.features.loading import Batch, ShardEnd, Unreadable, batches
from benchmark.features.shards import ShardStore
from tasks.base import Source
from zoo.errors import InputError
from zoo.features import Backbone, LayerFeatures, Shown
from zoo.view.views import View

Advance = Callable[[int], None]
"""Told how many images went through the backbone."""


@dataclass
class Listener:
    """A collector and where its shards go.

    Attributes:
        name: What it collects, such as ``vectors`` or ``davis``.
        collector: The collector.
        store: Its shards.
        missing: Shards that it still needs.
        failure: Why it stopped listening; None while it listens.
    """

    name: str
    collector: Collector
    store: ShardStore
    missing: set[int]
    failure: Exception | None = None


@dataclass
class PassResult:
    """What a pass did: images through the backbone, seconds, and images that could not be read."""

    images: int = 0
    seconds: float = 0.0
    unreadable: list[str] = field(default_factory=list)


def run_pass(
    source: Source,
    view: View,
    listeners: list[Listener],
    backbone: Backbone,
    *,
    batch_size: int,
    workers: int,
    advance: Advance = lambda images: None,
) -> PassResult:
    """Show every image of the shards that a listener misses to the backbone, once.

    Memory is bounded by a batch, what measurers keep of their group, and one shard's results. A listener that
    raises is marked with its failure and left out from then on; the others go on.
    """
    result, begin = PassResult(), perf_counter()
    shards = sorted(set().union(*(listener.missing for listener in listeners)))
    side = backbone.spec.input_size
    for event in batches(source, view, shards, batch_size, side, workers):
        if all(listener.failure for listener in listeners):
            break
        match event:
            case Batch():
                _show(event, event.members[0].group // source.groups_per_shard, listeners, backbone)
                result.images += len(event.members)
                advance(len(event.members))
            case Unreadable():
                if not source.skip_unreadable:
                    raise InputError(event.reason)
                result.unreadable.append(event.reason)
                advance(1)
            case ShardEnd():
                _store(event.shard, source, listeners)
    result.seconds = perf_counter() - begin
    return result


def _show(batch: Batch, shard: int, listeners: list[Listener], backbone: Backbone) -> None:
    active = [one for one in listeners if shard in one.missing and one.failure is None]

    def visitor(features: Shown) -> None:
        assert isinstance(features, LayerFeatures)  # no collector asks for probabilities
        for listener in active:
            if listener.failure is None and features.layer in listener.collector.layers:
                try:
                    listener.collector.see(batch, features)
                except Exception as error:
                    listener.failure = error

    layers = frozenset().union(*(listener.collector.layers for listener in active))
    if active:
        # from pinned memory the copy to the device goes on while the host prepares the next batch
        pixels = batch.pixels.pin_memory() if backbone.device.type == "cuda" else batch.pixels
        backbone.visit(pixels, visitor, layers)


def _store(shard: int, source: Source, listeners: list[Listener]) -> None:
    start = shard * source.groups_per_shard
    groups = range(start, min(start + source.groups_per_shard, len(source.groups)))
    for listener in listeners:
        if shard in listener.missing and listener.failure is None:
            try:
                arrays = listener.collector.finish(groups)
            except Exception as error:
                listener.failure = error
                continue
            listener.store.write(shard, arrays)
            listener.missing.discard(shard)
