"""Pages and CSV files of records: written, and compared with the committed ones."""

from pathlib import Path

import pandas as pd

from leaderboards.check import TOLERANCE, Tolerance, differences
from leaderboards.display import file_name
from leaderboards.pages.csv import digest, read_tidy, tidy_frame, tidy_text
from leaderboards.pages.page import render_page
from leaderboards.records.record import suites_of
from zoo.atomic import whole_file
from zoo.errors import InputError


def tables_folder() -> Path:
    """Where the committed pages are."""
    return Path(__file__).parents[1] / "tables"


def write_pages(records: pd.DataFrame, folder: Path, items: Path | None = None) -> list[Path]:
    """Write ``<suite>.md`` and ``<suite>.csv`` for each suite; a reader sees all of a file or none.

    Args:
        records: Columns of `Record`.
        folder: Made where it does not exist.
        items: The per-item measurements of the records' run, by which backbones are compared.

    Returns:
        The files written, in order.
    """
    written = []
    for suite in suites_of(records):
        for ending, text in (("csv", tidy_text(records, suite)), ("md", render_page(records, suite, items))):
            path = folder / f"{file_name(suite)}.{ending}"
            _write_text(text, path)
            written.append(path)
    return sorted(written)


def check_pages(records: pd.DataFrame, folder: Path, tolerance: Tolerance = TOLERANCE) -> list[str]:
    """What differs between the committed files of the records' suites and the records.

    Rows that are missing or new, values beyond the tolerance, counts and partial data; not dates, versions,
    devices or which layer is best. Of intervals, only whether they are there; they move with the scores, and
    how often a layer is chosen and what is tied move more than the scores do.

    Returns:
        One sentence a difference; none where the committed files are current.
    """
    sentences: list[str] = []
    for suite in suites_of(records):
        page, numbers = (folder / f"{file_name(suite)}.{ending}" for ending in ("md", "csv"))
        absent = [path for path in (page, numbers) if not path.is_file()]
        sentences += [f"{path.name} is not in {folder}; write the leaderboard again" for path in absent]
        if numbers in absent:
            continue
        try:
            committed = read_tidy(numbers)
        except InputError as error:
            sentences.append(str(error))
            continue
        if page not in absent and digest(numbers.read_text(encoding="utf-8")) not in page.read_text(
            encoding="utf-8"
        ):
            sentences.append(f"{page.name} was not written with {numbers.name}; write the leaderboard again")
        sentences += [
            f"{numbers.name}: {sentence}"
            for sentence in differences(committed, tidy_frame(records, suite), tolerance)
        ]
    return sentences


def _write_text(text: str, path: Path) -> None:
    """Write a text file so that a reader sees either all of it or none."""
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
