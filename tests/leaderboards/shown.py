"""Pages and tables as a reader of Markdown sees them."""

from pathlib import Path

import pandas as pd

from leaderboards.board import Board
from leaderboards.pages.build import leaderboard_page
from leaderboards.pages.markdown import cell_text, markdown_page
from leaderboards.scores.differences import ColumnTies
from leaderboards.sections.gaps import empty_analyses


def render_page(records: pd.DataFrame, suite: str, items: Path | None = None) -> str:
    """The leaderboard of a suite as Markdown."""
    return markdown_page(leaderboard_page(Board.of(records, suite, items=items)))


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
    return empty_analyses(Board.of(records).analyses)
