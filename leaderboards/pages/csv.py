"""The numbers of a page as CSV, and a CSV read again."""

import hashlib
import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

from layerboard.tasks.blocks import Numbers, Page
from layerboard.zoo.errors import InputError, first_line, printable

# texts that begin like a formula, also behind apostrophes that stand for themselves; no plain number
_FORMULA = re.compile(r"(?!-?\d+(\.\d+)?$)'*[=+\-@\t\r\n]")
_INERT = re.compile(r"''*[=+\-@\t\r\n]")

SUMS = "SHA256SUMS"  # beside exported files: their digests, as `sha256sum --check` reads them


def csv_page(page: Page) -> str:
    """The CSV of the numbers that a page offers; "" where it offers none."""
    return csv_text(page.numbers) if page.numbers else ""


def csv_text(numbers: Numbers) -> str:
    """Numbers as the text of a CSV file, the columns' names first."""
    return printable(inert(numbers.frame).to_csv(index=False, lineterminator="\n"))


def inert(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame in which an apostrophe, which `read_numbers` takes off, stands before formulas."""
    cells = frame.astype(object)  # else whole numbers beside missing ones become fractions
    return cells.map(lambda cell: f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) else cell)


def text_digest(text: str) -> str:
    """First digits of a CSV's SHA-256, by which a page names the numbers that it was written with."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def sums_text(texts: Mapping[str, str]) -> str:
    """Digests of some files by name, a line each."""
    return "".join(f"{hashlib.sha256(text.encode()).hexdigest()}  {name}\n" for name, text in texts.items())


def read_numbers(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """A CSV that was written from numbers with those columns, as text; raises InputError for another."""
    try:
        frame = read_table(path)
        pd.to_numeric(frame["value"])
    except (OSError, ValueError, KeyError) as error:
        raise InputError(
            f"expected a leaderboard table in {path} but cannot read it: {first_line(error)}; write it again"
        ) from error
    if list(frame.columns) != list(columns):
        raise InputError(f"expected the columns {', '.join(columns)} in {path}; write it again")
    return frame


def read_table(path: Path) -> pd.DataFrame:
    """A CSV that `csv_text` wrote, as text; raises OSError or ValueError for something else."""
    frame = pd.read_csv(io.StringIO(path.read_text(encoding="utf-8")), dtype=str, keep_default_na=False)
    return frame.map(lambda cell: cell[1:] if _INERT.match(cell) else cell)
