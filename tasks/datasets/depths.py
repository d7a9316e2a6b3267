"""The range of values of images with more than 8 bits a channel, the same for a whole dataset.

A file of 16 bits may hold values of 12 bits, as of many cameras and microscopes, or of 8. Only the values say
it, and only all images together: a dark image of a dataset uses few of its bits.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from multiprocessing.pool import ThreadPool
from typing import TypeVar

from layerboard.tasks.datasets.base import Data, PhotoSample, Sample, images_of, with_samples
from layerboard.tasks.datasets.hub import TableSample
from layerboard.zoo.errors import InputError, counted, some
from layerboard.zoo.reading import open_regular
from layerboard.zoo.view.photos import bits_used, decoding, open_file

MOST = 5000  # images of more than 8 bits whose values are read, evenly spread over more of them
TRIED = 100  # rows of a table of the Hub that are tried; if none has more than 8 bits, it has no such images
DARK = 4  # an image that uses so many bits less than the dataset looks black, or nearly so
SHALLOW = (
    b"\xff\xd8\xff",
    b"GIF8",
    b"BM",
    b"RIFF",
)  # first bytes of files that have 8 bits a channel at most
SAID = "of more than 8 bits a channel"  # in the remark on the range
D = TypeVar("D", bound=Data)
S = TypeVar("S")


def with_range(data: D) -> D:
    """The user's own data, with images that are read by the range of values that all of them use.

    Its coverage says what was found. Unreadable images are left as they are.
    """
    samples = sorted({*images_of(data)}, key=lambda sample: sample.key)
    photos = [each for each in samples if isinstance(each, PhotoSample) and _may_be_deep(each.path)]
    rows = [each for each in samples if isinstance(each, TableSample)]
    if not any(_measured(_spread(rows, TRIED))):
        rows = []
    deep: list[PhotoSample | TableSample] = [*photos, *rows]
    measured = _spread(deep, MOST)
    used = dict(zip(measured, _measured(measured), strict=True))
    if not (bits := max(used.values(), default=0)):
        return data
    changed: dict[Sample, Sample] = {each: replace(each, bits=bits) for each in deep if used.get(each, bits)}
    scaled = "read as they are" if bits == 8 else f"scaled to 8, white is {2**bits - 1:,}"
    said = f"{counted(len(changed), 'images')} {SAID}: values use {bits} bits, {scaled}"
    coverage = data.coverage.remarked(said)
    if dark := [each.key for each, few in used.items() if 0 < few <= bits - DARK]:
        black = f"{counted(len(dark), 'images')} of these nearly black"
        coverage = coverage.noted(f"{black}, of {bits - DARK} bits at most ({some(dark)})")
    return replace(with_samples(data, changed), coverage=coverage)  # type: ignore[no-any-return]


def _spread(samples: Sequence[S], most: int) -> Sequence[S]:
    return samples[:: -(-len(samples) // most) or 1]


def _measured(samples: Sequence[PhotoSample | TableSample]) -> list[int]:
    """Bits that the values of each image use; 0 for those of at most 8 bits, and for unreadable ones."""
    if not samples:
        return []
    with ThreadPool(os.cpu_count()) as pool:
        return pool.map(_bits_of, samples, chunksize=4)


def _bits_of(sample: PhotoSample | TableSample) -> int:
    with suppress(InputError):
        if isinstance(sample, PhotoSample):
            return _bits_of_file(sample.path, sample.stamp)
        with decoding(sample.key), open_file(sample.source) as image:
            return bits_used(image)
    return 0


@lru_cache(maxsize=2**17)
def _bits_of_file(path: str, stamp: tuple[int, int | str]) -> int:
    """The bits of a file, found once for each state of it."""
    with decoding(path), open_file(path) as image:
        return bits_used(image)


def _may_be_deep(path: str) -> bool:
    """Whether a file may have more than 8 bits a channel, by its first bytes."""
    with suppress(OSError), open_regular(path) as file:
        first = file.read(26)
        return first[24:25] == b"\x10" if first[1:4] == b"PNG" else not first.startswith(SHALLOW)
    return False
