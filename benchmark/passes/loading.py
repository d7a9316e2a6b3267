"""Reading, decoding, resizing and batching of the images of a source, ahead of the backbone.

Threads decode: Pillow releases the interpreter lock for the costly part, and a forked process can hang after
OpenMP was used.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from threading import Lock

import torch
from torch import Tensor

from layerboard.tasks.datasets.base import Sample
from layerboard.tasks.framework.base import Source
from layerboard.zoo.errors import UnreadableImageError
from layerboard.zoo.view.views import View

KEPT_BYTES = 2**28  # maximum bytes of kept views per thread of a worker: it grows with the machine

# an image in a view: uint8 [tiles 3 height width], and width and height of the whole view in pixels
Rendered = tuple[Tensor, tuple[int, int]]
Render = Callable[[Sample, View], Rendered]


def render_sample(sample: Sample, view: View) -> Rendered:
    """The image of a sample in a view; raises UnreadableImageError."""
    image = sample.open()
    return view.render(image, sample.box), view.geometry(image.size, sample.box).size


class KeptViews:
    """Images as a backbone was shown them, kept in memory for further backbones with the same view.

    They are kept in the order in which they come, up to ``most`` bytes. None makes room for another:
    each backbone is shown the same images in the same order, so the oldest is the first to be needed again.
    """

    def __init__(self, most: int) -> None:
        self._left = most
        self._lock = Lock()
        self._views: dict[tuple[Sample, View], Rendered] = {}

    def render(self, sample: Sample, view: View) -> Rendered:
        """The image as `render_sample` gives it, from memory if it was rendered before and kept."""
        if (kept := self._views.get((sample, view))) is not None:
            return kept
        rendered = render_sample(sample, view)
        size = rendered[0].untyped_storage().nbytes()
        with self._lock:
            if size <= self._left:
                self._left -= size
                self._views[sample, view] = rendered
        return rendered


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


@dataclass(frozen=True, slots=True)
class Loader:
    """Loads images in threads: ``workers`` of them call ``rendering``."""

    workers: int
    rendering: Render = render_sample

    def batches(
        self, source: Source, shards: Sequence[int], batch_size: int, input_size: int, *, pinned: bool = False
    ) -> Iterator[Event]:
        """Batches of the images of shards in order, the end of each shard, and images that cannot be decoded.

        The view of the source is scaled to the backbone. A batch has ``batch_size`` images of ``input_size``
        pixels per side; larger images come in smaller batches. While one batch is processed, the next is
        assembled (for a GPU in ``pinned`` memory), and images of two further ones are rendered.
        """
        rendered = self._rendered(source, shards, 2 * max(batch_size, self.workers))
        events = _events(source, rendered, batch_size * input_size**2, pinned)
        with closing(events), ThreadPoolExecutor(1, thread_name_prefix="batch") as pool:
            following = pool.submit(next, events, None)
            while (event := following.result()) is not None:
                following = pool.submit(next, events, None)
                yield event

    def _rendered(self, source: Source, shards: Sequence[int], ahead: int) -> Iterator[Batch | Unreadable]:
        """Batches of one image each, at most ``ahead`` rendered in advance, and undecodable images."""
        places = (
            (group, position)
            for shard in shards
            for group in source.shard_groups(shard)
            for position in range(len(source.groups[group].samples))
        )
        with ThreadPoolExecutor(max(1, self.workers), thread_name_prefix="decode") as pool:
            waiting: deque[Future[Batch | Unreadable]] = deque()
            try:
                for group, position in places:
                    waiting.append(pool.submit(self._batch_of_one, source, group, position))
                    if len(waiting) >= ahead:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()

    def _batch_of_one(self, source: Source, group: int, position: int) -> Batch | Unreadable:
        try:
            pixels, size = self.rendering(source.groups[group].samples[position], source.view)
        except UnreadableImageError as error:
            return Unreadable(group, position, str(error))
        return Batch(pixels, (Member(group, position, len(pixels), size),))


def _events(
    source: Source, rendered: Iterable[Batch | Unreadable], pixels: int, pinned: bool
) -> Generator[Event]:
    """The events of `Loader.batches`, with ``pixels`` per batch."""
    waiting: dict[tuple[int, ...], list[Batch]] = {}  # images by size

    def joined() -> Iterator[Batch]:
        for images in waiting.values():
            yield _joined(images, pinned)
        waiting.clear()

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
