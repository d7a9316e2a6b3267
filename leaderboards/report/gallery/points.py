"""Examples of keypoint correspondence: pairs of images, and where layers find points."""

from html import escape

import numpy as np
from numpy.typing import NDArray

from leaderboards.report.gallery.drawing import Drawing, Example
from leaderboards.report.gallery.kept import Array, Kept
from leaderboards.report.gallery.markup import LARGE, layer_table, others_list
from leaderboards.report.gallery.stories import Floats


def _counts(kept: Kept, place: int) -> tuple[list[int], int]:
    """How many points of a pair each drawn layer finds, and how many there are."""
    right = kept.drawn("right")[:, kept.arrays["of_pair"] == place]
    return right.sum(axis=1).astype(int).tolist(), right.shape[1]


def _quality(kept: Kept) -> Floats:
    every = (_counts(kept, place) for place in range(len(kept.arrays["pair"])))
    return np.stack([100.0 * np.asarray(found) / total for found, total in every], axis=1)


def _pair(kept: Kept, place: int) -> str:
    return str(kept.arrays["pair"][place])


def _intro(kept: Kept) -> str:
    return (
        f"<p>{len(kept.arrays['pair'])} pairs are kept, the same of every backbone. The points of the left "
        "image are looked for in the other: a dot is a point that was found (within a tenth of the object's "
        "longer side), a cross one that was not, with a line to the ring where it should be.</p>"
    )


def _summary(example: Example) -> str:
    kept, place = example.kept, example.place
    counts, total = _counts(kept, place)
    told = kept.at_layers([f"{count} of {total} points" for count in counts])
    return f"<span><b>{escape(str(kept.arrays['category'][place]))}</b> {told}</span>"


def _inner(example: Example) -> str:
    kept, place, pictures = example.kept, example.place, example.pictures
    own, category = kept.arrays["of_pair"] == place, str(kept.arrays["category"][place])
    source, target = kept.arrays["source"][place], kept.arrays["target"][place]
    counts, total = _counts(kept, place)
    asked = _scaled(example, "source", kept.arrays["source_point"][own])
    label = f"{category} with {total} points to be found, {source}"
    cells = [pictures.shown(kept, source, label, "".join(map(_dot, asked)), LARGE)]
    true = _scaled(example, "target", kept.arrays["target_point"][own])
    for row, layer in enumerate(kept.layers):
        points = _scaled(example, "target", kept.drawn("point")[row][own])
        over = _found(points, true, kept.drawn("right")[row][own].astype(bool))
        label = f"another {category}: layer {layer} finds {counts[row]} of {total} points, {target}"
        shown = pictures.shown(kept, target, label, over, LARGE)
        cells.append(f"{shown}<small>{counts[row]} of {total}</small>")
    table = layer_table(kept, f"{category}: points by layer", [("points", cells)], "points of")
    return table + _others(example)


def _others(example: Example) -> str:
    texts = []
    for other in example.others:
        for place in np.flatnonzero(other.arrays["pair"] == _pair(example.kept, example.place)):
            counts, total = _counts(other, int(place))
            texts.append(f"{escape(other.backbone)}, layer {other.layer}: {counts[other.best]} of {total}")
    return others_list("pair", texts)


def _scaled(example: Example, side: str, points: Array) -> Array:
    """Points of one image of the pair [points 2] in pixels of its small picture."""
    arrays, place = example.kept.arrays, example.place
    found = example.pictures.size(example.kept, arrays[side][place])
    return points if found is None else points * np.asarray(found[1:]) / arrays[f"{side}_size"][place]


def _dot(point: Array) -> str:
    return f'<circle class="examples-dot" cx="{point[0]:.1f}" cy="{point[1]:.1f}" r="2.6"/>'


def _found(points: Array, true: Array, right: NDArray[np.bool_]) -> str:
    """Dots where points were found, crosses where not, with lines to rings where they should be."""
    drawn = (
        _dot(point) if good else _miss(point, at) for point, at, good in zip(points, true, right, strict=True)
    )
    return "".join(drawn)


def _miss(point: Array, at: Array) -> str:
    return (
        f'<path class="examples-miss" d="M{point[0]:.1f} {point[1]:.1f}L{at[0]:.1f} {at[1]:.1f}'
        f'M{point[0] - 2.5:.1f} {point[1] - 2.5:.1f}l5 5m0 -5l-5 5"/>'
        f'<circle class="examples-ring" cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="2.6"/>'
    )


POINTS = Drawing(_intro, _quality, _pair, _summary, _inner)
"""Pairs of images, and where layers find the points of the one in the other."""
