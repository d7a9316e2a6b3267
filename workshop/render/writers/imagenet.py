"""The classification dataset: class folders of JPEG files."""

from collections.abc import Sequence
from pathlib import Path

from workshop.render.facts import CLASSES, TRAIN_PER_CLASS, VAL_PER_CLASS
from workshop.render.individual import draw_individual
from workshop.render.seeds import Namespace, generator
from workshop.render.still import Still, Variation, draw_still
from workshop.render.templates import TEMPLATES
from workshop.render.writers.base import Note, Writer, draw_size, save_jpeg

SIZES = ((96, 96), (112, 96), (96, 112), (88, 104), (104, 88), (128, 88), (88, 128), (88, 96))


def imagenet_still(namespace: Namespace, class_index: int, number: int) -> Still:
    """The picture of that number of a class; every picture shows another individual."""
    rng = generator(namespace, class_index, number)
    return draw_still(rng, draw_individual(rng, class_index), draw_size(rng, SIZES), Variation())


def _render(root: Path, unit: int) -> list[Note]:
    class_index, validation = divmod(unit, 2)
    wnid = TEMPLATES[class_index].wnid
    split, namespace = (("train", Namespace.IMAGENET_TRAIN), ("val", Namespace.IMAGENET_VAL))[validation]
    for number in range(WRITER.images[unit]):
        serial = class_index * VAL_PER_CLASS + number + 1
        name = f"ILSVRC2012_val_{serial:08d}" if validation else f"{wnid}_{number + 1}"
        pixels = imagenet_still(namespace, class_index, number).rendering.pixels
        save_jpeg(root / "imagenet" / split / wnid / f"{name}.JPEG", pixels)
    return []


def _finish(root: Path, notes: Sequence[Note]) -> None:
    """The folders say everything."""


WRITER = Writer("imagenet", (TRAIN_PER_CLASS, VAL_PER_CLASS) * CLASSES, _render, _finish)
