"""The dataset of numbers and of several labels an image: a few figures anywhere, and tables beside them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from workshop.render.background import draw_backdrop
from workshop.render.facts import TARGET_IMAGES
from workshop.render.individual import draw_individual
from workshop.render.lighting import draw_light
from workshop.render.scene import render
from workshop.render.seeds import Namespace, generator
from workshop.render.still import Variation, draw_figure
from workshop.render.templates import class_index
from workshop.render.writers.base import Note, Writer, save_jpeg, save_text

SIZE = (96, 96)
NAMES = ("beetle", "boat", "car", "chair", "dog", "mug")
NUMBERS = ("x", "y", "area")  # centre of the figures' pixels, 0 to 1, and the percent of all that are theirs
_MOST = 3  # figures of an image, each of another kind
_LEAST_PIXELS = 60  # figures with fewer visible pixels are not listed
_UNIT = 32  # images of a unit
_VIEW = Variation((0.3, 0.6), 1.0, 0.5, 0.2, 0.8, 0.6)


def _picture(root: Path, number: int) -> Note:
    """Write a picture, and say what is in it."""
    rng = generator(Namespace.TARGETS, number)
    names = [NAMES[index] for index in rng.permutation(len(NAMES))[: rng.integers(1, _MOST + 1)]]
    figures = tuple(draw_figure(rng, draw_individual(rng, class_index(name)), SIZE, _VIEW) for name in names)
    backdrop = draw_backdrop(rng, SIZE, figures[0].individual.materials[0].colour)
    rendering = render(rng, backdrop.pixels, figures, draw_light(rng, 0.6))
    seen = np.bincount(rendering.figures.ravel(), minlength=len(names) + 1)[1:]
    covered = rendering.figures > 0
    rows, columns = np.nonzero(covered)
    file = f"{number:03d}.jpg"
    save_jpeg(root / "targets" / "images" / file, rendering.pixels)
    numbers = (columns.mean() / SIZE[0], rows.mean() / SIZE[1], 100 * covered.mean())
    labels = sorted(name for name, pixels in zip(names, seen, strict=True) if pixels >= _LEAST_PIXELS)
    return {"file": file, "numbers": [f"{number:.4f}" for number in numbers], "labels": "|".join(labels)}


def _render(root: Path, unit: int) -> list[Note]:
    return [_picture(root, number) for number in range(unit * _UNIT, (unit + 1) * _UNIT)]


def _finish(root: Path, notes: Sequence[Note]) -> None:
    numbers = [",".join((note["file"], *note["numbers"])) for note in notes]
    save_text(root / "targets" / "numbers.csv", [",".join(("file", *NUMBERS)), *numbers])
    save_text(
        root / "targets" / "labels.csv", ["file,labels", *(f"{n['file']},{n['labels']}" for n in notes)]
    )


WRITER = Writer("targets", (_UNIT,) * (TARGET_IMAGES // _UNIT), _render, _finish)
