"""Identity of images and ground truth: digests that are the same on every machine with the same data.

A dataset of the catalogue is identified by the names and sizes of its files, since reading all of ImageNet
would take longer than many runs. The user's own images are also identified by the content of the files: all
of a small file; the beginning, the middle and the end of a large one.
"""

from layerboard.tasks.datasets.base import Data, FileSample, MadeSample, Sample
from layerboard.tasks.datasets.same_files import parts_of
from layerboard.tasks.framework.base import Source, digest

DIGITS = 8  # of a short hexadecimal digest: two of a thousand datasets collide with a probability of 1e-4


def identity(source: Source) -> str:
    """Digest of a source's images in order: their names, sizes and boxes, without locations and times."""
    return digest([(group.key, [_stated(sample) for sample in group.samples]) for group in source.groups])


def own_name(data: Data) -> str:
    """Name of the user's own dataset: the user's name for it, on one line, and a digest of its content."""
    name = "".join(mark if mark.isprintable() else " " for mark in data.name)
    return f"{' '.join(name.split())}-{digest(data.content(_content))[:DIGITS]}"


def _stated(sample: Sample) -> str:
    """Name, size in bytes and box of a sample; for one that is not a file, its own signature."""
    if isinstance(sample, MadeSample):
        return f"{_stated(sample.sample)}|{sample.made}"
    if not isinstance(sample, FileSample):
        return sample.signature()
    return f"{sample.key}|{sample.stamp[0]}|{sample.box}{sample.read_as}"


def _content(sample: Sample) -> str:
    """Identity of a sample, with a digest of the file's bytes."""
    if isinstance(sample, MadeSample):
        return f"{_content(sample.sample)}|{sample.made}"
    if not isinstance(sample, FileSample):
        return sample.signature()
    return f"{_stated(sample)}|{digest(parts_of(sample))}"
