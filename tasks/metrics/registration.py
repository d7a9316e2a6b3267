"""Whether one image shows a part of another, by registration of small grey pictures.

The central disc of one picture is searched in the other: at the same scale or smaller, at any position, and
rotated at the same scale only. Two further discs, which a caption leaves free, are searched at their own
position. The best disc of a grid is then shifted, scaled and rotated in ever smaller steps. Two discs match
if both their shades and their details correlate: many photographs have similar shades, and many patterns
similar details.
"""

from collections.abc import Sequence
from functools import partial
from itertools import product
from math import ceil, radians
from multiprocessing.pool import ThreadPool

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter, map_coordinates

from layerboard.tasks.metrics.arrays import Integers, Mask

Picture = NDArray[np.uint8]  # grey [height width]
Values = NDArray[np.float32]
Discs = NDArray[np.float64]  # [discs 4]: x, y and radius relative to the shorter side, angle in radians

SIDE = 48  # pixels of the shorter side of a picture
SCALES = (1.0, 0.92, 0.84, 0.77, 0.71)  # scales of the discs: down to half of the area
ANGLES = (-12, -6, 0, 6, 12)  # rotations of the largest disc in degrees
FREE = 0.8  # diameter, relative to the shorter side, of the discs that a caption leaves free
STEP = 0.07  # largest distance of neighbouring discs in diameters
LIKELY = 0.82  # least correlation of shades at which a disc of the grid is refined
SHADES, DETAILS = 0.92, 0.8  # least correlations of two discs that match
MOVES = np.diag([0.04, 0.04, 0.03, radians(4)])  # first steps of the refinement
ROUNDS = 12  # steps of the refinement; a step without improvement halves the next ones
PROMISING = 4, 0.87  # the refinement stops after this many steps if the correlation is below this
FLAT = 0.5  # a disc is flat if its root mean square contrast is below this many grey levels


def show_the_same(pictures: Sequence[Picture], pairs: Integers) -> Mask:
    """Whether one picture of each pair [pairs 2] shows the middle of the other, or all but captions: [pairs].

    Pictures are grey, with a shorter side of `SIDE` pixels. Flat discs never match.
    """
    agree = np.zeros((2, len(pairs)), np.bool_)
    if len(pairs):
        targets = np.stack([_seen(_shades(each), _targets(each), COARSE) for each in pictures])
        wholes, parts = np.concatenate([pairs, pairs[:, ::-1]]).T
        order = np.argsort(wholes, kind="stable")
        rows = np.split(order, np.flatnonzero(np.diff(wholes[order])) + 1)
        with ThreadPool() as pool:
            same = pool.map(lambda row: _shows(pictures, targets, wholes[row[0]], parts[row]), rows)
        agree.flat[order] = np.concatenate(same)
    return np.asarray(agree.any(axis=0))


def _shows(pictures: Sequence[Picture], targets: Values, whole: int, parts: Integers) -> Mask:
    """Whether the picture ``whole`` shows a target of each of the pictures ``parts``: [parts].

    ``targets`` are [pictures targets points].
    """
    picture = pictures[whole]
    shades, details = _shades(picture), _details(picture)
    same = np.zeros(len(parts), np.bool_)
    for target, discs in enumerate((_grid(picture), *_targets(picture)[1:, None])):
        alike = _seen(shades, discs, COARSE) @ targets[parts, target].T
        best = alike.argmax(axis=0)
        for row in np.flatnonzero((alike.max(axis=0) >= LIKELY) & ~same):
            part = pictures[parts[row]]
            wanted = partial(_seen, discs=_targets(part)[[target]], points=FINE)
            disc, correlation = _closer(shades, wanted(_shades(part))[0], discs[best[row]])
            if correlation >= SHADES:
                same[row] = _seen(details, disc[None], FINE)[0] @ wanted(_details(part))[0] >= DETAILS
    return same


def _closer(shades: Values, target: Values, disc: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """The disc, refined from ``disc``, with the highest correlation with the target, and this correlation."""
    moves, correlation = np.concatenate([MOVES, -MOVES]), -1.0
    for step in range(ROUNDS):
        near = np.concatenate([disc[None], disc + moves])
        alike = _seen(shades, near, FINE) @ target
        best = int(alike.argmax())
        disc, correlation = near[best], float(alike[best])
        if step == PROMISING[0] and correlation < PROMISING[1]:
            break
        if not best:
            moves = moves / 2
    return disc, correlation


def _grid(picture: Picture) -> Discs:
    """The discs of a picture that are compared with the central disc of another picture."""
    height, width = (length / SIDE for length in picture.shape)
    discs: list[tuple[float, float, float, float]] = []
    for scale in SCALES:
        places = (
            np.linspace(scale / 2, length - scale / 2, 1 + ceil((length - scale) / (STEP * scale)))
            for length in (width, height)
        )
        turned = ANGLES if scale == 1 else (0,)
        discs += [(x, y, scale / 2, radians(angle)) for x, y, angle in product(*places, turned)]
    return np.array(discs)


def _targets(picture: Picture) -> Discs:
    """The discs of a picture that are searched in others: in the middle, at the top and at the bottom."""
    height, width = (length / SIDE for length in picture.shape)
    x = width / 2
    return np.array(
        [(x, height / 2, 0.5, 0), (x, FREE / 2, FREE / 2, 0), (x, height - FREE / 2, FREE / 2, 0)]
    )


def _disc(across: int) -> NDArray[np.float64]:
    """Points [2 points] of a disc of radius 1, ``across`` of them from side to side."""
    places = (np.arange(across) + 0.5) / across * 2 - 1
    points = np.stack(np.meshgrid(places, places))
    return np.asarray(points[:, (points**2).sum(axis=0) <= 1])


COARSE, FINE = _disc(14), _disc(24)


def _seen(values: Values, discs: Discs, points: NDArray[np.float64]) -> Values:
    """Values in discs [discs points], normalised to mean 0 and length 1; zeros for flat discs."""
    x, y, radius, angle = discs.T[:, :, None]
    cos, sin = np.cos(angle), np.sin(angle)
    across = x + radius * (points[0] * cos - points[1] * sin)
    down = y + radius * (points[0] * sin + points[1] * cos)
    places = np.stack([down, across]) * SIDE - 0.5
    seen = map_coordinates(values, places, output=np.float32, order=1, mode="nearest")
    seen -= seen.mean(axis=1, keepdims=True)
    length = np.linalg.norm(seen, axis=1, keepdims=True)
    flat = length < FLAT * np.sqrt(seen.shape[1])
    return np.asarray(np.where(flat, 0, seen / np.where(flat, 1, length)), np.float32)


def _shades(picture: Picture) -> Values:
    return np.asarray(gaussian_filter(picture.astype(np.float32), 1.5))


def _details(picture: Picture) -> Values:
    """Structures finer than about an eighth of the picture, without noise."""
    values = picture.astype(np.float32)
    return np.asarray(gaussian_filter(values, 0.8) - gaussian_filter(values, 3))
