"""The dataset of things, in the layout of Stanford Online Products: each thing from several sides.

Things of one class that follow each other have the same materials, so that colours alone do not tell them.
"""

from collections.abc import Sequence
from pathlib import Path

from workshop.render.facts import THING_IMAGES_EACH, THINGS
from workshop.render.individual import Individual, draw_individual
from workshop.render.seeds import Namespace, generator
from workshop.render.still import Still, Variation, draw_still
from workshop.render.templates import class_index
from workshop.render.writers.base import Note, Writer, save_jpeg, save_text

SIZE = (96, 96)
CLASSES = ("chair", "lamp", "mug", "bicycle")
_VARIATION = Variation((0.7, 0.95), 0.5, 0.3, 0.1, 0.3, 0.3, (0, 2), (0, 1), 0.85)


def _name(thing: int) -> str:
    return CLASSES[thing // 2 % len(CLASSES)]


def _individual(thing: int) -> Individual:
    """Whom the pictures of a thing show; every second one is in the materials of the one before."""
    materials = _individual(thing - 1).materials if thing % 2 else None
    return draw_individual(generator(Namespace.THINGS, thing), class_index(_name(thing)), materials)


def thing_still(thing: int, number: int) -> Still:
    """A picture of a thing."""
    return draw_still(generator(Namespace.THINGS, thing, number + 1), _individual(thing), SIZE, _VARIATION)


def _path(thing: int, number: int) -> str:
    return f"{_name(thing)}_final/{thing:03d}_{number}.JPG"


def _render(root: Path, unit: int) -> list[Note]:
    for number in range(THING_IMAGES_EACH):
        save_jpeg(root / "things" / _path(unit, number), thing_still(unit, number).rendering.pixels)
    return []


def _finish(root: Path, notes: Sequence[Note]) -> None:
    images = [(thing, number) for thing in range(THINGS) for number in range(THING_IMAGES_EACH)]
    lines = [
        f"{row} {thing + 1} {CLASSES.index(_name(thing)) + 1} {_path(thing, number)}"
        for row, (thing, number) in enumerate(images, 1)
    ]
    save_text(root / "things" / "Ebay_test.txt", ["image_id class_id super_class_id path", *lines])


WRITER = Writer("things", (THING_IMAGES_EACH,) * THINGS, _render, _finish)
