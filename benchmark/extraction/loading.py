"""Reading, decoding and batching of the images of a source, ahead of the backbone.

Threads decode: Pillow releases the interpreter lock for the costly part, and a forked process can hang after
OpenMP was used.
"""

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby

import torch
from torch import Tensor

from layerboard.tasks.base import Source
from layerboard.zoo.errors import UnreadableImageError


@dataclass(frozen=True, slots=True)
class Member:
    """One image of a batch."""

    group: int  # index in the source
    position: int  # index in its group
    tiles: int
    size: tuple[int, int]  # width and height of the whole view if the image comes in tiles


@dataclass(frozen=True, slots=True)
class Batch:
    """Images of one size: pixels uint8 [tiles 3 height width]; tiles of one image are adjacent."""

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
    """Marks the end of a shard, after all of its images."""

    shard: int


Event = Batch | Unreadable | ShardEnd


def batches(
    source: Source,
    shards: Sequence[int],
    batch_size: int,
    input_size: int,
    workers: int,
    *,
    pinned: bool = False,
) -> Iterator[Event]:
    """Batches of the images of shards in order, the end of each shard, and the images that cannot be decoded.

    The view of the source is scaled to the backbone. A batch has ``batch_size`` images of ``input_size``
    pixels per side; larger images come in smaller batches. ``workers`` threads decode. While one batch is
    processed, the next is assembled (for a GPU in ``pinned`` memory), and images of two further ones are
    decoded.
    """
    events = _events(source, shards, batch_size * input_size**2, max(batch_size, workers), workers, pinned)
    with closing(events), ThreadPoolExecutor(1, thread_name_prefix="batch") as pool:
        following = pool.submit(next, events, None)
        while (event := following.result()) is not None:
            following = pool.submit(next, events, None)
            yield event


def _events(
    source: Source, shards: Sequence[int], pixels: int, ahead: int, workers: int, pinned: bool
) -> Generator[Event]:
    """The events of `batches`, with ``pixels`` per batch, and 2 x ``ahead`` images decoded in advance."""
    places = (
        (group, position)
        for shard in shards
        for group in source.shard_groups(shard)
        for position in range(len(source.groups[group].samples))
    )
    waiting: dict[tuple[int, ...], list[Batch]] = {}  # images by size

    def joined() -> Iterator[Batch]:
        for images in waiting.values():
            yield _joined(images, pinned)
        waiting.clear()

    rendered = _rendered(source, places, workers, 2 * ahead)
    for shard, of_shard in groupby(rendered, key=lambda image: _group(image) // source.groups_per_shard):
        for _, of_group in groupby(of_shard, key=_group):
            for image in of_group:
                if isinstance(image, Unreadable):
                    yield image
                    continue
                size = tuple(image.pixels.shape[2:])
                alike = waiting.setdefault(size, [])
                alike.append(image)
                tiles = sum(len(each.pixels) for each in alike)
                if not source.joint and tiles * size[0] * size[1] >= pixels:
                    yield _joined(waiting.pop(size), pinned)
            if source.joint:  # a group is a batch of its own
                yield from joined()
        yield from joined()
        yield ShardEnd(shard)


def _group(image: Batch | Unreadable) -> int:
    return image.group if isinstance(image, Unreadable) else image.members[0].group


def _joined(images: Sequence[Batch], pinned: bool) -> Batch:
    members = tuple(member for image in images for member in image.members)
    shape = (sum(len(image.pixels) for image in images), *images[0].pixels.shape[1:])
    pixels = torch.empty(shape, dtype=torch.uint8, pin_memory=pinned)
    return Batch(torch.cat([image.pixels for image in images], out=pixels), members)


def _rendered(
    source: Source, places: Iterator[tuple[int, int]], workers: int, ahead: int
) -> Iterator[Batch | Unreadable]:
    """Batches of one image each, at most ``ahead`` of them decoded in advance, and undecodable images."""
    with ThreadPoolExecutor(max(1, workers), thread_name_prefix="decode") as pool:
        waiting: deque[Future[Batch | Unreadable]] = deque()
        try:
            for group, position in places:
                waiting.append(pool.submit(_render, source, group, position))
                if len(waiting) >= ahead:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _render(source: Source, group: int, position: int) -> Batch | Unreadable:
    sample, view = source.groups[group].samples[position], source.view
    try:
        image = sample.open()
    except UnreadableImageError as error:
        return Unreadable(group, position, str(error))
    pixels = view.render(image, sample.box)
    return Batch(pixels, (Member(group, position, len(pixels), view.geometry(image.size, sample.box).size),))
