"""The section on ranks: between which places each backbone is in each column."""

from layerboard.leaderboards.blocks.blocks import Block, Heading, Table, wrapped
from layerboard.leaderboards.blocks.display import rank_text
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.sections.tables import cell_table

CAPTION = "Ranks that the data allow"

NOTE = """\
The ranks that each backbone may truly have, at its truly best layer: `1st to 3rd` of seven means that no
backbone is shown to be better, and four are shown to be worse. All ranks of a column hold together with 95 %
confidence. A backbone is shown to be better than another if one of its layers is better than every layer of
the other; all pairs of layers are tested at once. An empty cell: per-item scores of the same images are
missing."""


def rank_blocks(board: Board) -> list[Block]:
    """The first and last rank of each backbone in each column; empty if none are known."""
    columns = [each for each in board.columns if each.key in board.standings]
    cells = {
        (name, column.heading): rank_text(*ranks)
        for column in columns
        for name, ranks in board.standings[column.key].ranks.items()
    }
    table = cell_table(board.labels, [column.heading for column in columns], cells)
    return [Heading(2, CAPTION), wrapped(NOTE), Table(table, caption=CAPTION)] if cells else []
