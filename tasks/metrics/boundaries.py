"""Boundary pixels of two masks, and how many of them have one of the other mask within a disk.

Made for speed: both masks are flags in one array of bytes, four strips of the image share a byte, and rows
lie behind each other with zeros between them: each step is one pass over a quarter of the image's bytes.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tasks.metrics.arrays import Mask

Flags = NDArray[np.uint8]

PREDICTED, TRUE = 1, 2
STRIPS = 4
_IN_STRIPS = np.uint8(0b01010101)  # PREDICTED in each


@dataclass(frozen=True, slots=True)
class Boundaries:
    """Numbers of boundary pixels of two masks, and of those that have one of the other mask near."""

    predicted: int
    true: int
    predicted_found: int
    true_found: int


def both(prediction: Mask, truth: Mask) -> Flags:
    """Two masks [height width] as the flags PREDICTED and TRUE of one array."""
    flags = truth.view(np.uint8) * np.uint8(TRUE)
    flags |= prediction.view(np.uint8)
    return flags


def compare_boundaries(flags: Flags, radius: int) -> Boundaries:
    """Boundaries of two masks, compared within a disk x² + y² <= radius² around each pixel.

    A boundary pixel is one that differs from its right, lower or lower right neighbour, where there is one.

    Args:
        flags: PREDICTED and TRUE of each pixel [height width].
        radius: In pixels.
    """
    if not flags.size:
        return Boundaries(0, 0, 0, 0)
    height, width = flags.shape
    sheet = _Sheet(height, width, min(radius, height), min(radius, width))
    edges = _edges(flags, sheet)
    strips = edges[sheet.above : sheet.above + sheet.strip], _dilated(edges, radius, sheet)
    words = np.flatnonzero(strips[0].view(np.uint64))  # a boundary is in few of them
    own, near = (flags.view(np.uint64).reshape(-1)[words].view(np.uint8) for flags in strips)
    predicted, true = own & _IN_STRIPS, (own >> np.uint8(1)) & _IN_STRIPS
    matched = predicted & (near >> np.uint8(1)), true & near
    return Boundaries(_count(predicted), _count(true), _count(matched[0]), _count(matched[1]))


@dataclass(frozen=True, slots=True)
class _Sheet:
    """Where four strips of an image lie above each other in the bits of a byte.

    Attributes:
        height: Of the image.
        width: Of the image.
        above: Rows that a strip has of its neighbours on either side; zeros where there is no neighbour.
        beside: Bytes of zeros after each row, at least.
    """

    height: int
    width: int
    above: int
    beside: int

    @property
    def strip(self) -> int:
        """Rows of a strip."""
        return -(-self.height // STRIPS)

    @property
    def rows(self) -> int:
        """Rows of a strip and of its neighbours."""
        return self.strip + 2 * self.above

    @property
    def stride(self) -> int:
        """Bytes of a row: whole words, with room for one more column."""
        return 8 * -(-(self.width + max(self.beside, 1)) // 8)

    def strips(self) -> Iterator[tuple[int, np.uint8]]:
        """The image's row that is the sheet's first, and what flags are multiplied by, of each strip."""
        return ((number * self.strip - self.above, np.uint8(4**number)) for number in range(STRIPS))


def _edges(flags: Flags, sheet: _Sheet) -> Flags:
    """Boundaries of both masks on a sheet: [rows stride]."""
    height, width, stride = sheet.height, sheet.width, sheet.stride
    seen = np.zeros((sheet.rows + 2, stride), dtype=np.uint8)
    for top, strip in sheet.strips():
        first, last = max(top, 0), min(top + len(seen), height)
        if first < last:  # numpy multiplies bytes ten times as fast as it shifts them to the left
            seen[first - top : last - top, :width] |= flags[first:last] * strip
        if 0 <= height - top < len(seen):  # beyond the last row and column they go on: no boundary there
            seen[height - top, :width] |= flags[-1] * strip
    seen[:, width] = seen[:, width - 1]
    flat, size = seen.reshape(-1), sheet.rows * stride
    edges = flat[:size] ^ flat[1:][:size]
    edges |= flat[:size] ^ flat[stride:][:size]
    edges |= flat[:size] ^ flat[stride + 1 :][:size]
    edges = edges.reshape(sheet.rows, stride)
    edges[:, width:] = 0
    for top, strip in sheet.strips():
        for outside in (edges[: max(0, -top)], edges[max(0, height - top) :]):
            outside &= ~((PREDICTED | TRUE) * strip)
    return edges


def _dilated(edges: Flags, radius: int, sheet: _Sheet) -> Flags:
    """Every flag that is set within a disk around each pixel of the strips: [strip stride].

    A disk is a stack of horizontal runs, longest in the middle: runs are grown from the shortest to the
    longest, and each is laid over the rows that have it.
    """
    runs = np.zeros(sheet.beside + edges.size, dtype=np.uint8)
    runs[sheet.beside :] = edges.reshape(-1)
    out = np.zeros(sheet.strip * sheet.stride, dtype=np.uint8)
    length = 1  # each byte of the runs has the flags of so many bytes, its own first
    for row in range(sheet.above, -1, -1):
        reach = min(math.isqrt(radius * radius - row * row), sheet.beside)
        while length < 2 * reach + 1:
            step = min(length, 2 * reach + 1 - length)
            runs[:-step] |= runs[step:]
            length += step
        for offset in {row, -row}:
            out |= runs[sheet.beside - reach + (sheet.above + offset) * sheet.stride :][: out.size]
    return out.reshape(sheet.strip, sheet.stride)


def _count(flags: Flags) -> int:
    """Number of flags PREDICTED in all strips; only such flags are there."""
    return sum(int(np.count_nonzero(flags & np.uint8(4**number))) for number in range(STRIPS))
