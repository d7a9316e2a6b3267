"""Identity of images and ground truth: digests that are the same on every machine with the same data.

A dataset of the catalogue is identified by the names and sizes of its files, since reading all of ImageNet
would take longer than many runs. The user's own images are also identified by the content of the files: all
of a small file; the beginning, the middle and the end of a large one.
"""

from collections.abc import Sequence

from layerboard.tasks.base import Source, digest
from layerboard.tasks.datasets.base import Data, FileSample, MadeSample, Sample
from layerboard.zoo.errors import UnreadableImageError
from layerboard.zoo.reading import open_regular

DIGITS = 8  # of a short hexadecimal digest: two of a thousand datasets collide with a probability of 1e-4

WHOLE = 64 << 10  # files up to this many bytes are read as a whole
PART = 16 << 10  # bytes read at each of three places of a larger file


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
    return f"{sample.key}|{sample.stamp[0]}|{sample.box}"


def _content(sample: Sample) -> str:
    """Identity of a sample, with a digest of the file's bytes."""
    if isinstance(sample, MadeSample):
        return f"{_content(sample.sample)}|{sample.made}"
    if not isinstance(sample, FileSample):
        return sample.signature()
    size = sample.stamp[0]
    starts: Sequence[int] = (0, size // 2, size - PART) if size > WHOLE else (0,)
    try:
        with open_regular(sample.path) as file:
            parts = []
            for start in starts:
                file.seek(start)
                parts.append(file.read(PART if size > WHOLE else WHOLE))
    except OSError as error:
        raise UnreadableImageError(f"cannot read image {sample.path}: {error.strerror}") from error
    return f"{_stated(sample)}|{digest(parts)}"
