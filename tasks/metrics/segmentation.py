"""Region similarity J and boundary accuracy F of video object masks, by the rules of DAVIS-2017.

Source: Pont-Tuset et al., The 2017 DAVIS Challenge on Video Object Segmentation, section 3, and Perazzi et
al., CVPR 2016, section 5, as the official evaluator computes them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tasks.metrics.arrays import VOID, Floats, Labels, Mask
from tasks.metrics.boundaries import PREDICTED, TRUE, Flags, both, compare_boundaries

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
    return _jaccard(both(prediction, truth))


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
    return _boundary_f(both(prediction, truth), tolerance(prediction.shape, threshold))


def tolerance(size: tuple[int, ...], threshold: float = TOLERANCE) -> int:
    """Radius in pixels within which boundaries of masks of that height and width match."""
    return math.floor(threshold) if threshold >= 1 else math.ceil(threshold * math.hypot(*size))


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
        shapes = f"a prediction of {prediction.shape} and a true mask of {truth.shape}"
        raise ValueError(f"frame {frame}: expected masks of {size}, found {shapes}")
    if prediction.dtype != np.uint8:
        raise ValueError(f"frame {frame}: expected a prediction of uint8, found {prediction.dtype}")
    highest = int(prediction.max(initial=0))
    if highest > objects:
        raise ValueError(f"frame {frame}: the video has {objects} objects, but id {highest} was predicted")


def _without_void(truth: Labels) -> Labels:
    """A true label map with void as background."""
    if truth.ndim != 2 or truth.dtype != np.uint8:
        raise ValueError(f"expected true masks [height width] of uint8, found {truth.shape} {truth.dtype}")
    return truth * (truth != VOID) if truth.max(initial=0) == VOID else truth


def score_frame(prediction: Labels, truth: Labels, objects: int) -> tuple[Floats, Floats]:
    """J and F of each object in one frame: [objects] each."""
    radius = tolerance(truth.shape)
    j, f = np.ones(objects), np.ones(objects)
    shown = _shown(prediction, truth)
    prediction, truth = prediction[shown], truth[shown]
    for row in range(objects):
        pair = both(prediction == row + 1, truth == row + 1)
        if objects > 1:  # the only one is all that is shown
            pair = pair[_shown(pair)]
        if pair.size:
            j[row], f[row] = _jaccard(pair), _boundary_f(pair, radius)
    return j, f


def _shown(*maps: Labels) -> Window:
    """The box that holds all labels but background, one pixel wider where the image goes on.

    With a pixel of background beside them, boundaries stay as they are.
    """
    rows = _extent(maps, 1)
    columns = _extent([labels[rows] for labels in maps], 0)
    return rows, columns


def _extent(maps: Sequence[Labels], across: int) -> slice:
    """Lines of label maps that show more than background, and one more on each side where there is one."""
    occupied = np.logical_or.reduce([labels.max(axis=across, initial=0) for labels in maps])
    lines = np.flatnonzero(occupied)
    return (
        slice(max(0, int(lines[0]) - 1), min(len(occupied), int(lines[-1]) + 2))
        if len(lines)
        else slice(0, 0)
    )


def _jaccard(pair: Flags) -> float:
    """Intersection over union of two masks as flags [height width]; 1 where both are empty."""
    union = np.count_nonzero(pair)
    return np.count_nonzero(pair == (PREDICTED | TRUE)) / union if union else 1.0


def _boundary_f(pair: Flags, radius: int) -> float:
    """F of two masks as flags [height width], at a tolerance in pixels."""
    matched = compare_boundaries(pair, radius)
    if not matched.predicted or not matched.true:
        return float(matched.predicted == matched.true)
    precision, recall = matched.predicted_found / matched.predicted, matched.true_found / matched.true
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _mean_statistics(values: Sequence[Statistics]) -> Statistics:
    """Means of the statistics over objects."""
    table = np.array([(value.mean, value.recall, value.decay) for value in values]).mean(axis=0)
    return Statistics(*(float(value) for value in table))
