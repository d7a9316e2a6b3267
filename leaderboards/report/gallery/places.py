"""Examples of places in images: masks that layers propagate through videos, and matched points."""

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from layerboard.leaderboards.charts.raster import indexed_png
from layerboard.leaderboards.report.gallery import drawing
from layerboard.leaderboards.report.gallery.drawing import Drawing, Example, Floats, SharedPictures, judged
from layerboard.leaderboards.report.gallery.examples import Array, ExampleSet
from layerboard.leaderboards.report.templates.environment import filled

# colours of objects (Okabe and Ito), safe for colour-blind readers; after the last comes the first
OBJECTS = ((230, 159, 0), (86, 180, 233), (0, 158, 115), (240, 228, 66), (204, 121, 167), (213, 94, 0))
OPACITY = 165  # opacity of the objects, out of 255
ERROR, HEATS = (225, 29, 46), 5  # colour of errors, and number of levels of its opacity
WHITE = (255, 255, 255)  # colour of the true outline
_SCORE = drawing.quality("score")
OUTSIDE = 255  # value of a mask outside of its image (`tasks.examples.draw.small_mask`)

Rgb = tuple[int, int, int]


# ---- masks --------------------------------------------------------------------------------------

_MASKS_INTRO = """\
Frames of {count} videos are kept, the same for every backbone. The mask of the first frame is given; each \
layer propagates it through the video. Colours show the prediction of a layer, the white line the true \
outline, the number J&F of the frame, averaged over its objects. The row of errors shows wrong pixels in \
red: first the share of layers that are wrong there, then the errors of each layer."""


def _masks_example(examples: ExampleSet, number: int, pictures: SharedPictures) -> Example:
    video, position = str(examples.arrays["video"][number]), int(examples.arrays["position"][number]) + 1
    given, first = examples.arrays["given"][number], examples.arrays["first"][number]
    label = f"first frame of {video} with the mask that is given"
    asked = pictures.shown(examples, first, label, _overlay(given, given))
    frame, words = str(examples.arrays["frame"][number]), f"frame {position} of {video}"
    scores = [f"J&F {score:.0f}" for score in examples.drawn("score")[:, number]]
    masks, errors = _mask_rows(examples, number, pictures, (frame, words), scores)
    return Example(
        name=video,
        summary=f"frame {position}: {examples.at_layers(scores)}",
        table=f"{video}: masks by layer",
        heads=drawing.layer_heads(examples, "given, frame 1"),
        rows=((f"frame {position}", asked, *masks), ("errors", *errors)),
    )


def _mask_rows(
    examples: ExampleSet, number: int, pictures: SharedPictures, named: tuple[str, str], scores: Sequence[str]
) -> tuple[list[Markup], list[Markup]]:
    """Masks of the layers on an image, and their errors, after those of all layers together.

    ``named`` are the image's name in the arrays and in words.
    """
    masks, truth = examples.drawn("mask")[:, number], examples.arrays["truth"][number]
    image, words = named

    def shown(label: str, over: Markup, text: str) -> Markup:
        return judged(text, picture=pictures.shown(examples, image, label, over))

    wrong = (masks != truth) & (truth != OUTSIDE)
    shares = wrong.sum(axis=(1, 2)) / max((truth != OUTSIDE).sum(), 1)
    label = f"share of layers that are wrong, {words}"
    cells, errors = [], [shown(label, _heat(wrong.mean(axis=0), masks[0], truth), "all layers")]
    for row, layer in enumerate(examples.layers):
        label = f"{words} with the mask of layer {layer}: {scores[row]}"
        cells.append(shown(label, _overlay(masks[row], truth), scores[row]))
        label = f"wrong pixels of layer {layer}, {words}: {shares[row]:.1%}"
        errors.append(shown(label, _heat(wrong[row], masks[0], truth), f"{100 * shares[row]:.1f} % wrong"))
    return cells, errors


def _overlay(mask: Array, truth: Array) -> Markup:
    """A predicted mask and the true outline as an overlay of a picture; both [side side] of `small_mask`."""
    indexes = np.where((mask > 0) & (mask != OUTSIDE), (mask.astype(int) - 1) % len(OBJECTS) + 1, 0)
    return _veil(indexes, mask, truth, [(colour, OPACITY) for colour in OBJECTS])


def _heat(shares: Array, mask: Array, truth: Array) -> Markup:
    """Shares of errors, 0 to 1 [side side], as red whose opacity grows with them."""
    steps = np.ceil(shares * HEATS)
    return _veil(steps, mask, truth, [(ERROR, 255 * (step + 1) // HEATS) for step in range(HEATS)])


def _veil(indexes: Array, mask: Array, truth: Array, colours: Sequence[tuple[Rgb, int]]) -> Markup:
    """Colours with opacity by index, from 1 on, and the true outline in white, over a picture.

    It covers the pixels where the predicted mask is inside the image.
    """
    inside = mask != OUTSIDE
    height, width = int(inside.any(axis=1).sum()), int(inside.any(axis=0).sum())
    cells = indexes[:height, :width].astype(np.uint8)
    cells[outline(truth[:height, :width])] = len(colours) + 1
    palette, opacity = zip(*colours, (WHITE, 255), strict=True)
    address = indexed_png(cells, np.array(palette, np.uint8), opacity)
    return Markup('<image width="{}" height="{}" href="{}"/>').format(width, height, address)


def outline(truth: Array) -> NDArray[np.bool_]:
    """Pixels of objects [height width] that touch something else."""
    padded = np.pad(truth, 1, mode="edge")
    centre = padded[1:-1, 1:-1]
    sides = (padded[:-2, 1:-1], padded[2:, 1:-1], padded[1:-1, :-2], padded[1:-1, 2:])
    return np.asarray((centre > 0) & np.any([centre != side for side in sides], axis=0))


# frames with the predicted masks
MASKS = Drawing(_MASKS_INTRO, _SCORE, "frame", "video", _masks_example, drawing.scored("J&F {:.0f}"))


# ---- classes of pixels --------------------------------------------------------------------------

_LABELS_INTRO = """\
{count} images are kept, the same for every backbone. Colours show the class that a layer predicts, the \
white line the true outline, the number the share of correct pixels. The row of errors shows wrong pixels \
in red: first the share of layers that are wrong there, then the errors of each layer."""


def _labels_example(examples: ExampleSet, number: int, pictures: SharedPictures) -> Example:
    image, truth = str(examples.arrays["image"][number]), examples.arrays["truth"][number]
    there = np.setdiff1d(truth[truth != OUTSIDE], [0]).tolist()
    classes = ", ".join(examples.called(examples.arrays["classes"][label]) for label in there)
    scores = [f"{score:.0f} % right" for score in examples.drawn("score")[:, number]]
    masks, errors = _mask_rows(examples, number, pictures, (image, image), scores)
    label = f"true classes of {image}"
    true = pictures.shown(examples, image, label, _overlay(truth, truth))
    return Example(
        name=classes or image,
        summary=examples.at_layers(scores),
        note=image,
        table=f"{image}: classes by layer",
        heads=drawing.layer_heads(examples, "truth"),
        rows=(("classes", true, *masks), ("errors", *errors)),
    )


# images with the predicted classes of pixels
LABELS = Drawing(_LABELS_INTRO, _SCORE, "image", "image", _labels_example, drawing.scored("{:.0f} % right"))


# ---- distances from good images -----------------------------------------------------------------

_DEFECTS_INTRO = """\
{count} images are kept, the same for every backbone. Red shows the distance of a patch from all good \
images, from the median of good patches (none) to the largest distance of all (full). The white line is the \
outline of the defect; the number is the share of images of the other kind (good or defective) that are \
ranked on the right side of the image."""


def _defects_example(examples: ExampleSet, number: int, pictures: SharedPictures) -> Example:
    image, truth = str(examples.arrays["image"][number]), examples.arrays["truth"][number]
    product, kind = (str(examples.arrays[name][number]) for name in ("product", "kind"))
    scores = [f"told from {score:.0f} %" for score in examples.drawn("score")[:, number]]
    words = f"{product}, {kind}: {image}"
    cells = [pictures.shown(examples, image, words, _veil(np.zeros_like(truth), truth, truth, []))]
    for layer, heat, score in zip(examples.layers, examples.drawn("heat")[:, number], scores, strict=True):
        over = _heat(np.where(heat == OUTSIDE, 0, heat) / 100, truth, truth)
        label = f"distance of layer {layer} from good images, {words}: {score}"
        cells.append(judged(score, picture=pictures.shown(examples, image, label, over)))
    return Example(
        name=f"{product}, {kind}",
        summary=examples.at_layers(scores),
        note=image,
        table=f"{image}: distances by layer",
        heads=drawing.layer_heads(examples, "truth"),
        rows=(("distances", *cells),),
    )


# images with the distances of pixels from good images
_DEFECTS_ANSWER = drawing.scored("told from {:.0f} %")
DEFECTS = Drawing(_DEFECTS_INTRO, _SCORE, "image", "image", _defects_example, _DEFECTS_ANSWER)


# ---- points -------------------------------------------------------------------------------------

_POINTS_INTRO = """\
{count} pairs are kept, the same for every backbone. The points of the left image are matched in the other: \
a dot is a point that was found (within a tenth of the object's longer side); a cross is one that was not, \
with a line to a ring at its true position."""


def _counts(examples: ExampleSet, number: int) -> tuple[list[int], int]:
    """The number of points of a pair that each drawn layer finds, and of all points."""
    right = examples.drawn("right")[:, examples.arrays["of_pair"] == number]
    return right.sum(axis=1).astype(int).tolist(), right.shape[1]


def _points_quality(examples: ExampleSet) -> Floats:
    every = (_counts(examples, number) for number in range(len(examples.arrays["pair"])))
    return np.stack([100.0 * np.asarray(counts) / total for counts, total in every], axis=1)


def _points_example(examples: ExampleSet, number: int, pictures: SharedPictures) -> Example:
    arrays = examples.arrays
    of_pair, category = arrays["of_pair"] == number, str(arrays["category"][number])
    source, target = arrays["source"][number], arrays["target"][number]
    counts, total = _counts(examples, number)

    def scaled(side: str, points: Array) -> list[list[float]]:
        """Points of one image of the pair [points 2] in pixels of its thumbnail."""
        size = pictures.size(examples, arrays[side][number])
        scale = 1.0 if size is None else np.asarray(size[1:]) / arrays[f"{side}_size"][number]
        return (points * scale).tolist()  # type: ignore[no-any-return]

    label = f"{category} with {total} points to be found, {source}"
    asked = filled("points", dots=scaled("source", arrays["source_point"][of_pair]), misses=[])
    cells = [pictures.shown(examples, source, label, asked)]
    true = scaled("target", arrays["target_point"][of_pair])
    for row, layer in enumerate(examples.layers):
        points = scaled("target", examples.drawn("point")[row][of_pair])
        right = examples.drawn("right")[row][of_pair]
        dots = [point for point, good in zip(points, right, strict=True) if good]
        misses = [pair for pair, good in zip(zip(points, true, strict=True), right, strict=True) if not good]
        label = f"another {category}: layer {layer} finds {counts[row]} of {total} points, {target}"
        picture = pictures.shown(examples, target, label, filled("points", dots=dots, misses=misses))
        cells.append(judged(f"{counts[row]} of {total}", picture=picture))
    return Example(
        name=category,
        summary=examples.at_layers([f"{count} of {total} points" for count in counts]),
        table=f"{category}: points by layer",
        heads=drawing.layer_heads(examples, "points of"),
        rows=(("points", *cells),),
    )


def _points_answer(examples: ExampleSet, index: int) -> tuple[str, None]:
    counts, total = _counts(examples, index)
    return f"{counts[examples.best]} of {total}", None


# pairs of images with matched points
POINTS = Drawing(_POINTS_INTRO, _points_quality, "pair", "pair", _points_example, _points_answer)
