"""Thumbnails of a run's examples, each stored once in ``OUTPUT/thumbnails`` under the digest of its bytes.

They show the user's images: `run --no-examples` writes none.
"""

from collections.abc import Collection
from contextlib import suppress
from functools import lru_cache
from hashlib import blake2b
from io import BytesIO
from pathlib import Path
from stat import S_ISREG

from PIL import Image

from layerboard.leaderboards.records.arrays import read_arrays
from layerboard.tasks.framework.examples import SIDE, shrunk
from layerboard.zoo.atomic import write_whole
from layerboard.zoo.reading import read_regular

FOLDER = "thumbnails"  # in an output folder
LARGEST = 3000  # maximum bytes of a thumbnail; a larger one is compressed more, then made smaller
MOST = 320  # maximum thumbnails for one backbone's examples of one task: less than a megabyte
QUALITIES = (50, 30, 10)  # of WebP, tried in turn
NAMES = "thumbnail"  # array with the thumbnail files of examples; "" for unreadable images


def encoded(image: Image.Image) -> bytes:
    """An image as WebP of at most `LARGEST` bytes, whose longer side is at most `tasks.examples.SIDE`."""
    side = SIDE
    while True:
        small = image.convert("RGB").resize(shrunk(image.size, side), Image.Resampling.LANCZOS)
        for quality in QUALITIES:
            sink = BytesIO()
            small.save(sink, "WEBP", quality=quality, method=2)
            if len(sink.getvalue()) <= LARGEST or side <= 8:
                return sink.getvalue()
        side //= 2


def write_thumbnail(image: Image.Image, folder: Path) -> str:
    """Store a thumbnail of an image; returns its file name. An intact file is not written again."""
    content = encoded(image)
    name = f"{_digest(content)}.webp"
    if not is_whole(folder / name):
        write_whole(folder / name, content)
    return name


def is_whole(path: Path) -> bool:
    """Whether a thumbnail exists as it was written."""
    try:
        stamp = path.stat()
    except OSError:
        return False
    return S_ISREG(stamp.st_mode) and _checked(path, stamp.st_size, stamp.st_mtime_ns)


@lru_cache(maxsize=1 << 16)
def _checked(path: Path, size: int, time: int) -> bool:
    """Whether a file of that size and time has the digest in its name; cached, so it is read once."""
    del size, time
    return path.stem == _digest(read_regular(path))


def thumbnails_of(examples: Path) -> list[str]:
    """Names of the thumbnails that a file of examples needs; raises ValueError for any other file."""
    names = [str(name) for name in read_arrays(examples, (NAMES,))[NAMES].tolist()]
    if any(Path(name).name != name for name in names):
        raise ValueError(f"{examples} names pictures outside of {FOLDER}")
    return [name for name in names if name]


def named_thumbnails(output: Path) -> set[str]:
    """Names of the thumbnails that any file of examples in an output folder needs."""
    names: set[str] = set()
    for examples in (output / "examples").rglob("*.npz"):
        with suppress(OSError, ValueError):
            names |= {*thumbnails_of(examples)}
    return names


def remove_thumbnails(output: Path, names: Collection[str]) -> None:
    """Remove those thumbnails that no file of examples in an output folder needs any more.

    Only files named by the digest of their bytes are removed: others were not written by a run.
    """
    for name in {*names} - named_thumbnails(output):
        path = output / FOLDER / name
        if is_whole(path):
            path.unlink(missing_ok=True)


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=12).hexdigest()
