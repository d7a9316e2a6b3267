"""The object dataset, in COCO's layout, with COCO's names and ids of the categories."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from workshop.render.background import draw_backdrop, scatter
from workshop.render.facts import COCO_CROWDS, COCO_IMAGES
from workshop.render.individual import draw_individual
from workshop.render.lighting import draw_light
from workshop.render.scene import Figure, Rendering, moved, render
from workshop.render.seeds import Namespace, Rng, Size, generator
from workshop.render.still import Variation, draw_figure
from workshop.render.templates import class_index
from workshop.render.writers.base import (
    Note,
    Writer,
    annotation,
    coco_fields,
    draw_size,
    save_jpeg,
    save_json,
)

SIZES = ((128, 96), (96, 128), (128, 104), (120, 96))
_UNIT = 8  # images of a unit
_LEAST_AREA = 40  # objects with fewer visible pixels are not annotated
_CROWD_EVERY = COCO_IMAGES // COCO_CROWDS


# COCO's id, name and super-category of each, and the class that is drawn for it
CATEGORIES = (
    (2, "bicycle", "vehicle", "bicycle"),
    (3, "car", "vehicle", "car"),
    (5, "airplane", "vehicle", "plane"),
    (8, "truck", "vehicle", "truck"),
    (9, "boat", "vehicle", "boat"),
    (16, "bird", "animal", "songbird"),
    (18, "dog", "animal", "dog"),
    (19, "horse", "animal", "horse"),
    (22, "elephant", "animal", "elephant"),
    (25, "giraffe", "animal", "giraffe"),
    (47, "cup", "kitchen", "mug"),
    (62, "chair", "furniture", "chair"),
)
_VIEW = Variation((0.95, 1.0), 0.0, 1.0, 0.25, 1.0, 0.7)


def _draw_objects(rng: Rng, size: Size, categories: Sequence[int]) -> tuple[Figure, ...]:
    """Figures side by side in a jittered row or two, so that they overlap a little."""
    width, height = size
    figures = []
    columns = -(-len(categories) // 2)
    for index, cell in zip(categories, rng.permutation(2 * columns)[: len(categories)], strict=True):
        individual = draw_individual(rng, class_index(CATEGORIES[index][-1]))
        extent = (0.85 * width / columns * rng.uniform(0.8, 1.35), 0.5 * height * rng.uniform(0.8, 1.35))
        figure = draw_figure(rng, individual, (round(extent[0]), round(extent[1])), _VIEW)
        column, row = int(cell) // 2, int(cell) % 2
        x = (column + 0.5 + rng.uniform(-0.15, 0.15)) * width / columns - extent[0] / 2
        y = (0.27 + 0.46 * row + rng.uniform(-0.06, 0.06)) * height - extent[1] / 2
        figures.append(moved(figure, float(x), float(y)))
    return tuple(figures)


def object_scene(number: int) -> tuple[Rendering, list[int], bool]:
    """The picture of several objects that has that number, and the index in `CATEGORIES` of each figure.

    And whether the last two figures, of one category, are annotated as a crowd.
    """
    rng = generator(Namespace.OBJECTS, number)
    crowd = number % _CROWD_EVERY == _CROWD_EVERY - 1
    # The first category walks through all of them, so that each is there.
    more = rng.integers(len(CATEGORIES), size=int(rng.integers(1, 5)))
    categories = [number % len(CATEGORIES), *more.tolist()]
    if crowd:
        categories = [*categories[:3], categories[0], categories[0]]
    size = draw_size(rng, SIZES)
    figures = _draw_objects(rng, size, categories)
    backdrop = draw_backdrop(rng, size, figures[0].individual.materials[0].colour)
    clutter = scatter(rng, size, int(rng.integers(1, 5)), (12, 40))
    return render(rng, backdrop.pixels, figures, draw_light(rng, 0.7), clutter), categories, crowd


def _annotations(rendering: Rendering, categories: Sequence[int], crowd: bool) -> list[Note]:
    members = [[number] for number, _ in enumerate(categories, 1)]
    if crowd:
        members[-2:] = [[number for (number,) in members[-2:]]]
    notes = []
    for numbers in members:
        mask = np.isin(rendering.figures, numbers)
        if np.count_nonzero(mask) >= _LEAST_AREA:
            notes.append(annotation(mask, CATEGORIES[categories[numbers[0] - 1]][0], crowd=len(numbers) > 1))
    return notes


def _render(root: Path, unit: int) -> list[Note]:
    notes: list[Note] = []
    for number in range(unit * _UNIT, (unit + 1) * _UNIT):
        rendering, categories, crowd = object_scene(number)
        height, width = rendering.figures.shape
        image_id = 139 + 857 * number  # with gaps, as COCO's are
        name = f"{image_id:012d}.jpg"
        save_jpeg(root / "coco" / "images" / "val2017" / name, rendering.pixels)
        image = {"license": 1, "file_name": name, "height": height, "width": width, "id": image_id}
        notes.append({"image": image, "annotations": _annotations(rendering, categories, crowd)})
    return notes


def _finish(root: Path, notes: Sequence[Note]) -> None:
    content: Note = {
        "info": {"description": "layerboard mini: rendered objects", "version": "1.0", "year": 2026},
        "licenses": [{"url": "https://www.apache.org/licenses/LICENSE-2.0", "id": 1, "name": "Apache-2.0"}],
        **coco_fields(notes, first=900_001, step=7),
        "categories": [
            {"supercategory": group, "id": number, "name": name} for number, name, group, _ in CATEGORIES
        ],
    }
    save_json(root / "coco" / "annotations" / "instances_val2017.json", content)


WRITER = Writer("coco", (_UNIT,) * (COCO_IMAGES // _UNIT), _render, _finish)
