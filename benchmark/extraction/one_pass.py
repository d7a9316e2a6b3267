"""One pass: a backbone over a source, once, for everything that wants to see it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from benchmark.extraction.loading import Batch, ShardEnd, Unreadable, batches
from benchmark.extraction.screen import Listener, Screen
from tasks.base import Source
from zoo.errors import InputError
from zoo.features import Backbone
from zoo.view.views import View


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast images are read and shown.

    Attributes:
        batch_size: Images of the backbone's input size in a batch.
        workers: Decoding threads.
    """

    batch_size: int
    workers: int


@dataclass(frozen=True, slots=True)
class Told:
    """What is told while a pass goes on.

    Attributes:
        advance: Called with how many more images went through the backbone.
        say: Called with a line.
    """

    advance: Callable[[int], None] = lambda images: None
    say: Callable[[str], None] = lambda line: None


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
    told: Told = Told(),
) -> PassResult:
    """Show every image of the shards that a listener misses to the backbone, once.

    Memory is bounded by a batch, what measurers keep of their group, and one shard's results. A listener that
    raises is left out from then on and its failure is told; the others go on. A batch that does not fit into
    memory is shown in smaller ones, down to one image.

    Raises:
        InputError: An image cannot be read where none may be left out, or does not fit into memory; or images
            that must be shown together do not.
    """
    images, unreadable = 0, []
    shards = sorted(set().union(*(listener.missing for listener in listeners)))
    side = backbone.spec.input_size
    screen = Screen(backbone, source.joint, told.say)
    for event in batches(source, view, shards, pace.batch_size, side, pace.workers):
        if all(listener.failure for listener in listeners):
            break
        match event:
            case Batch():
                shard = event.members[0].group // source.groups_per_shard
                screen.show(event, [one for one in listeners if shard in one.missing])
                images += len(event.members)
                told.advance(len(event.members))
            case Unreadable():
                if not source.skip_unreadable:
                    raise InputError(event.reason)
                unreadable.append(event.reason)
                told.advance(1)
            case ShardEnd():
                _store(event.shard, source, listeners)
    failures = {one.name: one.failure for one in listeners if one.failure is not None}
    return PassResult(images, tuple(unreadable), failures)


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
