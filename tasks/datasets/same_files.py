"""Image files with the same bytes on two sides of a split."""

from collections.abc import Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

from layerboard.tasks.datasets.base import FileSample, Sample
from layerboard.zoo.atomic import file_sha256
from layerboard.zoo.errors import InputError, UnreadableImageError, counted, some
from layerboard.zoo.reading import open_regular

WHOLE = 64 << 10  # files up to this many bytes are read as a whole
PART = 16 << 10  # bytes read at each of three places of a larger file


def parts_of(sample: FileSample) -> list[bytes]:
    """All bytes of a small file; those at the beginning, the middle and the end of a large one."""
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
    return parts


def on_both_sides(
    first: Sequence[Sample], second: Sequence[Sample], first_name: str = "train", second_name: str = "val"
) -> list[str]:
    """A note on images of the second side whose files have the bytes of one of the first, if there are any.

    Only files of equal size are read. Images that are not files, or cannot be read, are not compared.
    """
    sides = [_sizes(side) for side in (first, second)]
    common = {*sides[0].values()} & {*sides[1].values()}
    of_bytes, pairs = dict[tuple[int, bytes], FileSample](), []
    for side in sides:
        for sample, size in side.items():
            if size not in common or (mark := _mark(sample)) is None:
                continue
            if side is sides[0]:
                of_bytes[size, mark] = sample
            elif (same := of_bytes.get((size, mark))) and (size <= WHOLE or _digest(same) == _digest(sample)):
                pairs.append(f"{sample.key} and {same.key}")
    if not pairs:
        return []
    number = f"{len(pairs):,} of {counted(len(second), f'{second_name} images')}"
    return [f"files of {number} are in {first_name}, too ({some(pairs, 2)})"]


def _sizes(samples: Sequence[Sample]) -> dict[FileSample, int]:
    """Size in bytes of each file that is there."""
    sizes = {}
    for sample in samples:
        with suppress(InputError):
            if isinstance(sample, FileSample):
                sizes[sample] = sample.stamp[0]
    return sizes


def _mark(sample: FileSample) -> bytes | None:
    with suppress(InputError):
        return blake2b(b"".join(parts_of(sample))).digest()
    return None


def _digest(sample: FileSample) -> str:
    with suppress(OSError):
        return file_sha256(Path(sample.path))
    return sample.path
