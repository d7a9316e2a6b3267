"""Accuracy by class, the lowest first, and the classes that each class is confused with."""

from typing import NamedTuple

import numpy as np
from markupsafe import Markup
from scipy.special import betaincinv

from layerboard.leaderboards.blocks.blocks import Cell
from layerboard.leaderboards.report.gallery.drawing import SharedPictures
from layerboard.leaderboards.report.gallery.examples import ExampleSets
from layerboard.leaderboards.sections.tables import mark_of
from layerboard.tasks.metrics.arrays import Floats
from layerboard.zoo.errors import counted

MOST = 30  # classes that are shown
TAIL = 0.025  # of an interval of 95 %
NAMED = 3  # maximum number of confused classes named beside one


class ClassAccuracy(NamedTuple):
    """Accuracy of backbones by class, each at its best layer; classes are indices into all names."""

    backbones: list[str]
    shares: Floats  # images that are assigned to their own class, percent: [backbones classes]
    lowest: list[int]  # classes with images, in ascending order of the first backbone's accuracy
    images: list[int]  # number of each class's images
    mistaken: list[tuple[int, int, int]]  # class, the one that the first backbone predicts instead, images
    names: list[str]


def class_accuracy(every: ExampleSets) -> ClassAccuracy | None:
    """Accuracy by class of backbones that were tested on the same classes as the first one.

    None if no classes were saved. The most frequent confusions come first.
    """
    best, key = every[0], "class_images"
    if key not in best.arrays:
        return None
    folders, images = best.arrays["classes"], best.at_best(key)
    alike = [each for each in every if np.array_equal(each.arrays.get("classes", ()), folders)]
    shares = np.stack(
        [100 * each.at_best("class_right") / np.maximum(each.at_best(key), 1) for each in alike]
    )
    return ClassAccuracy(
        [each.backbone for each in alike],
        shares,
        [row for row in np.argsort(shares[0], kind="stable").tolist() if images[row]],
        images.tolist(),
        [(true, given, count) for true, given, count in best.at_best("mistaken").tolist() if count],
        [best.called(folder) for folder in folders],
    )


def class_table(every: ExampleSets, pictures: SharedPictures) -> dict[str, object]:
    """Title, heads and rows of the classes with the lowest accuracy of the first backbone, with the others.

    Its most frequent confusions are given with a picture each. Empty if no classes were saved.
    """
    if (kept := class_accuracy(every)) is None:
        return {}
    taken: dict[int, list[str]] = {}
    for true, given, count in kept.mistaken:
        taken.setdefault(true, []).append(f"{kept.names[given]} ({count})")
    rows: list[tuple[str | Cell, ...]] = []
    for row in kept.lowest[:MOST]:
        shares, count = kept.shares[:, row], kept.images[row]
        hits = shares / 100 * count
        low, high = betaincinv(hits, count - hits + 1, TAIL), betaincinv(hits + 1, count - hits, 1 - TAIL)
        ends = 100 * np.where(hits > 0, low, 0), 100 * np.where(hits < count, high, 1)
        cells = [
            Cell(f"{share:.0f} ({least:.0f} to {most:.0f})", mark_of(best=share == shares.max(), maybe=False))
            for share, least, most in zip(shares, *ends, strict=True)
        ]
        named = ", ".join(taken.get(row, [])[:NAMED])
        rows.append((kept.names[row], str(kept.images[row]), *cells, named))
    which = f", the {MOST} lowest" if len(kept.lowest) > MOST else ""
    heads = ("class", "images", *kept.backbones, f"{every[0].backbone} takes it for (images)")
    title = f"Accuracy by class, percent{which}"
    mistakes: list[tuple[Markup, str]] = []  # an image of each of the most frequent confusions
    for name, (true, given, count) in zip(every[0].at_best("mistaken_image"), kept.mistaken, strict=False):
        text = f"{kept.names[true]} taken for {kept.names[given]}: {counted(count, 'images')}"
        mistakes.append((pictures.shown(every[0], name, f"{text}, {name}"), text))
    return {"title": title, "heads": heads, "rows": rows, "mistakes": mistakes}
