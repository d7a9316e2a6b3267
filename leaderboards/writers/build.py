"""From records to files: every page of every suite, as Markdown and as CSV."""

from dataclasses import replace
from pathlib import Path

from layerboard.leaderboards.blocks.blocks import Page, said
from layerboard.leaderboards.blocks.csv import csv_page, text_digest
from layerboard.leaderboards.blocks.display import PARTS, page_name
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.inside.page import inside_page
from layerboard.leaderboards.sections.cost import cost_page
from layerboard.leaderboards.sections.layer_cka import cka_page
from layerboard.leaderboards.sections.order import section_blocks
from layerboard.leaderboards.sections.provenance import provenance_blocks
from layerboard.leaderboards.writers.figures import write_page_figures
from layerboard.leaderboards.writers.markdown import markdown_page
from layerboard.zoo.atomic import write_whole

ELSEWHERE = "Analyses of attention, residuals and receptive fields are on a page of their own: `{name}`."


def tables_folder() -> Path:
    """Folder of the committed pages."""
    return Path(__file__).parents[1] / "tables"


def write_board(board: Board, folder: Path) -> list[Path]:
    """Write the pages of one suite; returns the files, page by page.

    The leaderboard has the name of the suite, the page of analyses is ``<suite>.inside``, that of CKA
    ``<suite>.cka``, that of costs ``<suite>.cost``. The returned files do not include the figures beside the
    pages.
    """
    pages = pages_of(board)
    written = [path for page in pages for path in write_page(page, folder)]
    for name in {f"{page_name(board.suite)}{part}" for part in PARTS} - {page.name for page in pages}:
        remove_page(name, folder)
    return written


def remove_page(name: str, folder: Path) -> None:
    """Remove a page of an earlier run with its numbers and figures; other files are left alone.

    It is such a page if its text names the digest of the numbers beside it.
    """
    paths = numbers, page = folder / f"{name}.csv", folder / f"{name}.md"
    if not all(path.is_file() for path in paths):
        return
    text = page.read_bytes().decode(errors="replace")
    if text_digest(numbers.read_bytes().decode(errors="replace")) in text:
        write_page_figures(Page(name, "", ()), folder)
        for path in paths:
            path.unlink()


def write_page(page: Page, folder: Path) -> list[Path]:
    """Write one page as CSV and, with its figures, as Markdown; returns these two files."""
    numbers, text = folder / f"{page.name}.csv", folder / f"{page.name}.md"
    write_whole(numbers, csv_page(page))
    write_page_figures(page, folder)
    write_whole(text, markdown_page(page))
    return [numbers, text]


def pages_of(board: Board) -> list[Page]:
    """The pages of one suite: its leaderboard, and its CKA, analyses and costs if there are any."""
    pages = [leaderboard_page(board)] if len(board.measured) else []
    cka = cka_page(board)
    pages += [cka] if cka else []
    pages += [inside_page(board)] if board.analyses else []
    pages += [cost_page(board)] if board.costs else []
    labels = tuple(backbone.label for backbone in board.backbones if not backbone.floor)
    return [replace(page, backbones=labels) for page in pages]


def leaderboard_page(board: Board) -> Page:
    """The leaderboard of one suite: the same blocks for the same records in any order."""
    blocks = section_blocks(board)
    blocks += [said(ELSEWHERE, name=board.analyses.page)] if board.analyses else []
    return Page(board.page, f"Leaderboard: {board.suite}", (*blocks, *provenance_blocks(board)))
