"""The segmentation dataset, in VOC 2012's layout, with VOC's names and numbers of the classes."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from workshop.render.background import Prop, draw_backdrop, draw_prop
from workshop.render.facts import SCENES_TRAIN, SCENES_VAL
from workshop.render.individual import draw_individual
from workshop.render.lighting import draw_light
from workshop.render.masks import write_mask
from workshop.render.scene import Figure, moved, render
from workshop.render.seeds import Namespace, Rng, Size, generator
from workshop.render.still import Variation, draw_figure
from workshop.render.templates import class_index
from workshop.render.writers.base import Note, Writer, draw_size, save_jpeg, save_text

SIZES = ((128, 96), (96, 128))
VOID = 255
_ROOT = Path("VOCdevkit") / "VOC2012"
_UNIT = 8  # images of a unit
_LEAST_AREA = 40  # figures with fewer visible pixels have no class
_MOST = 3  # figures of an image at most

# VOC's numbers of the classes, and what is drawn for each
CLASSES = (
    (1, "plane"),
    (2, "bicycle"),
    (3, "songbird"),
    (4, "boat"),
    (7, "car"),
    (9, "chair"),
    (12, "dog"),
    (13, "horse"),
)
_VIEW = Variation((0.95, 1.0), 0.0, 1.0, 0.25, 1.0, 0.7)


def labelled_scene(split: Namespace, number: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """An image, uint8 [height width 3], and the class of each pixel, uint8 [height width]; 255 for none."""
    rng = generator(split, number)
    count = int(rng.integers(1, _MOST + 1))
    # The first figure walks through the classes.
    drawn = [number % len(CLASSES), *rng.integers(len(CLASSES), size=count - 1).tolist()]
    size = draw_size(rng, SIZES)
    figures = tuple(_figure(rng, size, CLASSES[kind][1], index, count) for index, kind in enumerate(drawn))
    backdrop = draw_backdrop(rng, size, figures[0].individual.materials[0].colour)
    clutter = _props(rng, size, int(rng.integers(1, 4)), (12, 40))
    occluders = _props(rng, size, int(rng.integers(0, 3)), (6, 18))
    rendering = render(rng, backdrop.pixels, figures, draw_light(rng, 0.7), clutter, occluders)
    return rendering.pixels, class_mask(rendering.figures, [CLASSES[kind][0] for kind in drawn])


def class_mask(figures: NDArray[np.int16], classes: Sequence[int]) -> NDArray[np.uint8]:
    """The class of each pixel; none (255) along the outlines of figures and where little of one is seen.

    ``figures`` [height width] are numbers of ``classes``, from 1; 0 for none.
    """
    mask = np.asarray([0, *classes], np.uint8)[figures]
    small = np.flatnonzero(np.bincount(figures.ravel(), minlength=len(classes) + 1) < _LEAST_AREA)
    mask[np.isin(figures, small[small > 0])] = VOID
    for side, other in ((np.s_[1:], np.s_[:-1]), (np.s_[:, 1:], np.s_[:, :-1])):
        outline = figures[side] != figures[other]
        mask[side][outline] = VOID
        mask[other][outline] = VOID
    return mask


def _figure(rng: Rng, size: Size, name: str, place: int, count: int) -> Figure:
    """A figure in its share of the image's longer side, so that figures overlap a little."""
    along = 0 if size[0] >= size[1] else 1
    room = [0.9 * side for side in size]
    room[along] = min(room[along], 1.25 * size[along] / count)
    extent = [side * float(rng.uniform(0.75, 1.0)) for side in room]
    figure = draw_figure(
        rng, draw_individual(rng, class_index(name)), (round(extent[0]), round(extent[1])), _VIEW
    )
    centre = [side * float(rng.uniform(0.42, 0.58)) for side in size]
    centre[along] = size[along] * (place + float(rng.uniform(0.4, 0.6))) / count
    return moved(figure, centre[0] - extent[0] / 2, centre[1] - extent[1] / 2)


def _props(rng: Rng, size: Size, count: int, extent: tuple[int, int]) -> tuple[Prop, ...]:
    places = [(float(rng.uniform(0, size[0])), float(rng.uniform(0, size[1]))) for _ in range(count)]
    return tuple(draw_prop(rng, centre, float(rng.uniform(*extent))) for centre in places)


# ids like VOC's, years and numbers
_TRAIN, _VAL = (
    [f"{year}_{3 * number + 32:06d}" for number in range(count)]
    for year, count in ((2007, SCENES_TRAIN), (2008, SCENES_VAL))
)


def _render(root: Path, unit: int) -> list[Note]:
    masks = root / _ROOT / "SegmentationClass"
    masks.mkdir(parents=True, exist_ok=True)
    for number in range(unit * _UNIT, (unit + 1) * _UNIT):
        name = (_TRAIN + _VAL)[number]
        space = Namespace.SCENES_TRAIN if number < SCENES_TRAIN else Namespace.SCENES_VAL
        pixels, classes = labelled_scene(space, number if number < SCENES_TRAIN else number - SCENES_TRAIN)
        save_jpeg(root / _ROOT / "JPEGImages" / f"{name}.jpg", pixels)
        write_mask(masks / f"{name}.png", classes)
    return []


def _finish(root: Path, notes: Sequence[Note]) -> None:
    for split, ids in (("train", _TRAIN), ("val", _VAL), ("trainval", sorted(_TRAIN + _VAL))):
        save_text(root / _ROOT / "ImageSets" / "Segmentation" / f"{split}.txt", ids)


WRITER = Writer("voc", (_UNIT,) * ((SCENES_TRAIN + SCENES_VAL) // _UNIT), _render, _finish)
