"""The section on the best layer of each backbone, with what is needed to read it."""

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
from layerboard.leaderboards.sections.tables import board_table

CAPTION = "The best layer of each backbone"
HELD_OUT_CAPTION = f"{CAPTION}, held out"

READING = """\
Each row is a frozen, pretrained vision backbone; each column is a task that is solved from its features
alone. The features of **every layer** were scored; a cell shows the best layer's score and which layer that
is: `61.2{half} (9/12 cls)` is 61.2 %, reached by the features after block 9 of 12, pooled by `cls`; each
backbone is shown in the pooling of its best score. {sure}Higher is better, 100 is perfect, and the best
backbone of each column is in **bold**. {maybe}An empty cell is a missing score, not a zero; the last section
gives the reason."""

INTERVAL = """\
± is the 95 % margin of error; where the ends of the 95 % interval are unlike, both are given. """

COLUMN_MAYBE = """\
`≈` marks backbones that are {not_worse} than the best of their column: the best on average is among
these and the bold one (95 %; each column holds by itself). Differences on the same items decide, so a lower
score may have the mark where a higher one has none. """

UNTESTED = """\
Not tested against the best of the column, since per-item scores of the same images are missing: {names}."""

NOTHING_COMPARED = """\
Which backbones may be the best is not marked: per-item scores of the same images, which the test needs, were
missing or too few."""

APART = """\
**Different images.** Only scores on the same images and ground truth are ranked together. Scores on others,
such as a subset, have columns of their own, named by a digest of the data:"""

EVERY = """\
**Every image is tested once**, against the others: no images are set aside for testing. These columns do not
show which of the two best backbones is better. To show it in 80 % of cases, if the difference is as large as
it looks, it would take (in brackets: if it is anything in its 95 % interval):"""

TESTED_ONCE = "tested once"  # in the coverage of such images

PARTIAL = "† PARTIAL data: not comparable with scores on the complete dataset."

FEATURES = "Features: {uses}."

HELD_OUT = """\
**Held out.** Above, each layer is chosen on the test data that it is scored on, which is optimistic. Here
it is chosen on a random half of the test data and scored on the other half ({meaning}). Cells show the mean
over 100 splits and, in brackets, how much lower it is than the score above."""

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
        maybe=COLUMN_MAYBE.format(not_worse=display.NOT_WORSE) if board.compared else "",
    )
    apart = [column for column in board.columns if column.apart]
    parts = [column.rows[column.rows["partial"].astype(bool)] for column in board.columns if column.partial]
    partial = pd.concat(parts).groupby("dataset", sort=True) if parts else ()
    held_out = held_out_table(board)
    legend = [
        {"task": task.name, "the question": task.asks, "the score, in percent": task.measures}
        for task in map(display.task_display, dict.fromkeys(column.task for column in board.columns))
    ]
    return [
        wrapped(reading),
        Heading(2, CAPTION),
        Table(table_with_means(board), left=2, caption=CAPTION, head=1),
        *(said("**Near-duplicates.** {warning}", warning=warning) for warning in board.warnings),
        _pooling_note(board),
        *mean_blocks(board),
        *list_blocks(APART, [f"{column.heading}: {join(column.rows['coverage'])}" for column in apart]),
        *list_blocks(PARTIAL, [f"{name}: {join(rows['coverage'])}" for name, rows in partial]),
        untested(board),
        *_enough_blocks(board),
        wrapped(OPTIMISM if held_out.empty else HELD_OUT.format(meaning=display.HELD_OUT)),
        *([] if held_out.empty else [Table(held_out, left=2, caption=HELD_OUT_CAPTION, head=1)]),
        *_floor_notes(board),
        said("What the tasks measure:"),
        Table(pd.DataFrame(legend), left=3, caption="What the tasks measure"),
    ]


def _pooling_note(board: Board) -> Text:
    """The features of a layer from which cells are computed."""
    tasks: dict[str, list[str]] = {}
    for column in board.columns:
        for pooling in {*column.best["pooling"]}:
            tasks.setdefault(pooling, []).append(column.task)
    uses = "; ".join(
        f"{pooling}: {display.pooling_name(pooling)} ({', '.join(dict.fromkeys(tasks[pooling]))})"
        for pooling in sorted(tasks, key=display.pooling_rank)
    )
    return said(FEATURES if uses else "", uses=uses)


def untested(board: Board) -> Text:
    """The backbones that were not compared; empty if all were, or if no score has an interval."""
    labels = {backbone.name: backbone.label for backbone in board.scored_backbones if not backbone.floor}
    if len(labels) < 2 or not board.has_intervals:
        return Text(())
    names = {column.heading: board.bounds[column.key].untested for column in board.columns}
    if any(names.values()) and not board.compared:
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


def held_out_table(board: Board) -> pd.DataFrame:
    """The leaderboard with held-out choices of the layer, ``score (loss by it)``; empty without any."""
    if not any(column.held_out for column in board.columns):
        return pd.DataFrame()

    def cells(column: Column) -> dict[str, Cell]:  # without marks: the best is that of the leaderboard
        return {
            name: Cell(f"{display.score_text(choice.score)} ({display.signed_text(-choice.optimism)})")
            for name, choice in column.held_out.items()
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
