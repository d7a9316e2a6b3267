"""Region similarity J and boundary accuracy F of video object masks, by the rules of DAVIS-2017.

For speed, both masks are bit flags in one array of bytes, four strips of the image share a byte, and rows are
stored one after the other with zeros between them. So each step is one pass over a quarter of the image's
bytes.

Source: Pont-Tuset et al., The 2017 DAVIS Challenge on Video Object Segmentation, section 3, and Perazzi et
al., CVPR 2016, section 5, as the official evaluator computes them.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from layerboard.tasks.metrics.arrays import VOID, Floats, Labels, Mask

Flags = NDArray[np.uint8]

PREDICTED, TRUE = 1, 2
STRIPS = 4
_IN_STRIPS = np.uint8(0b01010101)  # PREDICTED in each


def both(prediction: Mask, truth: Mask) -> Flags:
    """Two masks [height width] as the flags PREDICTED and TRUE in one array."""
    flags = truth.view(np.uint8) * np.uint8(TRUE)
    flags |= prediction.view(np.uint8)
    return flags


def compare_boundaries(flags: Flags, radius: int) -> tuple[int, int, int, int]:
    """Boundary pixels (predicted, true), and those with a boundary pixel of the other mask nearby.

    Nearby means in a disk x² + y² <= radius² in pixels. ``flags`` [height width] are those of two masks. A
    boundary pixel differs from its right, lower or lower right neighbour, if there is one.
    """
    height, width = flags.shape
    sheet = _Sheet(height, width, min(radius, height), min(radius, width))
    edges = _edges(flags, sheet)
    strips = edges[sheet.above : sheet.above + sheet.strip], _dilated(edges, radius, sheet)
    words = np.flatnonzero(strips[0].view(np.uint64))  # few words contain a boundary
    own, near = (flags.view(np.uint64).reshape(-1)[words].view(np.uint8) for flags in strips)
    predicted, true = own & _IN_STRIPS, (own >> np.uint8(1)) & _IN_STRIPS
    matched = predicted & (near >> np.uint8(1)), true & near
    return _count(predicted), _count(true), _count(matched[0]), _count(matched[1])


@dataclass(frozen=True, slots=True)
class _Sheet:
    """Layout of four strips of an image in the bits of the same bytes."""

    height: int
    width: int
    above: int  # rows of the neighbouring strips on either side of a strip; zeros outside the image
    beside: int  # least number of zero bytes after each row

    @property
    def strip(self) -> int:
        return -(-self.height // STRIPS)

    @property
    def rows(self) -> int:
        """Rows of a strip, including those of its neighbours."""
        return self.strip + 2 * self.above

    @property
    def stride(self) -> int:
        """Bytes of a row: a whole number of words, with room for one more column."""
        return 8 * -(-(self.width + max(self.beside, 1)) // 8)

    def strips(self) -> Iterator[tuple[int, np.uint8]]:
        """For each strip, the image row at the sheet's first row, and the factor of the flags."""
        return ((number * self.strip - self.above, np.uint8(4**number)) for number in range(STRIPS))


def _edges(flags: Flags, sheet: _Sheet) -> Flags:
    """Boundaries of both masks on a sheet: [rows stride]."""
    height, width, stride = sheet.height, sheet.width, sheet.stride
    seen = np.zeros((sheet.rows + 2, stride), dtype=np.uint8)
    for top, strip in sheet.strips():
        first, last = max(top, 0), min(top + len(seen), height)
        if first < last:  # numpy multiplies bytes ten times faster than it shifts them
            seen[first - top : last - top, :width] |= flags[first:last] * strip
        if 0 <= height - top < len(seen):  # beyond the last row and column the mask continues: no boundary
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
    """Dilation of the flags by a disk: [strip stride].

    A disk is a stack of horizontal runs, longest in the middle. Runs are grown from the shortest to the
    longest, and each is combined into the rows that have it.
    """
    runs = np.zeros(sheet.beside + edges.size, dtype=np.uint8)
    runs[sheet.beside :] = edges.reshape(-1)
    out = np.zeros(sheet.strip * sheet.stride, dtype=np.uint8)
    length = 1  # each byte of the runs combines the flags of this many bytes, starting with its own
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
    """Number of PREDICTED flags in all strips; no other flags may be set."""
    return sum(int(np.count_nonzero(flags & np.uint8(4**number))) for number in range(STRIPS))


BINS = 4
TOLERANCE = 0.008  # share of an image's diagonal within which its boundaries match


@dataclass(frozen=True, slots=True)
class VideoScores:
    """J and F of every object in every scored frame of a video, as fractions: [objects frames] each."""

    j: Floats
    f: Floats


@dataclass(frozen=True, slots=True)
class Statistics:
    """Mean over frames, recall (share of frames above 0.5), and decay (first minus last quarter)."""

    mean: float
    recall: float
    decay: float


def tolerance(size: tuple[int, ...]) -> int:
    """Radius in pixels within which boundaries match, for masks of (height, width)."""
    return math.ceil(TOLERANCE * math.hypot(*size))


def score_video(predictions: Sequence[Labels], truths: Sequence[Labels]) -> VideoScores:
    """J and F of objects 1..largest id of the first true frame, in all frames but the first and the last.

    Label maps are uint8 [height width] of one size, with 0 for background and, in true maps, also 255. Ids
    that are not those of objects are ignored. Frames are read one at a time, so sequences may load them
    lazily; predictions of the first and the last frame are not read. Raises ValueError if frames are missing,
    a mask has another size, or there is no object.
    """
    if len(predictions) != len(truths) or len(truths) < 3:
        counts = f"{len(predictions)} and {len(truths)}"
        raise ValueError(f"expected as many predictions as true masks, at least 3 of each, found {counts}")
    first = _without_void(truths[0])
    objects = int(first.max(initial=0))
    if not objects:
        raise ValueError("the first true mask must show at least one object, found background only")
    scored = range(1, len(truths) - 1)
    j, f = np.empty((objects, len(scored))), np.empty((objects, len(scored)))
    for column, frame in enumerate(scored):
        prediction, truth = predictions[frame], _without_void(truths[frame])
        if not prediction.shape == truth.shape == first.shape:
            shapes = f"a prediction of {prediction.shape} and a true mask of {truth.shape}"
            raise ValueError(f"frame {frame}: expected masks of {first.shape}, found {shapes}")
        j[:, column], f[:, column] = score_frame(prediction, truth, objects)
    return VideoScores(j, f)


def statistics(values: Floats) -> Statistics:
    """Mean, recall and decay of one object's values [frames] in at least one frame.

    Neighbouring bins of the decay share a frame, as in the official evaluator.
    """
    edge = np.round(np.linspace(1, len(values), BINS + 1) + 1e-10).astype(np.int64) - 1
    decay = values[edge[0] : edge[1] + 1].mean() - values[edge[-2] : edge[-1] + 1].mean()
    return Statistics(float(values.mean()), float((values > 0.5).mean()), float(decay))


def _without_void(truth: Labels) -> Labels:
    """A true label map with void as background."""
    return truth * (truth != VOID) if truth.max(initial=0) == VOID else truth


def score_frame(prediction: Labels, truth: Labels, objects: int) -> tuple[Floats, Floats]:
    """J and F of each object in one frame: [objects] each."""
    radius = tolerance(truth.shape)
    j, f = np.ones(objects), np.ones(objects)
    shown = _shown(prediction, truth)
    prediction, truth = prediction[shown], truth[shown]
    for row in range(objects):
        pair = both(prediction == row + 1, truth == row + 1)
        if objects > 1:  # a single object covers the whole crop
            pair = pair[_shown(pair)]
        if pair.size:
            j[row], f[row] = jaccard(pair), boundary_f(pair, radius)
    return j, f


def _shown(*maps: Labels) -> tuple[slice, slice]:
    """Bounding box of all labels except background, one pixel wider inside the image.

    The margin of background keeps the boundaries as they are.
    """
    rows = _extent(maps, 1)
    return rows, _extent([labels[rows] for labels in maps], 0)


def _extent(maps: Sequence[Labels], across: int) -> slice:
    """Range of lines of the label maps with objects, plus one line on each side inside the image."""
    occupied = np.logical_or.reduce([labels.max(axis=across, initial=0) for labels in maps])
    lines = np.flatnonzero(occupied)
    if not len(lines):
        return slice(0, 0)
    return slice(max(0, int(lines[0]) - 1), min(len(occupied), int(lines[-1]) + 2))


def jaccard(pair: Flags) -> float:
    """Intersection over union of two masks as flags [height width]; 1 if both are empty."""
    union = np.count_nonzero(pair)
    return np.count_nonzero(pair == (PREDICTED | TRUE)) / union if union else 1.0


def boundary_f(pair: Flags, radius: int) -> float:
    """Harmonic mean of boundary precision and recall of two masks as flags, at a tolerance in pixels."""
    predicted, true, predicted_found, true_found = compare_boundaries(pair, radius)
    if not predicted or not true:
        return float(predicted == true)
    precision, recall = predicted_found / predicted, true_found / true
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
