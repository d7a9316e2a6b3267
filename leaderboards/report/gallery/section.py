"""The section of failures and successes: examples of each task that show what changes over depth."""

from collections.abc import Mapping
from itertools import islice
from pathlib import Path

from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.column import Column
from layerboard.leaderboards.report.gallery.classes import class_table
from layerboard.leaderboards.report.gallery.drawing import Drawing, SharedPictures, draw_examples
from layerboard.leaderboards.report.gallery.examples import ExampleSet, read_examples
from layerboard.leaderboards.report.gallery.nearest import INSTANCES, KNN, PROBES, RETRIEVAL, clusters
from layerboard.leaderboards.report.gallery.places import DEFECTS, LABELS, MASKS, POINTS
from layerboard.leaderboards.report.gallery.predictions import PREDICTIONS
from layerboard.leaderboards.report.templates.environment import PageSection, filled

# drawing of the examples of each task; clusterings show images by cluster
DRAWINGS: Mapping[str, Drawing] = {
    "knn": KNN,
    **dict.fromkeys(("fewshot", "linear"), PROBES),
    "retrieval": RETRIEVAL,
    "instances": INSTANCES,
    "davis": MASKS,
    "spair": POINTS,
    "segment": LABELS,
    "anomaly": DEFECTS,
    "regress": PREDICTIONS,
    "multilabel": PREDICTIONS,
}
CLUSTERS = "cluster-image"
BACKBONES = 8  # backbones of a column whose examples are read, the best first


def example_sections(board: Board, output: Path) -> list[PageSection]:
    """The section of failures and successes in an output folder; none if no examples were saved."""
    pictures, tasks = SharedPictures(), []
    for column in board.columns:
        if every := column_examples(column, output) if column.task in {*DRAWINGS, CLUSTERS} else []:
            drawing = DRAWINGS.get(column.task)
            intro, examples = (
                draw_examples(drawing, every, pictures) if drawing else clusters(every, pictures)
            )
            task = {"heading": column.heading, "best": every[0], "intro": intro, "examples": examples}
            tasks.append(task | {"classes": class_table(every, pictures)})
    title = "Failures and successes"
    html = filled("gallery", pictures=pictures.addresses, tasks=tasks)
    return [PageSection("examples", title.lower(), title, html)] if tasks else []


def column_examples(column: Column, output: Path) -> list[ExampleSet]:
    """The saved examples of backbones of a column, the best first."""
    rows = column.best.sort_values(["value", "backbone"], ascending=[False, True])
    places = rows[["backbone", "layer", "value"]].itertuples(index=False, name=None)
    every = (read_examples(output, column, *choice) for choice in places)
    return list(islice((examples for examples in every if examples is not None), BACKBONES))
