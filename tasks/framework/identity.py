"""Identity of images and ground truth: digests that are the same on every machine with the same data.

A dataset of the catalogue is identified by the names and sizes of its files, since reading all of ImageNet
would take longer than many runs. The user's own images are identified by their pixels, classes, splits and
groups alone: the same images are the same data in whatever files, order and names.
"""

from collections.abc import Sequence

from layerboard.tasks.datasets.base import Data, FileSample, MadeSample, Sample
from layerboard.tasks.framework.base import Source, digest

DIGITS = 8  # of a short hexadecimal digest: two of a thousand datasets collide with a probability of 1e-4


def identity(source: Source) -> str:
    """Digest of a source's images, without locations and times; own ones have the same in any order."""
    if is_own(source.samples):
        return digest(sorted(map(_stated, source.samples)))
    return digest([(group.key, [_stated(sample) for sample in group.samples]) for group in source.groups])


def is_own(samples: Sequence[Sample]) -> bool:
    """Whether images are the user's own ones, whose pixels are known."""
    return bool(samples) and all(_pixels(sample) for sample in samples)


def own_name(data: Data) -> str:
    """Name of the user's own dataset: the user's name for it, on one line, and a digest of its content."""
    name = "".join(mark if mark.isprintable() else " " for mark in data.name)
    return f"{' '.join(name.split())}-{digest(data.content(_stated))[:DIGITS]}"


def _pixels(sample: Sample) -> str:
    """Digest of the pixels of one of the user's own images, or of the one that it is made from, else ""."""
    return _pixels(sample.sample) if isinstance(sample, MadeSample) else getattr(sample, "pixels", "")


def _stated(sample: Sample) -> str:
    """Pixels and box of an own image; name, size in bytes and box of another file; else its signature."""
    if isinstance(sample, MadeSample):
        return f"{_stated(sample.sample)}|{sample.made}"
    shown = f"{sample.box}{getattr(sample, 'read_as', '')}"
    if pixels := _pixels(sample):
        return f"{pixels}|{shown}"
    return f"{sample.key}|{sample.stamp[0]}|{shown}" if isinstance(sample, FileSample) else sample.signature()
