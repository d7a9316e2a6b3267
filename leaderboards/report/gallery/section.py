"""Failures and successes: a section with examples of what changes over depth, and tables of failures."""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from markupsafe import Markup
from scipy.special import betaincinv

from layerboard.leaderboards.blocks.blocks import Cell
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.column import Column
from layerboard.leaderboards.board.differences import best_side
from layerboard.leaderboards.report.gallery import nearest
from layerboard.leaderboards.report.gallery.drawing import (
    GOOD,
    Drawing,
    SharedPictures,
    draw_examples,
    found_again,
    missed,
)
from layerboard.leaderboards.report.gallery.examples import ExampleSet, ExampleSets, read_examples
from layerboard.leaderboards.report.gallery.places import DEFECTS, LABELS, MASKS, POINTS
from layerboard.leaderboards.report.templates.environment import PageSection, filled
from layerboard.leaderboards.sections.tables import mark_of
from layerboard.tasks.metrics.arrays import Floats
from layerboard.zoo.errors import counted

# drawing of the examples of each task; clusterings show images by cluster
DRAWINGS: Mapping[str, Drawing] = {
    "knn": nearest.KNN,
    **dict.fromkeys(("fewshot", "linear"), nearest.PROBES),
    "retrieval": nearest.RETRIEVAL,
    "instances": nearest.INSTANCES,
    "davis": MASKS,
    "spair": POINTS,
    "segment": LABELS,
    "anomaly": DEFECTS,
    "regress": nearest.PREDICTIONS,
    "multilabel": nearest.PREDICTIONS,
}
CLUSTERS = "cluster-image"
_FACTS = ("class", "source", "target")  # arrays that describe an example better than its name
BACKBONES = 8  # backbones of a column whose examples are read, the best first
MOST = 30  # classes that are shown
TAIL = 0.025  # of an interval of 95 %
NAMED = 3  # maximum number of confused classes named beside one


def example_sections(board: Board, output: Path) -> list[PageSection]:
    """The section of failures and successes in an output folder; none if no examples were saved."""
    pictures, tasks = SharedPictures(), []
    for column in board.columns:
        if every := column_examples(column, output) if column.task in {*DRAWINGS, CLUSTERS} else []:
            drawing = DRAWINGS.get(column.task)
            draw = partial(draw_examples, drawing) if drawing else nearest.clusters
            intro, examples = draw(every, pictures)
            task = {"heading": column.heading, "best": every[0], "intro": intro, "examples": examples}
            tasks.append(task | {"classes": class_table(every, pictures)})
    title = "Failures and successes"
    html = filled("gallery", pictures=pictures.addresses, tasks=tasks)
    return [PageSection("examples", title.lower(), title, html)] if tasks else []


def column_examples(column: Column, output: Path) -> list[ExampleSet]:
    """The saved examples of backbones of a column, the best first."""
    rows = column.best.sort_values(["value", "backbone"], ascending=[False, True])
    every = (read_examples(output, column, best_side(rows, name)) for name in rows["backbone"])
    return list(islice((examples for examples in every if examples is not None), BACKBONES))


def failure_frames(board: Board, output: Path) -> Iterator[tuple[str, pd.DataFrame]]:
    """For each task a title and all rows of its best backbone's failures, the worst first.

    Classes with their accuracy in percent, their confusions, and what another backbone gets right; only for
    tasks with saved examples in the output folder.
    """
    for column in board.columns:
        if every := column_examples(column, output) if column.task in DRAWINGS else []:
            best = every[0]
            who = f"{column.heading}, {best.backbone} layer {best.layer} {best.pooling}"
            yield from ((f"{who}: {title}", frame) for title, frame in _classes(every))
            rows = _missed(DRAWINGS[column.task], every)
            if len(rows):
                yield f"{who}: missed, and another backbone does well", rows


def _classes(every: ExampleSets) -> Iterator[tuple[str, pd.DataFrame]]:
    if kept := class_accuracy(every):
        rows = [(kept.names[row], kept.images[row], kept.shares[0, row]) for row in kept.lowest]
        yield "accuracy by class, percent", pd.DataFrame(rows, columns=["class", "images", "accuracy"])
        pairs = [(kept.names[true], kept.names[given], count) for true, given, count in kept.mistaken]
        if pairs:
            yield "commonest confusions", pd.DataFrame(pairs, columns=["class", "taken for", "images"])


def _missed(drawing: Drawing, every: ExampleSets) -> pd.DataFrame:
    """One row per example that the first backbone misses, with others that do well; at best layers."""
    best, gains, rows = every[0], missed(drawing, every), []
    facts = [name for name in _FACTS if name in best.arrays]
    for number in np.argsort(-gains, kind="stable")[: np.isfinite(gains).sum()].tolist():
        name = best.arrays[drawing.key][number]
        good = [
            f"{other.backbone}: {drawing.answer(other, index)[0]}"
            for other, index in found_again(drawing, every[1:], name)
            if drawing.quality(other)[other.best, index] >= GOOD
        ]
        values = [best.called(best.arrays[fact][number]) for fact in facts]
        rows.append((str(name), *values, drawing.answer(best, number)[0], "; ".join(good)))
    return pd.DataFrame(rows, columns=[drawing.key, *facts, "answer", "others"])


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
    counts = ((each.at_best("class_right"), each.at_best(key)) for each in alike)
    shares = np.stack([100 * right / np.maximum(every_image, 1) for right, every_image in counts])
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
