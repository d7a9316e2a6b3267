"""Pages and tables as a reader of Markdown sees them."""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import pandas as pd

from layerboard.leaderboards.blocks.blocks import Block, Page
from layerboard.leaderboards.blocks.csv import read_numbers
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.differences import Bounds
from layerboard.leaderboards.board.tidy import TIDY
from layerboard.leaderboards.records.record import suites_of
from layerboard.leaderboards.sections.provenance import empty_cells
from layerboard.leaderboards.writers.build import leaderboard_page, tables_folder, write_board
from layerboard.leaderboards.writers.markdown import cell_text, markdown_page

# loss of a backbone, or of one of its layers, and whether it may be the best; others were not compared
Losses = Mapping[str | tuple[str, int], tuple[float, bool]]


@cache
def committed(suite: str) -> pd.DataFrame:
    """The committed numbers of a suite, as text; not to be changed."""
    return read_numbers(tables_folder() / f"{suite}.csv", TIDY)


def render_page(records: pd.DataFrame, suite: str, items: Path | None = None) -> str:
    """The leaderboard of a suite as Markdown."""
    return markdown_page(leaderboard_page(Board.of(records, suite, items=items)))


def render_blocks(blocks: Sequence[Block]) -> str:
    """The blocks of a section as Markdown; a section alone takes a tenth of the time of its page."""
    return markdown_page(Page("mini", "", tuple(blocks)))


def write_pages(
    records: pd.DataFrame, folder: Path, items: Path | None = None, arrays: Path | None = None
) -> list[Path]:
    """The pages of every suite as files, in order."""
    boards = [Board.of(records, suite, items=items, arrays=arrays) for suite in suites_of(records)]
    return sorted(path for board in boards for path in write_board(board, folder))


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """A table whose cells are text, with their marks."""
    return table.map(cell_text)


def bounded(board: Board, losses: Mapping[str, Losses]) -> Board:
    """The same board with the bounds of the named columns as if items had been compared."""
    for column in board.columns:
        known = losses.get(column.heading, {})
        places = zip(column.family["backbone"], column.family["layer"], strict=True)
        found = [known.get((name, layer), known.get(name, (math.nan, False))) for name, layer in places]
        loss, maybe = zip(*found, strict=True) if found else ((), ())
        board.bounds[column.key] = Bounds(column.family.assign(loss=loss, maybe=maybe))
    return board


def gaps_of(records: pd.DataFrame) -> list[str]:
    """What analyses leave empty, in sentences."""
    return empty_cells(Board.of(records).analyses)
