"""Records to files: every page of every suite, in every format that is asked for."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from leaderboards.board import Board
from leaderboards.literature import Published
from leaderboards.pages.csv import csv_page
from leaderboards.pages.figures import write_figures
from leaderboards.pages.inside.page import inside_page
from leaderboards.pages.markdown import markdown_page
from leaderboards.pages.tidy import tidy_frame
from leaderboards.records.record import suites_of
from leaderboards.sections.cost import cost_page
from leaderboards.sections.gaps import empty_cells
from leaderboards.sections.order import section_blocks
from leaderboards.sections.provenance import provenance_blocks
from tasks.blocks import Numbers, Page, said
from zoo.atomic import write_whole
from zoo.errors import unknown

ELSEWHERE = "What the backbones do inside, which ranks none of them, is on a page of its own: `{name}`."

# for each ending of a file, what writes a page so
WRITERS: dict[str, Callable[[Page], str]] = {"csv": csv_page, "md": markdown_page}
ENDINGS = tuple(WRITERS)  # what is written where nothing else is asked for


def tables_folder() -> Path:
    """Where the committed pages are."""
    return Path(__file__).parents[1] / "tables"


def write_pages(
    records: pd.DataFrame,
    folder: Path,
    items: Path | None = None,
    endings: Sequence[str] = ENDINGS,
    arrays: Path | None = None,
    published: Sequence[Published] = (),
) -> list[Path]:
    """Write the pages of each suite, of which a reader sees all or none; raises InputError for an ending.

    A suite's leaderboard is called like the suite, its page of analyses ``<suite>.inside``, its page of costs
    ``<suite>.cost``. Backbones are compared by the items of the records' run, and pictures are drawn of the
    arrays that its analyses kept. Gives the pages in order, without the pictures beside them.
    """
    for ending in endings:
        if ending not in WRITERS:
            raise unknown("format", ending, WRITERS)
    boards = (
        Board.of(records, suite, items=items, arrays=arrays, published=published)
        for suite in suites_of(records)
    )
    return sorted(path for board in boards for path in write_board(board, folder, endings))


def write_board(board: Board, folder: Path, endings: Sequence[str] = ENDINGS) -> list[Path]:
    """Write the pages of one suite in some formats, names of `WRITERS`; the files, page by page."""
    return [path for page in pages_of(board) for path in write_page(page, folder, endings)]


def write_page(page: Page, folder: Path, endings: Sequence[str] = ENDINGS) -> list[Path]:
    """Write one page in some formats, names of `WRITERS`; the files, in order."""
    written = []
    for ending in dict.fromkeys(endings):
        path = folder / f"{page.name}.{ending}"
        if ending == "md":
            write_figures(page, folder)
        write_whole(path, WRITERS[ending](page))
        written.append(path)
    return written


def pages_of(board: Board) -> list[Page]:
    """The pages of one suite: its leaderboard, and its analyses and its costs where there are any."""
    pages = [leaderboard_page(board)] if len(board.measured) else []
    pages += [inside_page(board)] if board.analyses else []
    pages += [cost_page(board)] if board.costs else []
    labels = tuple(backbone.label for backbone in board.backbones if not backbone.floor)
    return [replace(page, backbones=labels) for page in pages]


def leaderboard_page(board: Board) -> Page:
    """The leaderboard of one suite: the same blocks for the same records in any order."""
    blocks = section_blocks(board)
    if board.analyses:
        blocks.append(said(ELSEWHERE, name=f"{board.page}.inside"))
    numbers = Numbers(tidy_frame(board), board.page)
    blocks += provenance_blocks(board.only(board.plain), numbers, empty_cells(board))
    return Page(board.page, f"Leaderboard: {board.suite}", tuple(blocks))
