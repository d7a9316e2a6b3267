"""Which images and which ground truth: digests that are the same wherever the same data lie.

A dataset of the catalogue is told by the names and sizes of its files: reading ImageNet to know that it is
ImageNet would take longer than many runs. Images of the user's own, which nothing else tells apart, are told
by what is in the files, too: all of a small file, the beginning, the middle and the end of a large one.
"""

from collections.abc import Sequence
from pathlib import Path

from layerboard.tasks.base import Source, digest
from layerboard.tasks.datasets.base import Data, FileSample, MadeSample, Sample
from layerboard.zoo.errors import UnreadableImageError

DIGITS = 8  # of a short digest, hexadecimal: of a thousand datasets two agree once in ten thousand times

WHOLE = 64 << 10  # bytes up to which a file is read as a whole
PART = 16 << 10  # bytes that are read at three places of a larger file


def identity(source: Source) -> str:
    """Digest of a source's images in order: their names, sizes and boxes, not places and times."""
    return digest([(group.key, [_stated(sample) for sample in group.samples]) for group in source.groups])


def own_name(data: Data) -> str:
    """Name of the user's own dataset: as the user calls it, on one line, and the digest of its content."""
    name = "".join(mark if mark.isprintable() else " " for mark in data.name)
    return f"{' '.join(name.split())}-{digest(data.content(_content))[:DIGITS]}"


def _stated(sample: Sample) -> str:
    """A sample's name, size in bytes and box; of one that is no file, what it says of itself."""
    if isinstance(sample, MadeSample):
        return f"{_stated(sample.sample)}|{sample.made}"
    if not isinstance(sample, FileSample):
        return sample.signature()
    return f"{sample.key}|{sample.stamp[0]}|{sample.box}"


def _content(sample: Sample) -> str:
    """What a sample says of itself, with a digest of the file's bytes."""
    if isinstance(sample, MadeSample):
        return f"{_content(sample.sample)}|{sample.made}"
    if not isinstance(sample, FileSample):
        return sample.signature()
    size = sample.stamp[0]
    starts: Sequence[int] = (0, size // 2, size - PART) if size > WHOLE else (0,)
    try:
        with Path(sample.path).open("rb") as file:
            parts = []
            for start in starts:
                file.seek(start)
                parts.append(file.read(PART if size > WHOLE else WHOLE))
    except OSError as error:
        raise UnreadableImageError(f"cannot read image {sample.path}: {error.strerror}") from error
    return f"{_stated(sample)}|{digest(parts)}"
