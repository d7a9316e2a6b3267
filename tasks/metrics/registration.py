"""Whether one image shows a part of another: registration of small grey pictures.

The disc in the middle of one picture is looked for in the other: as large or smaller, anywhere, and turned
where it is as large; and two discs that a caption leaves free, where they are. The best of a grid of discs is
then moved, scaled and turned by ever smaller steps. Two discs show the same where both their shades and their
details agree: the shades of many photographs are alike, and so are the details of many patterns.
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
Discs = NDArray[np.float64]  # [discs 4]: x, y, radius in shorter sides, and angle in radians

SIDE = 48  # pixels of the shorter side of a picture
SCALES = (1.0, 0.92, 0.84, 0.77, 0.71)  # of the discs that are tried: down to half of the area
ANGLES = (-12, -6, 0, 6, 12)  # degrees by which the largest disc is turned
FREE = 0.8  # of the shorter side: the discs that a caption at the bottom or the top leaves free
STEP = 0.07  # diameters between neighbouring discs, at most
LIKELY = 0.82  # correlation of shades from which on a disc of the grid is looked at closer
SHADES, DETAILS = 0.92, 0.8  # correlations from which on two discs show the same
MOVES = np.diag([0.04, 0.04, 0.03, radians(4)])  # the first steps of a closer look
ROUNDS = 12  # steps of a closer look; one that does not help is halved
PROMISING = 4, 0.87  # steps, and the correlation without which they are the last
FLAT = 0.5  # grey levels, in the root mean square, below which a disc is flat


def show_the_same(pictures: Sequence[Picture], pairs: Integers) -> Mask:
    """Of which pairs [pairs 2] of pictures one shows the middle of the other, or all but a caption, [pairs].

    Pictures are grey, their shorter side is `SIDE`. Flat ones show nothing.
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
    """Of which other pictures a picture shows a target, [parts]; targets are [pictures targets points]."""
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
    """The disc near another one that looks most like the target, and its correlation with it."""
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
    """The discs in which another picture is looked for."""
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
    """The discs of a picture that others may show: in the middle, at the top and at the bottom."""
    height, width = (length / SIDE for length in picture.shape)
    x = width / 2
    return np.array(
        [(x, height / 2, 0.5, 0), (x, FREE / 2, FREE / 2, 0), (x, height - FREE / 2, FREE / 2, 0)]
    )


def _disc(across: int) -> NDArray[np.float64]:
    """Points [2 points] of a disc of radius 1, so many from side to side."""
    places = (np.arange(across) + 0.5) / across * 2 - 1
    points = np.stack(np.meshgrid(places, places))
    return np.asarray(points[:, (points**2).sum(axis=0) <= 1])


COARSE, FINE = _disc(14), _disc(24)


def _seen(values: Values, discs: Discs, points: NDArray[np.float64]) -> Values:
    """The values in discs [discs points], of mean 0 and length 1; zeros of what is flat."""
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
    """What is finer than about an eighth of the picture, without its noise."""
    values = picture.astype(np.float32)
    return np.asarray(gaussian_filter(values, 0.8) - gaussian_filter(values, 3))
