"""The section on the best layer of each backbone, with what is needed to read it."""

import math
from collections.abc import Iterator

import pandas as pd

from layerboard.leaderboards.blocks import display
from layerboard.leaderboards.blocks.blocks import Block, Cell, Heading, Table, Text, said, wrapped
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.column import Column
from layerboard.leaderboards.board.differences import enough_images
from layerboard.leaderboards.board.frames import PIXELS, RANDOM
from layerboard.leaderboards.sections.means import mean_blocks, table_with_means
from layerboard.leaderboards.sections.provenance import join, list_blocks
from layerboard.leaderboards.sections.tables import board_table, mark_of

CAPTION = "The best layer of each backbone"
HONEST_CAPTION = f"{CAPTION} with an honest choice"

READING = """\
Each row is a frozen, pretrained vision backbone; each column is a task that is solved from its features
alone. The features of **every layer** were scored; a cell shows the best layer's score and which layer
that is: `61.2{half} (9/12)` is 61.2 %, reached by the features after block 9 of 12. {sure}Higher is
better, 100 is perfect, and the best backbone of each column is in **bold**. {tied}An empty cell is a
missing score, not a zero; the last section gives the reason."""

INTERVAL = """\
± is the 95 % margin of error. """

COLUMN_TIES = """\
`≈` marks backbones that are statistically tied with the best of their column: these and the bold one
include the true best with 95 % confidence. """

UNTESTED = """\
Not tested against the best of the column, since per-item scores of the same images are missing: {names}."""

NOTHING_COMPARED = """\
Ties are not marked: per-item scores of the same images, which the test needs, were missing or too few."""

APART = """\
**Different images.** Only scores on the same images and ground truth are ranked together. Scores on others,
such as a subset, have columns of their own, named by a digest of the data:"""

BETTER = "↑ marks scores that the same backbone exceeds with another pooling, each at its best layer:"

EVERY = """\
**Every image is tested once**, against the others: no images are set aside for testing. These columns do not
show which of the two best backbones is better. To show it in 80 % of cases, if the difference is as large as
it looks, it would take (in brackets: if it is anything in its 95 % interval):"""

TESTED_ONCE = "tested once"  # in the coverage of such images

PARTIAL = "† PARTIAL data: not comparable with scores on the complete dataset."

FEATURES = "Features: {uses}."

AVERAGED = "The {average} of the feature map replaces a missing class token: {names}."

CLAIMED = """\
The column `measured` says who measured a backbone. Numbers `by the authors` of the backbone or `by others`
came as a submission; those `verified here` were drawn at random, measured again, and agreed."""

HONEST = """\
**Honest scores: the layer chosen on held-out data.** Above, each layer is chosen on the test data that
it is scored on, which is optimistic. Here it is chosen on a random half of the test data and scored on
the other half. Cells show the mean over 100 splits and, in brackets, how much lower it is than the score
above."""

OPTIMISM = """\
The best layer is chosen on the test data, so the scores are optimistic, most of all on small datasets."""

UNTRAINED_NOTE = """\
An untrained backbone has random weights: its scores show what the architecture alone achieves."""

FLOOR_NOTE = """\
The random floor is the score of random noise as features: mean ± standard deviation over independent
draws{unlike}. Features that score near it are useless for the task. Where neighbouring pixels look alike,
as in `davis`, untrained networks, such as `mini-resnet-untrained`, score far higher and are the stricter
baseline."""

PIXELS_NOTE = """\
Raw pixels are the images, downsampled to the size of a patch, or their patches, without any network."""

UNLIKE_INTERVALS = " (here ± is not a margin of error)"


def best_blocks(board: Board) -> list[Block]:
    """The leaderboard, how to read it, and what its columns ask; empty if nothing was scored."""
    if not board.columns:
        return []
    reading = READING.format(
        half=" ± 0.8" if board.has_intervals else "",
        sure=INTERVAL if board.has_intervals else "",
        tied=COLUMN_TIES if board.compared else "",
    )
    apart = [column for column in board.columns if column.apart]
    parts = [column.rows[column.rows["partial"].astype(bool)] for column in board.columns if column.partial]
    partial = pd.concat(parts).groupby("dataset", sort=True) if parts else ()
    honest = honest_table(board)
    legend = [
        {"task": task.name, "the question": task.asks, "the score, in percent": task.measures}
        for task in map(display.task_display, dict.fromkeys(column.task for column in board.columns))
    ]
    return [
        wrapped(reading),
        Heading(2, CAPTION),
        Table(table_with_means(board), left=3 if board.claims else 2, caption=CAPTION, head=1),
        *(said("**Near-duplicates.** {warning}", warning=warning) for warning in board.warnings),
        wrapped(CLAIMED if board.claims else ""),
        _pooling_note(board),
        *_better_blocks(board),
        *mean_blocks(board),
        *list_blocks(APART, [f"{column.heading}: {join(column.rows['coverage'])}" for column in apart]),
        *list_blocks(PARTIAL, [f"{name}: {join(rows['coverage'])}" for name, rows in partial]),
        untested(board),
        *_enough_blocks(board),
        said(OPTIMISM if honest.empty else HONEST),
        *([] if honest.empty else [Table(honest, left=2, caption=HONEST_CAPTION, head=1)]),
        *_floor_notes(board),
        said("What the tasks measure:"),
        Table(pd.DataFrame(legend), left=3, caption="What the tasks measure"),
    ]


def _pooling_note(board: Board) -> Text:
    """The features of a layer from which cells are computed."""
    labels = {backbone.name: backbone.label for backbone in board.scored_backbones if not backbone.floor}
    tasks: dict[str, list[str]] = {}
    averaged: set[str] = set()
    for column in board.columns:
        taken = {name: pooling for name, pooling in column.poolings.items() if name in labels}
        averaged |= {name for name, pooling in taken.items() if pooling == "mean"}
        for pooling in {"cls" if pooling == "mean" else pooling for pooling in taken.values()}:
            tasks.setdefault(pooling, []).append(column.task)
    uses = "; ".join(
        f"{', '.join(dict.fromkeys(tasks[pooling]))}: {display.pooling_name(pooling)}"
        for pooling in sorted(tasks, key=display.pooling_rank)
    )
    names = ", ".join(label for name, label in labels.items() if name in averaged)
    words = " ".join([*([FEATURES] if uses else []), *([AVERAGED] if names else [])])
    return said(words, uses=uses, average=display.GLOBAL_AVERAGE, names=names)


def _better_blocks(board: Board) -> list[Block]:
    """One line per column with the backbones that score higher in another pooling; empty without any."""
    lines = []
    for column in board.columns:
        names = [
            f"{label} {display.score_text(better.score)} "
            f"({better.layer}/{better.depth}, {display.pooling_name(better.pooling)})"
            for name, label in board.labels.items()
            if (better := column.better_poolings.get(name))
        ]
        lines += [f"{column.heading}: {', '.join(names)}"] if names else []
    return list_blocks(BETTER, lines)


def untested(board: Board) -> Text:
    """The backbones that were not compared; empty if all were, or if no score has an interval."""
    labels = {backbone.name: backbone.label for backbone in board.scored_backbones if not backbone.floor}
    if len(labels) < 2 or not board.has_intervals:
        return Text(())
    names = {column.heading: board.ties[column.key].untested for column in board.columns if board.ties}
    if not board.ties or (any(names.values()) and not board.compared):
        return said(NOTHING_COMPARED)
    lines = "; ".join(
        f"{heading} ({', '.join(label for name, label in labels.items() if name in untested)})"
        for heading, untested in names.items()
        if untested
    )
    return said(UNTESTED, names=lines) if lines else Text(())


def _enough_blocks(board: Board) -> list[Block]:
    """About how many images would be enough, for columns without a validation split; empty for others."""
    lines = []
    for column in board.columns:
        once = column.rows["coverage"].str.contains(TESTED_ONCE, regex=False).all()
        if board.items and once and (pair := enough_images(column, board.items)):
            first, second, enough = pair
            count = display.enough_text(enough, float(column.best["n"].max()), "images")
            lines.append(f"{column.heading}, {board.labels[first]} and {board.labels[second]}: {count}")
    return list_blocks(EVERY, lines)


def honest_table(board: Board) -> pd.DataFrame:
    """The leaderboard with honest choices, ``score (loss by the choice)``; empty without any."""
    if not any(column.honest for column in board.columns):
        return pd.DataFrame()

    def cells(column: Column) -> dict[str, Cell]:
        top = max((choice.score for choice in column.honest.values()), default=math.nan)
        return {
            name: Cell(
                f"{display.score_text(choice.score)} ({display.signed_text(-choice.optimism)})",
                mark_of(best=choice.score == top, tied=False),
            )
            for name, choice in column.honest.items()
        }

    return board_table(board, cells, floor=False)


def _floor_notes(board: Board) -> Iterator[Text]:
    families = {backbone.family for backbone in board.scored_backbones}
    if RANDOM in families:
        yield wrapped(FLOOR_NOTE.format(unlike=UNLIKE_INTERVALS if board.has_intervals else ""))
    if any(not backbone.trained and not backbone.floor for backbone in board.scored_backbones):
        yield said(UNTRAINED_NOTE)
    if PIXELS in families:
        yield wrapped(PIXELS_NOTE)
