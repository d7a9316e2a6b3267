"""Shapes of regions as COCO's JSON has them, checked before pycocotools sees them.

It trusts what it is given: run lengths that end early leave memory as it was, and an outline far outside the
image is drawn point by point until memory ends.
"""

from collections.abc import Sequence

from tasks.datasets.fields import as_object, describe, numbers
from zoo.errors import InputError

Polygons = list[list[float]]
RunLengths = dict[str, object]

LONGEST_OUTLINE = 2**22
"""Pixels of all edges of a polygon together; pycocotools takes about 80 bytes for each."""

_FIRST, _LAST = "0", "o"
"""The characters of compressed run lengths: each holds five bits and whether more follow."""

_MOST_CHARACTERS = 6
"""Of one number: 30 bits, as many as pycocotools can shift."""


def read_polygons(value: Sequence[object], size: tuple[int, int], where: str) -> Polygons:
    """Lists of x1 y1 x2 y2 ... near an image of the (width, height); raises InputError.

    Official annotations may leave the image a little, and what lies outside is cut off; one that leaves it by
    more than its longer side belongs to another image.
    """
    polygons: Polygons = []
    margin = max(size)
    for each in value:
        polygon = numbers(each)
        if polygon is None or len(polygon) % 2:
            raise InputError(f"expected polygons (x1 y1 x2 y2 ...) in {where}, found {describe(each)}")
        for axis, side in enumerate(size):
            far = [number for number in polygon[axis::2] if not -margin <= number <= side + margin]
            if far:
                raise InputError(
                    f"expected the polygons in {where} on its image of {size[0]} x {size[1]} pixels, found "
                    f"the {'xy'[axis]} coordinate {describe(far[0])}; fetch the official annotations"
                )
        if _length(polygon) > LONGEST_OUTLINE:
            raise InputError(
                f"expected polygons of at most {LONGEST_OUTLINE:,} pixels of outline in {where}, found one "
                f"of {_length(polygon):,.0f}; fetch the official annotations"
            )
        polygons.append(polygon)
    return polygons


def _length(polygon: Sequence[float]) -> float:
    """Pixels that the edges of a polygon pass, the closing one included."""
    points = list(zip(polygon[::2], polygon[1::2], strict=True))
    return sum(
        max(abs(x - u), abs(y - v)) for (x, y), (u, v) in zip(points, points[-1:] + points, strict=False)
    )


def read_run_lengths(value: object, size: tuple[int, int], where: str) -> RunLengths:
    """Compressed (text) or uncompressed (list) run lengths of an image of the (width, height).

    Raises:
        InputError: Another size, or counts that are no whole numbers from 0 on or do not add up to the image.
    """
    fields = as_object(value, f"segmentation of {where}")
    counts = fields.get("counts")
    shape = [size[1], size[0]]
    if fields.get("size") != shape:
        raise InputError(
            f"expected run lengths of size {shape} (height, width of the image) in {where}, "
            f"found {describe(fields.get('size'))}"
        )
    runs = _decompressed(counts) if isinstance(counts, str) else numbers(counts)
    if runs is None or any(run < 0 or run != int(run) for run in runs) or sum(runs) != size[0] * size[1]:
        raise InputError(
            f"expected run lengths, whole numbers from 0 on, that add up to the {size[0] * size[1]:,} pixels "
            f"of the image in {where}, found {describe(counts)}; fetch the official annotations"
        )
    return {"size": shape, "counts": counts}


def _decompressed(text: str) -> list[int] | None:
    """The run lengths in COCO's text, or None for one that is cut or has other characters.

    A number is written in groups of five bits, lowest first, as the difference from the last but one, where
    there are three before it. Source: the C code of pycocotools.
    """
    runs: list[int] = []
    value = characters = 0
    for character in text:
        if not _FIRST <= character <= _LAST or characters == _MOST_CHARACTERS:
            return None
        bits = ord(character) - ord(_FIRST)
        value |= (bits & 31) << 5 * characters
        characters += 1
        if bits & 32:
            continue
        if bits & 16:
            value -= 1 << 5 * characters
        runs.append(value + runs[-2] if len(runs) > 2 else value)
        value = characters = 0
    return None if characters else runs
