"""Region similarity J and boundary accuracy F of video object masks, by the rules of DAVIS-2017.

Source: Pont-Tuset et al., The 2017 DAVIS Challenge on Video Object Segmentation, section 3, and Perazzi et
al., CVPR 2016, section 5, as the official evaluator computes them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import ndimage

from tasks.metrics.arrays import VOID, Floats, Labels, Mask

BINS = 4

TOLERANCE = 0.008
"""Share of an image's diagonal within which its boundaries match."""

Window = tuple[slice, slice]
"""Rows and columns of a part of an image."""


@dataclass(frozen=True, slots=True)
class VideoScores:
    """J and F of every object in every scored frame of a video, fractions: [objects frames] each."""

    j: Floats
    f: Floats


@dataclass(frozen=True, slots=True)
class Statistics:
    """Mean over frames, share of frames above 0.5, and mean of the first quarter minus that of the last."""

    mean: float
    recall: float
    decay: float


@dataclass(frozen=True, slots=True)
class Summary:
    """Means over objects, not over videos, as fractions; ``jf_mean`` is the mean of the two means."""

    jf_mean: float
    j: Statistics
    f: Statistics
    objects: int


def jaccard(prediction: Mask, truth: Mask) -> float:
    """Intersection over union of two masks [height width], in [0, 1]; 1 where both are empty.

    Raises:
        ValueError: Masks of different sizes.
    """
    _check_pair(prediction, truth)
    union = np.count_nonzero(prediction | truth)
    return np.count_nonzero(prediction & truth) / union if union else 1.0


def boundary_f(prediction: Mask, truth: Mask, threshold: float = TOLERANCE) -> float:
    """Harmonic mean of boundary precision and recall of two masks [height width], in [0, 1].

    A boundary pixel counts as found if the other mask has one within a disk of the tolerance's radius.

    Args:
        prediction: Predicted mask.
        truth: True mask.
        threshold: Tolerance as a share of the image diagonal, rounded up to pixels; from 1 on in pixels.

    Raises:
        ValueError: Masks of different sizes or a negative threshold.
    """
    _check_pair(prediction, truth)
    if threshold < 0:
        raise ValueError(f"the threshold must not be negative, found {threshold}")
    return _boundary_f(prediction, truth, tolerance(prediction.shape, threshold))


def tolerance(size: tuple[int, ...], threshold: float = TOLERANCE) -> int:
    """Radius in pixels within which boundaries of masks of that height and width match."""
    return math.floor(threshold) if threshold >= 1 else math.ceil(threshold * math.hypot(*size))


def boundary(mask: Mask) -> Mask:
    """Pixels of a mask [height width] that differ from the right, the lower or the lower right neighbour."""
    edge = np.zeros_like(mask)
    edge[:, :-1] = mask[:, :-1] ^ mask[:, 1:]
    edge[:-1] |= mask[:-1] ^ mask[1:]
    edge[:-1, :-1] |= mask[:-1, :-1] ^ mask[1:, 1:]
    return edge


def score_video(predictions: Sequence[Labels], truths: Sequence[Labels]) -> VideoScores:
    """J and F of the objects 1..largest id of the first true frame, in all frames but the first and the last.

    Frames are taken one at a time, so sequences may load them lazily; predictions of the first and the last
    frame are not looked at.

    Args:
        predictions: Label maps [height width] of all frames; 0 is background.
        truths: The same; 255 counts as background, ids that only come up later are ignored.

    Raises:
        ValueError: Frames missing, masks of another size or type, no object, or a predicted id above them.
    """
    if len(predictions) != len(truths) or len(truths) < 3:
        found = f"{len(predictions)} and {len(truths)}"
        raise ValueError(f"expected as many predictions as true masks, at least 3 of each, found {found}")
    first = _without_void(truths[0])
    objects = int(first.max(initial=0))
    if not objects:
        raise ValueError("the first true mask must show at least one object, found background only")
    scored = range(1, len(truths) - 1)
    j, f = np.empty((objects, len(scored))), np.empty((objects, len(scored)))
    for column, frame in enumerate(scored):
        prediction, truth = predictions[frame], _without_void(truths[frame])
        _check_frame(prediction, truth, first.shape, objects, frame)
        j[:, column], f[:, column] = score_frame(prediction, truth, objects)
    return VideoScores(j, f)


def statistics(values: Floats) -> Statistics:
    """Mean, recall and decay of one object's values [frames].

    The four bins of the decay share their border frames, as in the official evaluator.

    Raises:
        ValueError: No frame, or a value is NaN or infinite.
    """
    if values.ndim != 1 or not values.size or not np.isfinite(values).all():
        raise ValueError(f"expected one finite value for each of at least one frame, found {values.shape}")
    edge = np.round(np.linspace(1, len(values), BINS + 1) + 1e-10).astype(np.int64) - 1
    decay = values[edge[0] : edge[1] + 1].mean() - values[edge[-2] : edge[-1] + 1].mean()
    return Statistics(float(values.mean()), float((values > 0.5).mean()), float(decay))


def summarise(videos: Sequence[VideoScores]) -> Summary:
    """J&F and its parts over all objects of all videos.

    Raises:
        ValueError: No video.
    """
    if not videos:
        raise ValueError("expected the scores of at least one video, found none")
    j = _mean_statistics([statistics(row) for video in videos for row in video.j])
    f = _mean_statistics([statistics(row) for video in videos for row in video.f])
    return Summary((j.mean + f.mean) / 2, j, f, sum(len(video.j) for video in videos))


def _check_pair(prediction: Mask, truth: Mask) -> None:
    if prediction.ndim != 2 or prediction.shape != truth.shape:
        raise ValueError(f"expected two masks of one size, found {prediction.shape} and {truth.shape}")
    if prediction.dtype != np.bool_ or truth.dtype != np.bool_:
        raise ValueError(f"expected masks of bool, found {prediction.dtype} and {truth.dtype}")


def _check_frame(prediction: Labels, truth: Labels, size: tuple[int, ...], objects: int, frame: int) -> None:
    if not prediction.shape == truth.shape == size:
        found = f"a prediction of {prediction.shape} and a true mask of {truth.shape}"
        raise ValueError(f"frame {frame}: expected masks of {size}, found {found}")
    if prediction.dtype != np.uint8:
        raise ValueError(f"frame {frame}: expected a prediction of uint8, found {prediction.dtype}")
    highest = int(prediction.max(initial=0))
    if highest > objects:
        raise ValueError(f"frame {frame}: the video has {objects} objects, but id {highest} was predicted")


def _without_void(truth: Labels) -> Labels:
    """A true label map with void as background."""
    if truth.ndim != 2 or truth.dtype != np.uint8:
        raise ValueError(f"expected true masks [height width] of uint8, found {truth.shape} {truth.dtype}")
    return np.where(truth == VOID, np.uint8(0), truth) if truth.max(initial=0) == VOID else truth


def score_frame(prediction: Labels, truth: Labels, objects: int) -> tuple[Floats, Floats]:
    """J and F of each object in one frame: [objects] each."""
    radius = tolerance(truth.shape)
    j, f = np.ones(objects), np.ones(objects)
    shown = _shown(prediction | truth)
    prediction, truth = prediction[shown], truth[shown]
    boxes = [ndimage.find_objects(mask, max_label=objects) for mask in (prediction, truth)]
    for row, pair in enumerate(zip(*boxes, strict=True)):
        found = [box for box in pair if box is not None]
        if found:
            rows, columns = (_wider([box[axis] for box in found], truth.shape[axis]) for axis in (0, 1))
            predicted, true = prediction[rows, columns] == row + 1, truth[rows, columns] == row + 1
            j[row], f[row] = jaccard(predicted, true), _boundary_f(predicted, true, radius)
    return j, f


def _shown(labels: Labels) -> Window:
    """The box that holds all labels but background, one pixel wider where the image goes on."""
    places = [np.flatnonzero(labels.max(axis=axis, initial=0)) for axis in (1, 0)]
    if not len(places[0]):
        return slice(0, 0), slice(0, 0)
    rows, columns = (
        _wider([slice(int(place[0]), int(place[-1]) + 1)], size)
        for place, size in zip(places, labels.shape, strict=True)
    )
    return rows, columns


def _wider(spans: Sequence[slice], size: int) -> slice:
    """What covers the spans and one pixel more where there is one, so that boundaries stay as they are."""
    return slice(
        max(0, min(span.start for span in spans) - 1), min(size, max(span.stop for span in spans) + 1)
    )


def _boundary_f(prediction: Mask, truth: Mask, radius: int) -> float:
    """F of two masks at a tolerance in pixels."""
    predicted, true = boundary(prediction), boundary(truth)
    counts = np.count_nonzero(predicted), np.count_nonzero(true)
    if not all(counts):
        return float(counts[0] == counts[1])
    precision = _found(predicted, true, radius) / counts[0]
    recall = _found(true, predicted, radius) / counts[1]
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _found(points: Mask, targets: Mask, radius: int) -> int:
    """How many points have a target within a disk x² + y² <= radius².

    Each row of the disk is an interval: running sums along the rows tell whether it holds a target. Rows are
    taken from the middle outwards, each only for points without a target so far.
    """
    height, width = targets.shape
    row, column = np.divmod(np.flatnonzero(points), width)
    total = len(row)
    running = np.zeros((height + 2 * radius, width + 1), dtype=np.int32)
    np.cumsum(targets, axis=1, out=running[radius : radius + height, 1:])
    for offset in sorted(range(-radius, radius + 1), key=abs):
        reach = math.isqrt(radius * radius - offset * offset)
        line = row + (radius + offset)
        right = np.minimum(column + reach + 1, width)
        missed = running[line, right] == running[line, np.maximum(column - reach, 0)]
        row, column = row[missed], column[missed]
    return total - len(row)


def _mean_statistics(values: Sequence[Statistics]) -> Statistics:
    """Means of the statistics over objects."""
    table = np.array([(value.mean, value.recall, value.decay) for value in values]).mean(axis=0)
    return Statistics(*(float(value) for value in table))
