"""The sections on what the data allow: by how much each best layer may be below the best, and its rank."""

import pandas as pd

from layerboard.leaderboards.blocks.blocks import Block, Cell, Heading, Table, section, wrapped
from layerboard.leaderboards.blocks.display import fixed, rank_text
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.column import Column
from layerboard.leaderboards.sections.tables import board_table, cell_table

LOSSES = "At most so many points below the best"

LOSSES_NOTE = """\
How far the layer of each backbone that the leaderboard shows may be below the true best of its column, at
most. All numbers of a column hold together with 95 % confidence, for every layer in every pooling, so they
also hold for a layer that was picked because it scores highest. 0.0: shown to be the best. The CSV file has
the number of every layer."""

RANKS = "Ranks that the data allow"

RANKS_NOTE = """\
The ranks that each backbone may truly have, at its truly best layer: `1st to 3rd` of seven means that no
backbone is shown to be better, and four are shown to be worse. Exactly those that may be the best, bold or
with `≈` in the leaderboard, may be 1st. All ranks of a column hold together with 95 % confidence. A backbone
is shown to be better than another if one of its layers is better than every layer of the other; all pairs of
layers in all poolings are tested at once. An empty cell: per-item scores of the same images are missing."""


def loss_blocks(board: Board) -> list[Block]:
    """The maximum loss of each backbone in each column; empty if no backbones were compared."""

    def cells(column: Column) -> dict[str, Cell]:
        losses = board.bounds[column.key].losses_of(column.best)
        named = zip(column.best["backbone"].astype(str), losses, strict=True)
        return {name: Cell(fixed(loss, 1)) for name, loss in named}

    table = board_table(board, cells, floor=False) if board.compared else pd.DataFrame()
    return section(Heading(2, LOSSES), wrapped(LOSSES_NOTE), Table(table, left=2, caption=LOSSES, head=1))


def rank_blocks(board: Board) -> list[Block]:
    """The first and last rank of each backbone in each column; empty if none are known."""
    columns = [each for each in board.columns if each.key in board.standings]
    cells = {
        (name, column.heading): rank_text(*ranks)
        for column in columns
        for name, ranks in board.standings[column.key].ranks.items()
    }
    table = cell_table(board.labels, [column.heading for column in columns], cells)
    return section(Heading(2, RANKS), wrapped(RANKS_NOTE), Table(table, caption=RANKS))
