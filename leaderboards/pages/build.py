"""Records to files: every page of every suite, in every format that is asked for."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from leaderboards.choices.selection import backbones_of, is_analysis
from leaderboards.choices.ties import Compared
from leaderboards.literature import Published
from leaderboards.pages.beside import write_figures
from leaderboards.pages.cost import cost_page
from leaderboards.pages.csv import csv_page
from leaderboards.pages.inside.page import inside_page
from leaderboards.pages.markdown import markdown_page
from leaderboards.pages.page import leaderboard_page
from leaderboards.records.record import of_suite, suites_of
from leaderboards.scores.frames import is_cost
from tasks.blocks import Page
from zoo.atomic import whole_file
from zoo.errors import unknown

WRITERS: dict[str, Callable[[Page], str]] = {
    "csv": csv_page,
    "md": markdown_page,
}
"""For each ending of a file, what writes a page so."""

BESIDE: dict[str, Callable[[Page, Path], None]] = {"md": write_figures}
"""For each ending, what writes the files beside a page; an ending without one needs none."""

ENDINGS = ("csv", "md")
"""What is written where nothing else is asked for."""


def tables_folder() -> Path:
    """Where the committed pages are."""
    return Path(__file__).parents[1] / "tables"


def write_pages(
    records: pd.DataFrame,
    folder: Path,
    compared: Compared = None,
    endings: Sequence[str] = ENDINGS,
    arrays: Path | None = None,
    published: Sequence[Published] = (),
) -> list[Path]:
    """Write the pages of each suite; a reader sees all of a file or none.

    A suite's leaderboard is called like the suite, its page of analyses ``<suite>.inside``, its page of costs
    ``<suite>.cost``; each is there where the suite has records for it.

    Args:
        records: Columns of `Record`.
        folder: Made where it does not exist.
        compared: By what backbones are compared: the items of the records' run, or, where the records are of
            one suite, what was found in them.
        endings: Formats, names of `WRITERS`.
        arrays: What the analyses of the records' run kept beside them, of which pictures are drawn.
        published: Numbers of others, for a section of the leaderboards.

    Returns:
        The pages written, in order, without the pictures beside them.

    Raises:
        InputError: There is no format of a name.
    """
    for ending in endings:
        if ending not in WRITERS:
            raise unknown("format", ending, WRITERS)
    written = []
    for suite in suites_of(records):
        for page in pages_of(records, suite, compared, arrays, published):
            written += write_page(page, folder, endings)
    return sorted(written)


def write_page(page: Page, folder: Path, endings: Sequence[str] = ENDINGS) -> list[Path]:
    """Write one page in some formats, names of `WRITERS`; the files, in order."""
    written = []
    for ending in dict.fromkeys(endings):
        path = folder / f"{page.name}.{ending}"
        if ending in BESIDE:
            BESIDE[ending](page, folder)
        _write_text(WRITERS[ending](page), path)
        written.append(path)
    return written


def pages_of(
    records: pd.DataFrame,
    suite: str,
    compared: Compared = None,
    arrays: Path | None = None,
    published: Sequence[Published] = (),
) -> list[Page]:
    """The pages of one suite: its leaderboard, and its analyses and its costs where there are any."""
    every = of_suite(records, suite)
    costs, own = every[is_cost(every)], every[~is_cost(every)]
    inside = is_analysis(own)
    pages = [] if inside.all() else [leaderboard_page(own, suite, compared, published)]
    pages += [inside_page(own, suite, arrays)] if inside.any() else []
    pages += [cost_page(costs, suite)] if len(costs) else []
    labels = tuple(backbone.label for backbone in backbones_of(every) if not backbone.floor)
    return [replace(page, backbones=labels) for page in pages]


def _write_text(text: str, path: Path) -> None:
    """Write a text file so that a reader sees either all of it or none."""
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
