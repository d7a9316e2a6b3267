"""One pass: each image of a source goes through a backbone once for all listeners, in batches that fit."""

import ctypes
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from math import inf
from pathlib import Path
from typing import NamedTuple

from torch import Tensor

from layerboard.benchmark.engines.progress import Reporter
from layerboard.benchmark.passes.collectors import Collector
from layerboard.benchmark.passes.failures import Failure, within_memory
from layerboard.benchmark.passes.loading import Batch, Loader, ShardEnd, Unreadable
from layerboard.benchmark.passes.shards import Shards
from layerboard.tasks.framework.base import Source
from layerboard.tasks.framework.task import Task
from layerboard.zoo.errors import InputError
from layerboard.zoo.features import Shown
from layerboard.zoo.features.backbone import Backbone
from layerboard.zoo.features.pass_context import is_out_of_memory
from layerboard.zoo.spec import Layer

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # numbers of settings in glibc's ``malloc.h``
KEPT = 1 << 30  # bytes that glibc keeps; larger blocks are mapped alone, and more goes back to the system


@dataclass
class Listener:
    """A collector, and the shards that it writes."""

    name: str
    collector: Collector
    store: Shards
    missing: set[int]  # shards that it still needs
    tasks: Sequence[Task] = ()  # tasks that need what it collects
    failure: Exception | None = None  # why it stopped listening; None while it listens


Listeners = Sequence[Listener]


class VectorFile(NamedTuple):
    """A file of vectors."""

    backbone: str  # its name
    command: str  # name of the ``score`` command that scores it
    path: Path


@dataclass(frozen=True)
class PassResult:
    """Result of one pass, or of all passes, tasks and scores of backbones together."""

    images: int = 0  # images that went through a backbone
    unreadable: tuple[str, ...] = ()  # for each unreadable image, why it was left out
    failures: tuple[Failure, ...] = ()
    # by backbone name and task key: why the backbone cannot provide what the task is fed
    refusals: Mapping[tuple[str, str], str] = field(default_factory=dict)
    files: tuple[VectorFile, ...] = ()  # files of vectors that were written

    @classmethod
    def joined(cls, results: "Iterable[PassResult]") -> "PassResult":
        """Several results as one; equal messages of several passes are kept once."""
        every = [*results]
        return cls(
            sum(result.images for result in every),
            tuple(dict.fromkeys(line for result in every for line in result.unreadable)),
            tuple(dict.fromkeys(failure for result in every for failure in result.failures)),
            {key: reason for result in every for key, reason in result.refusals.items()},
            tuple(file for result in every for file in result.files),
        )


def run_pass(
    source: Source,
    listeners: Listeners,
    backbone: Backbone,
    batch_size: int,
    loader: Loader,
    report: Reporter,
) -> PassResult:
    """Show every image of the shards that a listener misses to the backbone, once; raises InputError.

    Memory is bounded by one batch at the input size, what measurers keep of their group, and the results of
    two shards: one is written while the next is shown. A listener that raises is left out from then on and
    keeps the reason; the others go on. A batch that does not fit into memory is split, down to one image. The
    view of the source is scaled to the backbone.
    """
    keep_freed_memory()
    spec, images, unreadable = backbone.spec, 0, []
    shards = sorted(set().union(*(each.missing for each in listeners)))
    splitter = BatchSplitter(backbone, source.joint, report.say)
    title, total = f"{spec.name}  {source.name}", sum(map(source.shard_images, shards))
    writing: Future[None] | None = None
    with ThreadPoolExecutor(1, "shards") as writer, report.bar(title, total, "images") as advance:
        pinned = backbone.device.type == "cuda"
        for event in loader.batches(source, shards, batch_size, spec.input_size, pinned=pinned):
            if all(listener.failure for listener in listeners):
                break
            match event:
                case Batch():
                    shard = event.members[0].group // source.groups_per_shard
                    splitter.show(event, [each for each in listeners if shard in each.missing])
                    images += len(event.members)
                    advance(len(event.members))
                case Unreadable():
                    if not source.skip_unreadable:
                        raise InputError(event.reason)
                    unreadable.append(event.reason)
                    advance(1)
                case ShardEnd():
                    collected = _collected(event.shard, source.shard_groups(event.shard), listeners)
                    if writing is not None:
                        writing.result()
                    writing = writer.submit(_write, event.shard, collected)
        if writing is not None:
            writing.result()
    return PassResult(images, tuple(unreadable))


@cache
def keep_freed_memory() -> None:
    """Let glibc keep up to `KEPT` bytes that were freed; does nothing with another C library.

    The activations of a batch are larger than what glibc keeps by default. Without this, each layer maps
    fresh pages, which the system must fill with zeros: up to a quarter of the time of a forward pass on a
    CPU. The peak of memory stays the same.
    """
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    for option in (MMAP_THRESHOLD, TRIM_THRESHOLD):
        set_option(option, KEPT)


def _collected(shard: int, groups: range, listeners: Listeners) -> list[tuple[Listener, dict[str, Tensor]]]:
    """What listeners have collected of a shard that they miss."""
    collected = []
    for listener in listeners:
        if shard in listener.missing and listener.failure is None:
            try:
                collected.append((listener, listener.collector.finish(groups)))
            except Exception as error:
                listener.failure = error
    return collected


def _write(shard: int, collected: Sequence[tuple[Listener, dict[str, Tensor]]]) -> None:
    for listener, arrays in collected:
        listener.store.write(shard, arrays)
        listener.missing.discard(shard)


Seen = dict[str, frozenset[Layer]]  # by name of a listener, the layers of a batch that it has seen


class BatchSplitter:
    """Shows batches; one that does not fit into memory is halved, and so are those after it.

    No listener sees a layer of an image twice: layers that it saw of the whole batch before memory ran out
    are not shown again with the halves.
    """

    def __init__(self, backbone: Backbone, joint: bool, say: Callable[[str], None]) -> None:
        self._backbone, self._joint, self._say = backbone, joint, say
        self._limit = inf  # maximum number of pixels of a piece
        self._too_many = 0
        self._culprit: Listener | None = None  # for whom memory ran out; None: for the backbone

    def show(self, batch: Batch, listeners: Listeners, before: Seen | None = None) -> None:
        """Run the backbone on a batch, and hand to listeners the layers that they have not seen.

        Raises InputError if one image, or images that must be shown together, do not fit into memory.
        """
        pieces = list(_split(batch, self._limit))
        if len(pieces) == 1:
            seen = dict(before or {listener.name: frozenset() for listener in listeners})
            if self._fits(batch, listeners, seen):
                if self._too_many > 0:
                    self._say(
                        f"{self._backbone.spec.name}: {self._too_many} images at once do not fit into the "
                        f"memory of {self._backbone.device}; it goes on with batches of {len(batch.members)}"
                    )
                    self._too_many = -1  # reported once
                return
            before = seen
            if (problem := self._indivisible(batch)) is None:
                self._too_many = self._too_many or len(batch.members)
                self._limit = _pixels(batch) // 2
                pieces = list(_split(batch, self._limit))
            elif self._culprit is not None:
                self._culprit.failure = problem  # the others see the batch without it
            else:
                raise problem
        for piece in pieces:
            self.show(piece, listeners, before)

    def _fits(self, batch: Batch, listeners: Listeners, seen: Seen) -> bool:
        """Show a piece to all that have not seen it, and record that; returns whether memory sufficed."""
        self._culprit, active = None, [listener for listener in listeners if listener.failure is None]

        def visitor(features: Shown) -> None:
            for listener in active:
                unseen = features.layer not in seen[listener.name]
                if listener.failure is None and unseen and features.layer in listener.collector.layers:
                    self._hand(listener, batch, features)
                    seen[listener.name] |= {features.layer}

        layers = frozenset().union(*(each.collector.layers - seen[each.name] for each in active))

        def visit() -> bool:
            self._backbone.visit(batch.pixels, visitor, layers)
            return True

        if not layers or within_memory(self._backbone.device, visit):
            return True
        for listener in listeners:
            seen[listener.name] -= listener.collector.again()
        return False

    def _hand(self, listener: Listener, batch: Batch, features: Shown) -> None:
        """Hand a layer to a listener; one that raises is removed, unless smaller batches may help."""
        try:
            listener.collector.see(batch, features)
        except Exception as error:
            if is_out_of_memory(error):
                self._culprit = listener
                raise
            listener.failure = error

    def _indivisible(self, batch: Batch) -> InputError | None:
        """Why a batch that does not fit cannot be split; None if it can."""
        count, device, name = len(batch.members), self._backbone.device, self._backbone.spec.name
        rows, _, height, width = batch.pixels.shape
        if count == 1:
            return InputError(
                f"one image ({rows} x {height} x {width} pixels) does not fit into the memory of {device} "
                f"beside {name}; take a smaller --input-size, fewer --workers, or another --device"
            )
        if self._joint:
            return InputError(
                f"{count} images that must go through {name} together do not fit into the memory of "
                f"{device}; --batch-size does not help here: take a smaller --input-size, or another --device"
            )
        return None


def _pixels(batch: Batch) -> int:
    return batch.pixels[:, 0].numel()


def _split(batch: Batch, limit: float) -> Iterator[Batch]:
    """Consecutive parts of a batch with at most ``limit`` pixels each, but at least one image."""
    if _pixels(batch) <= limit:
        yield batch
        return
    rows = max(1, limit // batch.pixels[0, 0].numel())
    first = start = row = 0
    for position, member in enumerate((*batch.members, None)):
        if member is None or (position > first and row + member.tiles - start > rows):
            yield Batch(batch.pixels[start:row], batch.members[first:position])
            first, start = position, row
        row += 0 if member is None else member.tiles
