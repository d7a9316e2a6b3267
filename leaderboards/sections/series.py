"""The section on trainings: score and best layer of their checkpoints over the steps."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple, dataclass
from operator import attrgetter

import pandas as pd

from layerboard.leaderboards.blocks.blocks import Block, Heading, Plot, Table, said
from layerboard.leaderboards.blocks.display import NOT_WORSE, place_text, ranges_text, score_text
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.column import Column, Side
from layerboard.leaderboards.board.differences import MISSING, Estimate, best_side
from layerboard.leaderboards.board.frames import INTERVAL
from layerboard.leaderboards.findings.paired import best_difference
from layerboard.leaderboards.sections.variants import difference_text
from layerboard.zoo.errors import InputError
from layerboard.zoo.spec import Variant

TITLE = "Over a training"

NOTE = """\
The checkpoints of a training by their step. Score and layer are those of the leaderboard, the best on these
items; after the layer stand all blocks that may be the best (95 %). Differences are of the true
best layers of two checkpoints, whichever these are, in points, with paired 95 % intervals over the same
items. Each interval holds by itself: of twenty, about one excludes the true difference by chance."""

Trainings = Mapping[str, Mapping[int, str]]
"""The checkpoints of each training: the names of backbones by step, ascending."""


@dataclass(frozen=True, slots=True)
class SeriesPoint:
    """A checkpoint of a training in a column: its best layer, and what it gained."""

    training: str
    step: int
    best: Side
    score: Estimate
    layers: tuple[int, ...]  # the best block and those that may be, ascending
    since_first: Estimate  # its score minus that of the first checkpoint; NaN for the first
    to_last: Estimate  # its score minus that of the last checkpoint; NaN for the last


def series_of(board: Board) -> Trainings:
    """The trainings of which a board has several checkpoints with scores."""
    steps: dict[str, dict[int, str]] = {}
    for backbone in board.scored_backbones:
        series, step = Variant.of(backbone.name).checkpoint
        if step >= 0:
            steps.setdefault(str(series), {})[step] = backbone.name
    return {name: dict(sorted(each.items())) for name, each in steps.items() if len(each) > 1}


def series_points(board: Board, column: Column, trainings: Trainings) -> Iterator[SeriesPoint]:
    """The checkpoints that have a score in a column, by training and step."""
    best = {str(row["backbone"]): row for row in column.best.to_dict("records")}
    alike = column.family[column.family["maybe_best"].astype(bool)]
    for training, steps in trainings.items():
        names = [name for name in steps.values() if name in best]
        for step, name in steps.items():
            if name in best:
                side, row = best_side(column.candidates, name), best[name]
                layers = {side.layer, *alike.loc[alike["backbone"] == name, "layer"].astype(int)}
                score = Estimate(*(float(row[field]) for field in INTERVAL))
                ends = (_difference(board, column, name, other) for other in (names[0], names[-1]))
                yield SeriesPoint(training, step, side, score, tuple(sorted(layers)), *ends)


def _difference(board: Board, column: Column, name: str, other: str) -> Estimate:
    """The score of a checkpoint minus that of another one; without items, it has no interval."""
    if name == other:
        return MISSING
    try:
        versus = best_difference(board, column, (name, other))
    except InputError:
        sides = (best_side(column.candidates, each) for each in (name, other))
        return Estimate(next(sides).score - next(sides).score)
    return Estimate(versus.difference, versus.ci_low, versus.ci_high)


def series_blocks(board: Board) -> list[Block]:
    """Charts and tables of trainings; empty without several checkpoints of one."""
    trainings = series_of(board)
    if not trainings:
        return []
    points = {column: [*series_points(board, column, trainings)] for column in board.columns}
    blocks: list[Block] = [Heading(2, TITLE), said(NOTE)]
    for name, axis, what, height in PLOTS:
        rows = [
            (column.heading, each.training, each.step, *astuple(height(each)))
            for column, some_points in points.items()
            for each in some_points
        ]
        frame = pd.DataFrame(rows, columns=["panel", "series", "x", "y", "low", "high"])
        title, file = f"{TITLE}: {what}", f"series-{name}"
        blocks.append(Plot(frame, "lines", title, "step", axis, shared=False, name=file))
    for column, some_points in points.items():
        if some_points:
            caption = f"{TITLE}: {column.title}"
            blocks += [Heading(3, caption), Table(pd.DataFrame(map(_row, some_points)), caption=caption)]
    return blocks


# name, vertical axis, description, and height of a point with the ends of its interval
PLOTS: tuple[tuple[str, str, str, Callable[[SeriesPoint], Estimate]], ...] = (
    ("scores", "score, %", "the best layer's score, with its 95 % interval", attrgetter("score")),
    (
        *("layers", "best block", f"the best block, and those {NOT_WORSE}"),
        lambda each: Estimate(each.best.layer, each.layers[0], each.layers[-1]),
    ),
)


def _row(point: SeriesPoint) -> dict[str, str]:
    """A checkpoint as a row of the table."""
    best, score = point.best, point.score
    others = f" ({ranges_text([*point.layers])})" if len(point.layers) > 1 else ""
    return {
        "training": point.training,
        "step": f"{point.step:,}",
        "score": score_text(score.value, score.low, score.high),
        "best layer": f"{place_text(best.layer, best.depth, best.pooling)}{others}",
        "minus the first": difference_text(point.since_first),
        "minus the last": difference_text(point.to_last),
    }
