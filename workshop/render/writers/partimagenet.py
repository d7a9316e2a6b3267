"""The part dataset, in PartImageNet's layout, with its names of super-categories and parts."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from workshop.render.individual import draw_individual
from workshop.render.seeds import Namespace, generator
from workshop.render.still import Still, Variation, draw_still
from workshop.render.templates import TEMPLATES, class_index
from workshop.render.writers.base import (
    Note,
    Writer,
    annotation,
    coco_fields,
    draw_size,
    save_jpeg,
    save_json,
)

SIZES = ((112, 112), (128, 96), (96, 128), (120, 104))
_VIEW = Variation((0.75, 0.98), 0.9, 0.7, 0.2, 0.9, 0.6, (0, 4), (0, 1), 0.8)
_UNIT = 8
_LEAST_AREA = 16  # parts with fewer visible pixels are not annotated

# super-category, classes, and images a class
_PLAN = (
    ("Quadruped", ("horse", "dog", "elephant", "giraffe"), 3),
    ("Bird", ("songbird", "heron"), 5),
    ("Fish", ("fish", "shark"), 5),
    ("Snake", ("snake",), 8),
    ("Car", ("car", "truck"), 4),
)

_PARTS: dict[str, dict[str, tuple[str, ...]]] = {
    "Quadruped": {
        "Head": ("head", "ear", "eye", "trunk", "tusk", "horn"),
        "Body": ("body", "neck", "hair"),
        "Foot": ("leg",),
        "Tail": ("tail",),
    },
    "Bird": {
        "Head": ("head", "eye", "beak"),
        "Body": ("body", "neck"),
        "Wing": ("wing",),
        "Foot": ("leg", "foot"),
        "Tail": ("tail",),
    },
    "Fish": {"Head": ("head", "eye"), "Body": ("body", "gill"), "Fin": ("fin",), "Tail": ("tail",)},
    "Snake": {"Head": ("head", "eye", "tongue"), "Body": ("body",)},
    # "Tier" is how the official file spells it.
    "Car": {"Body": ("body", "cabin", "cargo", "window", "lamp"), "Tier": ("wheel", "hub")},
}
# super-category and part of each category id, from 0
CATEGORIES = tuple((group, part) for group, parts in _PARTS.items() for part in parts)
# super-category, class name, number in the class and split of each image
_ITEMS = tuple(
    (group, name, number, ("train", "train", "test", "train", "val")[number % 5])
    for group, names, count in _PLAN
    for name in names
    for number in range(count)
)


def part_still(position: int) -> Still:
    """The picture of that position, from 0; every picture shows another individual."""
    _, name, number, _ = _ITEMS[position]
    rng = generator(Namespace.PARTS, class_index(name), number)
    return draw_still(rng, draw_individual(rng, class_index(name)), draw_size(rng, SIZES), _VIEW)


def _annotations(group: str, still: Still) -> list[Note]:
    """One annotation for each part category that is seen, legs and wheels together."""
    template = still.figure.individual.template
    notes: list[Note] = []
    for part, kinds in _PARTS[group].items():
        numbers = [i for i, member in enumerate(template.parts, 1) if member.kind in kinds]
        mask = np.isin(still.rendering.parts, numbers) & still.rendering.mask
        if np.count_nonzero(mask) >= _LEAST_AREA:
            notes.append(annotation(mask, CATEGORIES.index((group, part))))
    return notes


def _render(root: Path, unit: int) -> list[Note]:
    notes: list[Note] = []
    for position in range(unit * _UNIT, (unit + 1) * _UNIT):
        group, name, number, split = _ITEMS[position]
        still = part_still(position)
        wnid = TEMPLATES[class_index(name)].wnid
        file = f"{wnid}_{number + 1}.JPEG"
        save_jpeg(root / "PartImageNet" / split / wnid / file, still.rendering.pixels)
        height, width = still.rendering.figures.shape
        image = {"file_name": file, "height": height, "width": width, "id": position}
        notes.append({"split": split, "image": image, "annotations": _annotations(group, still)})
    return notes


def _finish(root: Path, notes: Sequence[Note]) -> None:
    categories = [
        {"id": i, "name": f"{group} {part}", "supercategory": group}
        for i, (group, part) in enumerate(CATEGORIES)
    ]
    for split in ("train", "val", "test"):
        content = coco_fields((note for note in notes if note["split"] == split), first=0, step=1)
        save_json(root / "PartImageNet" / f"{split}.json", content | {"categories": categories})


WRITER = Writer("partimagenet", (_UNIT,) * (len(_ITEMS) // _UNIT), _render, _finish)
