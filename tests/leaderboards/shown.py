"""Pages and tables as a reader of Markdown sees them."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.differences import ColumnTies
from layerboard.leaderboards.records.record import suites_of
from layerboard.leaderboards.sections.gaps import empty_cells
from layerboard.leaderboards.writers.build import ENDINGS, leaderboard_page, write_board
from layerboard.leaderboards.writers.markdown import cell_text, markdown_page


def render_page(records: pd.DataFrame, suite: str, items: Path | None = None) -> str:
    """The leaderboard of a suite as Markdown."""
    return markdown_page(leaderboard_page(Board.of(records, suite, items=items)))


def write_pages(
    records: pd.DataFrame,
    folder: Path,
    items: Path | None = None,
    endings: Sequence[str] = ENDINGS,
    arrays: Path | None = None,
) -> list[Path]:
    """The pages of every suite as files, in order."""
    boards = [Board.of(records, suite, items=items, arrays=arrays) for suite in suites_of(records)]
    return sorted(path for board in boards for path in write_board(board, folder, endings))


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """A table whose cells are text, with their marks."""
    return table.map(cell_text)


def tied(records: pd.DataFrame, ties: ColumnTies) -> Board:
    """A board whose ties are known without items."""
    board = Board.of(records)
    vars(board)["ties"] = ties
    return board


def gaps_of(records: pd.DataFrame) -> list[str]:
    """What analyses leave empty, in sentences."""
    return empty_cells(Board.of(records).analyses)
