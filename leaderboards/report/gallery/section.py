"""Failures and successes: a section with examples of what changes over depth, and tables of failures."""

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd

from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.column import Column
from layerboard.leaderboards.board.differences import best_side
from layerboard.leaderboards.report.gallery import nearest
from layerboard.leaderboards.report.gallery.classes import class_accuracy, class_table
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


def example_sections(board: Board, output: Path) -> list[PageSection]:
    """The section of failures and successes in an output folder; none if no examples were saved."""
    pictures, tasks = SharedPictures(), []
    for column in board.columns:
        if every := column_examples(column, output) if column.task in {*DRAWINGS, CLUSTERS} else []:
            drawing = DRAWINGS.get(column.task)
            intro, examples = (
                draw_examples(drawing, every, pictures) if drawing else nearest.clusters(every, pictures)
            )
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
