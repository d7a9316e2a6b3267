"""Reading, decoding and batching of a source's images, ahead of the backbone.

Threads decode: Pillow releases the interpreter lock for the costly part, and a forked process can hang after
OpenMP was used.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import torch
from torch import Tensor

from tasks.base import Source
from tasks.datasets.base import Sample
from tasks.datasets.files import UnreadableImageError
from zoo.view.views import View


@dataclass(frozen=True, slots=True)
class Member:
    """One image of a batch: its group (index into the source), its position there, its number of tiles."""

    group: int
    position: int
    tiles: int
    size: tuple[int, int]
    """Width and height of the view, of which the tiles are parts."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Images of one size: pixels uint8 [tiles 3 height width], tiles of one image side by side."""

    pixels: Tensor
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An image that could not be decoded."""

    group: int
    position: int
    reason: str


@dataclass(frozen=True, slots=True)
class ShardEnd:
    """All images of a shard were shown."""

    shard: int


Event = Batch | Unreadable | ShardEnd


def batches(
    source: Source, view: View, shards: Sequence[int], batch_size: int, input_size: int, workers: int
) -> Iterator[Event]:
    """Batches of the shards' images in order, the end of each shard, and the images that cannot be decoded.

    Args:
        source: What to read.
        view: Its view, scaled to the backbone.
        shards: Which shards, in this order.
        batch_size: Images of ``input_size`` pixels a side in a batch; larger images come in smaller batches.
        input_size: Side in pixels that the batch size is meant for.
        workers: Decoding threads.
    """
    size = batch_size * input_size * input_size
    jobs = (
        (shard, group, position)
        for shard in shards
        for group in source.shard_groups(shard)
        for position in range(len(source.groups[group].samples))
    )

    def render(job: tuple[int, int, int]) -> "_Rendered":
        shard, group, position = job
        return _render(source.groups[group].samples[position], view, shard, group, position)

    pending = _Pending(source.joint, size)
    current: _Rendered | None = None
    for rendered in _prefetch(render, jobs, workers, depth=2 * max(batch_size, workers)):
        if current is not None and rendered.group != current.group:
            yield from pending.end_of_group()
            if rendered.shard != current.shard:
                yield from pending.flush()
                yield ShardEnd(current.shard)
        current = rendered
        if rendered.reason:
            yield Unreadable(rendered.group, rendered.position, rendered.reason)
        else:
            yield from pending.add(rendered)
    if current is not None:
        yield from pending.flush()
        yield ShardEnd(current.shard)


@dataclass(frozen=True, slots=True)
class _Rendered:
    shard: int
    group: int
    position: int
    pixels: Tensor
    size: tuple[int, int]
    reason: str = ""


def _render(sample: Sample, view: View, shard: int, group: int, position: int) -> _Rendered:
    try:
        image = sample.open()
    except UnreadableImageError as error:
        return _Rendered(shard, group, position, torch.empty(0), (0, 0), str(error))
    size = view.geometry(image.size, sample.box).size
    return _Rendered(shard, group, position, view.render(image, sample.box), size)


def _prefetch(
    function: Callable[[tuple[int, int, int]], _Rendered],
    jobs: Iterator[tuple[int, int, int]],
    workers: int,
    depth: int,
) -> Iterator[_Rendered]:
    """Results in the order of the jobs, at most ``depth`` of them ahead."""
    with ThreadPoolExecutor(max(1, workers), thread_name_prefix="decode") as pool:
        waiting: deque[Future[_Rendered]] = deque()
        try:
            for job in jobs:
                waiting.append(pool.submit(function, job))
                if len(waiting) >= depth:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


class _Pending:
    """Images that wait for their batch, by size."""

    def __init__(self, joint: bool, pixels: int) -> None:
        self._joint = joint
        self._pixels = pixels
        self._waiting: dict[tuple[int, ...], list[_Rendered]] = {}

    def add(self, rendered: _Rendered) -> Iterator[Batch]:
        """Take an image; gives the batch that it completes."""
        shape = tuple(rendered.pixels.shape[1:])
        waiting = self._waiting.setdefault(shape, [])
        waiting.append(rendered)
        if not self._joint and sum(r.pixels.shape[0] for r in waiting) * shape[1] * shape[2] >= self._pixels:
            yield _batch(self._waiting.pop(shape))

    def end_of_group(self) -> Iterator[Batch]:
        """A joint group is a batch of its own."""
        if self._joint:
            yield from self.flush()

    def flush(self) -> Iterator[Batch]:
        """All that waits."""
        for waiting in self._waiting.values():
            yield _batch(waiting)
        self._waiting = {}


def _batch(images: list[_Rendered]) -> Batch:
    members = tuple(Member(r.group, r.position, r.pixels.shape[0], r.size) for r in images)
    return Batch(torch.cat([r.pixels for r in images]), members)
