"""The retrieval dataset, in revisited Oxford's layout.

Each identity has two queries and easy, hard and junk views; every query has the views of its identity as
positives. Distractors are other individuals of the same classes, and half of them wear the very materials of
one of the identities, so that colours alone do not find it.
"""

import pickle
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from workshop.render import facts
from workshop.render.individual import Individual, draw_individual
from workshop.render.seeds import Namespace, generator
from workshop.render.still import Still, Variation, draw_still
from workshop.render.templates import class_index
from workshop.render.writers.base import Note, Writer, draw_size, mask_box, save_jpeg, write_file

CLASSES = ("house", "windmill", "tree", "boat", "car", "elephant")
SIZES = ((112, 112), (120, 96), (96, 120), (112, 96))
_EASY = Variation((0.6, 0.95), 0.8, 0.5, 0.12, 0.5, 0.35, (0, 3), (0, 1), 0.85)
_HARD = Variation((0.45, 0.85), 1.1, 0.8, 0.25, 1.0, 0.9, (1, 6), (0, 2), 0.55)
_TINY = Variation((0.16, 0.24), 1.0, 1.0, 0.3, 1.0, 0.8, (3, 8), (0, 1), 0.6)
_HIDDEN = Variation((0.5, 0.8), 1.0, 1.0, 0.3, 1.0, 0.8, (2, 6), (3, 4), 0.12, 0.4)
_PICKLE_PROTOCOL = 3  # that of the official file


class Shot(NamedTuple):
    """One picture: its unit (an identity, or a class's distractors), role and number in the unit."""

    unit: int
    role: str
    number: int
    name: str


_ROLES = (
    ("query",) * facts.QUERIES_PER_IDENTITY
    + ("easy",) * facts.EASY_PER_IDENTITY
    + ("hard",) * facts.HARD_PER_IDENTITY
    + ("junk",) * facts.JUNK_PER_IDENTITY
)
_DISTRACTORS = facts.DISTRACTORS // len(CLASSES)


@cache
def shots() -> tuple[Shot, ...]:
    """All pictures; the numbers in their names are shuffled, so that name order tells no roles."""
    roles = [_ROLES] * facts.IDENTITIES + [("distractor",) * _DISTRACTORS] * len(CLASSES)
    slots = [(unit, role, i) for unit, of_unit in enumerate(roles) for i, role in enumerate(of_unit)]
    order = generator(Namespace.RETRIEVAL_NAMES).permutation(len(slots))
    return tuple(
        Shot(unit, role, number, f"{CLASSES[unit % len(CLASSES)]}_{int(serial):06d}")
        for (unit, role, number), serial in zip(slots, order, strict=True)
    )


def _individual(unit: int, number: int) -> Individual:
    """Whom a picture shows: the unit's own individual, or for a distractor another one."""
    index = class_index(CLASSES[unit % len(CLASSES)])
    if unit < facts.IDENTITIES:
        return draw_individual(generator(Namespace.RETRIEVAL_IDENTITIES, unit), index)
    rng = generator(Namespace.RETRIEVAL_IDENTITIES, unit, number)
    if number % 2:
        return draw_individual(rng, index)
    twin = unit - facts.IDENTITIES + len(CLASSES) * (number // 2 % (facts.IDENTITIES // len(CLASSES)))
    return draw_individual(rng, index, _individual(twin, 0).materials)


def retrieval_still(shot: Shot) -> Still:
    """The picture of a shot."""
    rng = generator(Namespace.RETRIEVAL_VIEWS, shot.unit, shot.number)
    if shot.role == "junk":
        variation = _HIDDEN if shot.number % 2 else _TINY
    else:
        is_hard = shot.number // 2 % 2 if shot.role == "distractor" else shot.role == "hard"
        variation = _HARD if is_hard else _EASY
    return draw_still(rng, _individual(shot.unit, shot.number), draw_size(rng, SIZES), variation)


def _query_box(still: Still) -> list[float]:
    """The figure's box with a small margin, within the picture."""
    mask = still.rendering.mask
    left, top, right, bottom = mask_box(mask)
    height, width = mask.shape
    margin = 0.04 * max(right - left, bottom - top)
    least = max(0, left - margin), max(0, top - margin)
    most = min(width, right + margin), min(height, bottom + margin)
    return [round(float(value), 1) for value in (*least, *most)]


def _render(root: Path, unit: int) -> list[Note]:
    notes: list[Note] = []
    for shot in shots():
        if shot.unit == unit:
            still = retrieval_still(shot)
            save_jpeg(root / "roxford5k" / "jpg" / f"{shot.name}.jpg", still.rendering.pixels)
            if shot.role == "query":
                notes.append({"name": shot.name, "unit": unit, "box": _query_box(still)})
    return notes


def _finish(root: Path, notes: Sequence[Note]) -> None:
    database = sorted((shot for shot in shots() if shot.role != "query"), key=lambda shot: shot.name)
    queries = sorted(notes, key=lambda note: str(note["name"]))

    def truth(query: Note) -> dict[str, object]:
        shots = [(index, shot.role) for index, shot in enumerate(database) if shot.unit == query["unit"]]
        roles = ("easy", "hard", "junk")
        return {"bbx": query["box"], **{name: [i for i, role in shots if role == name] for name in roles}}

    content = {
        "gnd": [truth(query) for query in queries],
        "imlist": [shot.name for shot in database],
        "qimlist": [query["name"] for query in queries],
    }
    write_file(root / "roxford5k" / "gnd_roxford5k.pkl", pickle.dumps(content, protocol=_PICKLE_PROTOCOL))


WRITER = Writer("roxford5k", tuple(np.bincount([shot.unit for shot in shots()]).tolist()), _render, _finish)
