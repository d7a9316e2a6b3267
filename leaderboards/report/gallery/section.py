"""The section of failures and successes: for each task the examples that show what changes over depth."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

from layerboard.leaderboards.board import Board
from layerboard.leaderboards.report.gallery.classes import class_table
from layerboard.leaderboards.report.gallery.drawing import Example, SharedPictures, drawn
from layerboard.leaderboards.report.gallery.examples import ExampleSet, read_examples
from layerboard.leaderboards.report.gallery.nearest import KNN, RETRIEVAL, clusters
from layerboard.leaderboards.report.gallery.places import DEFECTS, LABELS, MASKS, POINTS
from layerboard.leaderboards.report.html import PageSection, filled
from layerboard.leaderboards.scores.column import Column

# by name of the task, what draws the examples of some backbones, the best first, below a paragraph
DRAWINGS: Mapping[str, Callable[[Sequence[ExampleSet], SharedPictures], tuple[str, list[Example]]]] = {
    "knn": partial(drawn, KNN),
    "retrieval": partial(drawn, RETRIEVAL),
    "davis": partial(drawn, MASKS),
    "spair": partial(drawn, POINTS),
    "segment": partial(drawn, LABELS),
    "anomaly": partial(drawn, DEFECTS),
    "cluster-image": clusters,
}
BACKBONES = 8  # backbones of a column whose examples are read, the best first


def example_sections(board: Board, output: Path) -> list[PageSection]:
    """The section of failures and successes in the records' output; none where the run kept no examples."""
    pictures, tasks = SharedPictures(), []
    for column in board.columns:
        if every := _examples(column, output) if column.task in DRAWINGS else []:
            intro, examples = DRAWINGS[column.task](every, pictures)
            task = {"heading": column.heading, "best": every[0], "intro": intro, "examples": examples}
            tasks.append(task | {"classes": class_table(every)})
    title = "Failures and successes"
    html = filled("gallery", pictures=pictures.addresses, tasks=tasks)
    return [PageSection("examples", title.lower(), title, html)] if tasks else []


def _examples(column: Column, output: Path) -> list[ExampleSet]:
    """What was kept of the backbones of a column, the best first."""
    rows = column.best.sort_values(["value", "backbone"], ascending=[False, True])
    places = rows[["backbone", "layer", "value"]].itertuples(index=False, name=None)
    every = (read_examples(output, column, *choice) for choice in places)
    return list(islice((examples for examples in every if examples is not None), BACKBONES))
