"""Which classes are told apart: accuracy by class, the lowest first, and what each class is taken for."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from layerboard.leaderboards.report.gallery.examples import ExampleSet
from layerboard.leaderboards.sections.tables import mark_of
from layerboard.tasks.blocks import Cell

MOST = 30  # classes that are shown
NAMED = 3  # classes that are named beside one that is taken for them


class ClassTable(NamedTuple):
    """A table of classes, each backbone at its best layer."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str | Cell, ...], ...]


def class_table(every: Sequence[ExampleSet]) -> ClassTable | None:
    """The classes that the first backbone tells worst, with the others beside; None where none were kept."""
    best, key = every[0], "class_images"
    if key not in best.arrays:
        return None
    names, images = best.arrays["classes"], best.at_best(key)
    alike = [each for each in every if np.array_equal(each.arrays.get("classes", ()), names)]
    shares = np.stack(
        [100 * each.at_best("class_right") / np.maximum(each.at_best(key), 1) for each in alike]
    )
    taken: dict[int, list[str]] = {}
    for true, given, count in best.at_best("mistaken").tolist():
        if count:
            taken.setdefault(true, []).append(f"{best.called(names[given])} ({count})")
    lowest = [place for place in np.argsort(shares[0], kind="stable").tolist() if images[place]][:MOST]
    rows: list[tuple[str | Cell, ...]] = []
    for place in lowest:
        marks = [mark_of(best=share == shares[:, place].max(), tied=False) for share in shares[:, place]]
        cells = [Cell(f"{share:.0f}", mark) for share, mark in zip(shares[:, place], marks, strict=True)]
        named = ", ".join(taken.get(place, [])[:NAMED])
        rows.append((best.called(names[place]), str(images[place]), *cells, named))
    which = "" if len(lowest) == np.count_nonzero(images) else f", the {len(lowest)} lowest"
    heads = ("class", "images", *(each.backbone for each in alike), f"{best.backbone} takes it for (images)")
    return ClassTable(f"Accuracy by class, percent{which}", heads, tuple(rows))
