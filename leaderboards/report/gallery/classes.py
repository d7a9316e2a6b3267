"""Which classes are told apart: accuracy by class, the lowest first, and what each class is taken for."""

from collections.abc import Sequence

import numpy as np

from layerboard.leaderboards.report.gallery.examples import ExampleSet
from layerboard.leaderboards.sections.tables import mark_of
from layerboard.tasks.blocks import Cell

MOST = 30  # classes that are shown
NAMED = 3  # classes that are named beside one that is taken for them


def class_table(every: Sequence[ExampleSet]) -> dict[str, object]:
    """Title, heads and rows of the classes that the first backbone tells worst, the other backbones beside.

    Each backbone is at its best layer; nothing where no classes were kept.
    """
    best, key = every[0], "class_images"
    if key not in best.arrays:
        return {}
    names, images = best.arrays["classes"], best.at_best(key)
    alike = [each for each in every if np.array_equal(each.arrays.get("classes", ()), names)]
    shares = np.stack(
        [100 * each.at_best("class_right") / np.maximum(each.at_best(key), 1) for each in alike]
    )
    taken: dict[int, list[str]] = {}
    for true, given, count in best.at_best("mistaken").tolist():
        if count:
            taken.setdefault(true, []).append(f"{best.called(names[given])} ({count})")
    lowest = [row for row in np.argsort(shares[0], kind="stable").tolist() if images[row]][:MOST]
    rows: list[tuple[str | Cell, ...]] = []
    for row in lowest:
        marks = [mark_of(best=share == shares[:, row].max(), tied=False) for share in shares[:, row]]
        cells = [Cell(f"{share:.0f}", mark) for share, mark in zip(shares[:, row], marks, strict=True)]
        named = ", ".join(taken.get(row, [])[:NAMED])
        rows.append((best.called(names[row]), str(images[row]), *cells, named))
    which = "" if len(lowest) == np.count_nonzero(images) else f", the {len(lowest)} lowest"
    heads = ("class", "images", *(each.backbone for each in alike), f"{best.backbone} takes it for (images)")
    return {"title": f"Accuracy by class, percent{which}", "heads": heads, "rows": rows}
