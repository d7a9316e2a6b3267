"""One pass: a backbone over a source, once, for everything that wants to see it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from benchmark.features.collectors import Collector
from benchmark.features.loading import Batch, ShardEnd, Unreadable, batches
from benchmark.features.shards import Shards
from tasks.base import Source
from zoo.errors import InputError
from zoo.features import Backbone, Shown
from zoo.view.views import View

Advance = Callable[[int], None]
"""Told how many images went through the backbone."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast images are read and shown.

    Attributes:
        batch_size: Images of the backbone's input size in a batch.
        workers: Decoding threads.
    """

    batch_size: int
    workers: int


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
    store: Shards
    missing: set[int]
    failure: Exception | None = None


@dataclass(frozen=True)
class PassResult:
    """What a pass did.

    Attributes:
        images: Images that went through the backbone.
        unreadable: Why each of the images that could not be read was left out.
        failures: By name of the listener, why one stopped listening.
    """

    images: int = 0
    unreadable: tuple[str, ...] = ()
    failures: Mapping[str, Exception] = field(default_factory=dict)


def run_pass(
    source: Source,
    view: View,
    listeners: Sequence[Listener],
    backbone: Backbone,
    pace: Pace,
    advance: Advance = lambda images: None,
) -> PassResult:
    """Show every image of the shards that a listener misses to the backbone, once.

    Memory is bounded by a batch, what measurers keep of their group, and one shard's results. A listener that
    raises is left out from then on and its failure is told; the others go on.
    """
    images, unreadable = 0, []
    shards = sorted(set().union(*(listener.missing for listener in listeners)))
    side = backbone.spec.input_size
    for event in batches(source, view, shards, pace.batch_size, side, pace.workers):
        if all(listener.failure for listener in listeners):
            break
        match event:
            case Batch():
                _show(event, event.members[0].group // source.groups_per_shard, listeners, backbone)
                images += len(event.members)
                advance(len(event.members))
            case Unreadable():
                if not source.skip_unreadable:
                    raise InputError(event.reason)
                unreadable.append(event.reason)
                advance(1)
            case ShardEnd():
                _store(event.shard, source, listeners)
    failures = {one.name: one.failure for one in listeners if one.failure is not None}
    return PassResult(images, tuple(unreadable), failures)


def _show(batch: Batch, shard: int, listeners: Sequence[Listener], backbone: Backbone) -> None:
    active = [one for one in listeners if shard in one.missing and one.failure is None]

    def visitor(shown: Shown) -> None:
        for listener in active:
            if listener.failure is None and shown.layer in listener.collector.layers:
                try:
                    listener.collector.see(batch, shown)
                except Exception as error:
                    listener.failure = error

    layers = frozenset().union(*(listener.collector.layers for listener in active))
    if active:
        # from pinned memory the copy to the device goes on while the host prepares the next batch
        pixels = batch.pixels.pin_memory() if backbone.device.type == "cuda" else batch.pixels
        backbone.visit(pixels, visitor, layers)


def _store(shard: int, source: Source, listeners: Sequence[Listener]) -> None:
    groups = source.shard_groups(shard)
    for listener in listeners:
        if shard in listener.missing and listener.failure is None:
            try:
                arrays = listener.collector.finish(groups)
            except Exception as error:
                listener.failure = error
                continue
            listener.store.write(shard, arrays)
            listener.missing.discard(shard)
