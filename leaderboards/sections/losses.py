"""The section on losses: by how much each backbone's best layer may be below the best of its column."""

from layerboard.leaderboards.blocks.blocks import Block, Cell, Heading, Table, wrapped
from layerboard.leaderboards.blocks.display import fixed
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.column import Column
from layerboard.leaderboards.sections.tables import board_table

CAPTION = "At most so many points below the best"

NOTE = """\
How far the layer of each backbone that the leaderboard shows may be below the true best of its column, at
most. All numbers of a column hold together with 95 % confidence, for every layer in every pooling, so they
also hold for a layer that was picked because it scores highest. 0.0: shown to be the best. The CSV file has
the number of every layer."""


def loss_blocks(board: Board) -> list[Block]:
    """The maximum loss of each backbone in each column; empty if no backbones were compared."""
    if not board.compared:
        return []

    def cells(column: Column) -> dict[str, Cell]:
        losses = board.bounds[column.key].losses_of(column.best)
        named = zip(column.best["backbone"].astype(str), losses, strict=True)
        return {name: Cell(fixed(loss, 1)) for name, loss in named}

    table = board_table(board, cells, floor=False)
    return [Heading(2, CAPTION), wrapped(NOTE), Table(table, left=2, caption=CAPTION, head=1)]
