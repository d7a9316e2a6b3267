"""Examples of mask propagation: frames with the masks that layers predicted."""

import base64
from html import escape
from io import BytesIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from leaderboards.report.gallery.drawing import Drawing, Example
from leaderboards.report.gallery.kept import Array, Kept
from leaderboards.report.gallery.markup import LARGE, layer_table, others_list
from leaderboards.report.gallery.stories import Floats

OBJECTS = ((230, 159, 0), (86, 180, 233), (0, 158, 115), (240, 228, 66), (204, 121, 167), (213, 94, 0))
"""Colours of objects (Okabe and Ito), which colour-blind readers tell apart; after the last the first."""

OPACITY = 165
"""Of the objects, of 255."""

OUTLINE = 255
"""Value of a mask's picture where the true outline runs."""

OUTSIDE = 255
"""Value of a mask outside of its image (`tasks.examples.draw.small_mask`)."""


def _scores(kept: Kept) -> Floats:
    return kept.drawn("score").astype(np.float64)


def _video(kept: Kept, place: int) -> str:
    return str(kept.arrays["video"][place])


def _number(example: Example) -> int:
    """Number of the frame, from 1."""
    return int(example.kept.arrays["position"][example.place]) + 1


def _intro(kept: Kept) -> str:
    return (
        f"<p>Frames of {len(set(kept.arrays['video'].tolist()))} videos are kept, the same of every "
        "backbone. The first frame's mask is given; each layer carries it through the video. Colour is what "
        "a layer predicts, the white line is the true outline, the number is J&amp;F of the frame, mean "
        "over its objects.</p>"
    )


def _summary(example: Example) -> str:
    kept, place = example.kept, example.place
    told = kept.at_layers([f"J&F {score:.0f}" for score in _scores(kept)[:, place]])
    video = escape(_video(kept, place))
    return f"<span><b>{video}</b> frame {_number(example)}: {escape(told)}</span>"


def _inner(example: Example) -> str:
    kept, place, pictures = example.kept, example.place, example.pictures
    video, number = _video(kept, place), _number(example)
    given, truth = kept.arrays["given"][place], kept.arrays["truth"][place]
    label = f"first frame of {video} with the mask that is given"
    cells = [pictures.shown(kept, kept.arrays["first"][place], label, _overlay(given, given), LARGE)]
    masks, scores = kept.drawn("mask")[:, place], _scores(kept)[:, place]
    for layer, mask, score in zip(kept.layers, masks, scores, strict=True):
        label = f"frame {number} of {video} with the mask of layer {layer}: J&F {score:.0f}"
        shown = pictures.shown(kept, kept.arrays["frame"][place], label, _overlay(mask, truth), LARGE)
        cells.append(f"{shown}<small>J&amp;F {score:.0f}</small>")
    rows = [(f"frame {number}", cells)]
    texts = [
        f"{escape(other.backbone)}, layer {other.layer}: J&amp;F {_scores(other)[other.best, found]:.0f}"
        for other in example.others
        for found in np.flatnonzero(other.arrays["frame"] == kept.arrays["frame"][place])
    ]
    return layer_table(kept, f"{video}: masks by layer", rows, "given, frame 1") + others_list("frame", texts)


def _overlay(mask: Array, truth: Array) -> str:
    """A predicted mask and the true outline as an image over a picture; both [side side] of `small_mask`."""
    inside = truth != OUTSIDE
    height, width = int(inside.any(axis=1).sum()), int(inside.any(axis=0).sum())
    ids = mask[:height, :width].astype(np.uint8)
    shown = np.where((ids > 0) & (ids != OUTSIDE), (ids - 1) % len(OBJECTS) + 1, 0).astype(np.uint8)
    shown[outline(truth[:height, :width])] = OUTLINE
    data = base64.b64encode(_png(shown)).decode()
    return f'<image width="{width}" height="{height}" href="data:image/png;base64,{data}"/>'


def outline(truth: Array) -> NDArray[np.bool_]:
    """Pixels of objects [height width] that touch something else."""
    padded = np.pad(truth, 1, mode="edge")
    centre = padded[1:-1, 1:-1]
    sides = (padded[:-2, 1:-1], padded[2:, 1:-1], padded[1:-1, :-2], padded[1:-1, 2:])
    return np.asarray((centre > 0) & np.any([centre != side for side in sides], axis=0))


def _png(shown: NDArray[np.uint8]) -> bytes:
    """A mask as a PNG with a palette: nothing, objects half transparent, the outline white."""
    image = Image.fromarray(shown)
    palette, alpha = np.zeros((256, 3), np.uint8), np.zeros(256, np.uint8)
    palette[1 : len(OBJECTS) + 1], alpha[1 : len(OBJECTS) + 1] = OBJECTS, OPACITY
    palette[OUTLINE], alpha[OUTLINE] = 255, 255
    image.putpalette(palette.tobytes())
    sink = BytesIO()
    image.save(sink, "PNG", optimize=True, transparency=alpha.tobytes())
    return sink.getvalue()


MASKS = Drawing(_intro, _scores, _video, _summary, _inner)
"""Frames with the masks that layers predicted."""
